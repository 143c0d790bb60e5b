"""Find the running summary of a session, which is a memory with a client id of its own."""

from __future__ import annotations

from byheart.contracts import DedupKey, Reader
from byheart.model import Memory
from byheart.model.memories import RUNNING_SUMMARY_ID


def find_summary(reader: Reader, session_id: str, space: str) -> Memory | None:
    """Fetch the summary of a session, hidden or not."""
    key = DedupKey(space, session_id, kind="", content_hash="", client_id=RUNNING_SUMMARY_ID)
    held = reader.find([key]).get(key)
    return None if held is None else reader.memory(held.memory_id, space, hidden=True)
