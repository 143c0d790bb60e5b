"""In which thread a request is carried out: reads and writes apart, each with a bounded queue.

REST and MCP share them, so that the limits are those of the server.

A save waits for the model and for the disk, an import for a long time: were they to share their
threads with searches, a few of them would leave none.

Every API key has a queue of its own, and the keys take turns: a key with a hundred requests waiting
delays another key's request by one. A request whose client hangs up leaves its queue.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from byheart.errors import ByheartError
from byheart.model import Access
from byheart.settings import Settings

Result = TypeVar("Result")


class Overloaded(ByheartError):
    """Refuse work while too much of it waits."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is, and how to notice that its client has hung up."""

    key: str = ""
    receive: Receive | None = None

    @classmethod
    def of(cls, request: Request) -> Caller:
        """Find the API key of a request whose body has been read."""
        return cls(request.scope["state"].get("token") or "", request.receive)

    async def wait(self, turn: anyio.Event) -> None:
        """Wait for a turn; raise `ClientDisconnect` if the client hangs up before it comes."""
        if self.receive is None:
            await turn.wait()
            return
        receive = self.receive

        async def watch(waiting: anyio.CancelScope) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            waiting.cancel()

        async with anyio.create_task_group() as both:
            both.start_soon(watch, both.cancel_scope)
            await turn.wait()
            both.cancel_scope.cancel()
        if not turn.is_set():
            raise ClientDisconnect


class _Waiter:
    """One request in a queue: its turn comes when a thread is free, or to be told that none is."""

    __slots__ = ("refused", "turn")

    def __init__(self) -> None:
        self.turn = anyio.Event()
        self.refused = False


class _Lane:
    """So many threads for one kind of work, and so many requests that wait for one."""

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)
        self._threads = self._free = threads
        self._most_waiting = most_waiting
        self._waiting = 0
        # A queue for each key that has something waiting; the first key has the next turn.
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()

    @property
    def inside(self) -> int:
        """Count what runs or waits."""
        return self._threads - self._free + self._waiting

    async def run(self, task: Callable[[], Result], caller: Caller) -> Result:
        """Run a task when there is a thread for it; refuse it when too many wait already."""
        await self._enter(caller)
        try:
            return await anyio.to_thread.run_sync(task, limiter=self._limiter)
        finally:
            self._pass_on()

    async def _enter(self, caller: Caller) -> None:
        if self._free:  # then nobody waits: a thread that gets free is passed on at once
            self._free -= 1
            return
        waiter = self._line_up(caller.key)
        try:
            await caller.wait(waiter.turn)
        except BaseException:
            self._leave(caller.key, waiter)
            raise
        if waiter.refused:
            raise self._overloaded()

    def _line_up(self, key: str) -> _Waiter:
        if self._waiting >= self._most_waiting:
            self._make_room(key)
        waiter = _Waiter()
        self._queues.setdefault(key, deque()).append(waiter)
        self._waiting += 1
        return waiter

    def _make_room(self, key: str) -> None:
        """Refuse the latest request of the key with the most, unless that is this key."""
        most = max(self._queues, key=lambda each: len(self._queues[each]), default=key)
        queue = self._queues.get(most, deque[_Waiter]())
        if len(queue) <= len(self._queues.get(key, ())) + 1:
            raise self._overloaded()
        latest = queue[-1]
        self._remove(most, latest)
        latest.refused = True
        latest.turn.set()

    def _pass_on(self) -> None:
        """Give a free thread to the next key in turn."""
        if not self._queues:
            self._free += 1
            return
        key, queue = self._queues.popitem(last=False)
        self._waiting -= 1
        queue.popleft().turn.set()
        if queue:
            self._queues[key] = queue  # at the end again

    def _leave(self, key: str, waiter: _Waiter) -> None:
        """Take a request out that is no longer waited for; its turn may have come already."""
        if not waiter.turn.is_set():
            self._remove(key, waiter)
        elif not waiter.refused:
            self._pass_on()

    def _remove(self, key: str, waiter: _Waiter) -> None:
        queue = self._queues[key]
        queue.remove(waiter)
        self._waiting -= 1
        if not queue:
            del self._queues[key]

    def _overloaded(self) -> Overloaded:
        return Overloaded(
            f"{self.inside} requests of this kind are under way or waiting",
            "ask again in a moment, or raise max_waiting_requests",
        )


class Work:
    """Run the synchronous core in threads."""

    def __init__(self, settings: Settings) -> None:
        waiting = settings.max_waiting_requests
        self._lanes: dict[Access, _Lane] = {
            "read": _Lane(settings.max_concurrent_reads, waiting),
            "write": _Lane(settings.max_concurrent_writes, waiting),
        }

    async def run(
        self, lane: Access, task: Callable[[], Result], caller: Caller | None = None
    ) -> Result:
        """Run a task in a thread of its lane; once started it ends, whether its client waits."""
        return await self._lanes[lane].run(task, caller or Caller())

    def under_way(self) -> dict[Access, int]:
        """Count what runs or waits now."""
        return {name: lane.inside for name, lane in self._lanes.items()}
