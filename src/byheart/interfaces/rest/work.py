"""In which thread a request is carried out: reads and writes apart, each with a bounded queue.

REST and MCP share them, so that the limits are those of the server.

A save waits for the model and for the disk, an import for a long time: were they to share their
threads with searches, a few of them would leave none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from byheart.errors import ByheartError
from byheart.model import Access
from byheart.settings import Settings

Result = TypeVar("Result")


class Overloaded(ByheartError):
    """Refuse work while too much of it waits."""


class _Lane:
    """So many threads for one kind of work, and so many who wait for one."""

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)
        self._most = threads + most_waiting
        self.inside = 0

    async def run(self, task: Callable[[], Result]) -> Result:
        """Run a task when there is a thread for it; refuse it when too many wait already."""
        if self.inside >= self._most:
            raise Overloaded(
                f"{self.inside} requests of this kind are under way or waiting",
                "ask again in a moment, or raise max_waiting_requests",
            )
        self.inside += 1
        try:
            return await anyio.to_thread.run_sync(task, limiter=self._limiter)
        finally:
            self.inside -= 1


class Work:
    """Run the synchronous core in threads."""

    def __init__(self, settings: Settings) -> None:
        waiting = settings.max_waiting_requests
        self._lanes: dict[Access, _Lane] = {
            "read": _Lane(settings.max_concurrent_reads, waiting),
            "write": _Lane(settings.max_concurrent_writes, waiting),
        }

    async def run(self, lane: Access, task: Callable[[], Result]) -> Result:
        """Run a task in a thread of its lane."""
        return await self._lanes[lane].run(task)

    def under_way(self) -> dict[Access, int]:
        """Count what runs or waits now."""
        return {name: lane.inside for name, lane in self._lanes.items()}
