"""Count accesses of memories, and read which ones were accessed last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from byheart.contracts import Accesses, MemoryAccess
from byheart.model.times import now_micros, to_micros
from byheart.startup.late_numpy import np
from byheart.storage.sql.connection import Connection

# Given a space and a number: its memories that were accessed last.
LATEST = (
    "SELECT memory_no, accessed_at, access_count FROM memories "
    "WHERE space = ? AND accessed_at IS NOT NULL ORDER BY accessed_at DESC LIMIT ?"
)


def to_accesses(rows: Iterable[Sequence[Any]]) -> Accesses:
    """Make columns of the rows of `LATEST`."""
    numbers = np.array(list(rows), np.int64).reshape(-1, 3)
    return Accesses(numbers[:, 0], numbers[:, 1], numbers[:, 2])


def write(connection: Connection, counts: Sequence[tuple[MemoryAccess, int]]) -> None:
    """Add accesses to memories, and set the time of the last one."""
    if not counts:
        return
    now = now_micros()
    connection.run_many(
        # A time in the future was recorded while the clock was wrong.
        "UPDATE memories SET access_count = access_count + ?1, accessed_at = CASE "
        "WHEN accessed_at > ?3 AND accessed_at <= ?2 THEN accessed_at ELSE ?3 END "
        "WHERE space = ?4 AND memory_id = ?5",
        (
            (times, now, to_micros(access.at), access.space, access.memory_id)
            for access, times in counts
        ),
    )
