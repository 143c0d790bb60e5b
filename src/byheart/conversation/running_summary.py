"""Find the running summary of a session, which is a memory with a client id of its own."""

from __future__ import annotations

from byheart.contracts import Reader
from byheart.model import Memory
from byheart.model.memories import RUNNING_SUMMARY_ID


def find_summary(reader: Reader, session_id: str, space: str) -> Memory | None:
    """Fetch the summary of a session, hidden or not."""
    return reader.named(RUNNING_SUMMARY_ID, session_id, space)
