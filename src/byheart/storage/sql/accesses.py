"""Count accesses of memories."""

from __future__ import annotations

from collections.abc import Iterable

from byheart.contracts import MemoryAccess
from byheart.model.times import now_micros, to_micros
from byheart.storage.sql.connection import Connection


def write(connection: Connection, counts: Iterable[tuple[MemoryAccess, int]]) -> None:
    """Add accesses to memories, and set the time of the last one."""
    now = now_micros()
    connection.run_many(
        # A time in the future was recorded while the clock was wrong.
        "UPDATE memories SET access_count = access_count + ?1, accessed_at = "
        "iif(accessed_at <= ?2, max(accessed_at, ?3), ?3) WHERE space = ?4 AND memory_id = ?5",
        (
            (times, now, to_micros(access.at), access.space, access.memory_id)
            for access, times in counts
        ),
    )
