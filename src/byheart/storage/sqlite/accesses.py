"""Count accesses of memories: at once if no other process writes, or else a little later."""

from __future__ import annotations

from collections.abc import Sequence

from byheart.model.times import now_micros
from byheart.storage.sqlite import versions
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.deferred_writes import DeferredWrites


class Accesses:
    """Count accesses by space and memory, and record the time of the last one."""

    def __init__(self, database: Database) -> None:
        self._notes = DeferredWrites[tuple[str, str], tuple[int, int]](
            database, versions.count_accesses
        )
        self.flush = self._notes.flush

    def count(self, memory_ids: Sequence[str], space: str) -> None:
        """Count one access of each memory now."""
        now = now_micros()

        def add(waiting: dict[tuple[str, str], tuple[int, int]]) -> None:
            for memory_id in memory_ids:
                times, _ = waiting.get((space, memory_id), (0, 0))
                waiting[space, memory_id] = (times + 1, now)

        self._notes.add(add)
