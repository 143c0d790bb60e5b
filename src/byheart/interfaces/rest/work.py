"""Run requests in worker threads: each kind has a lane of its own, with a bounded queue.

REST and MCP share the lanes, so that the limits apply to the whole server.

A save waits for the model and the disk, and an import takes long: if they shared their threads with
searches, a few of them would leave no thread for a search. An export takes long: it delays neither
searches nor saves.

Every API key has a queue of its own, and the keys take turns: a key with a hundred requests waiting
delays another key's request by one. A request whose client hangs up leaves its queue.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Literal, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from byheart.errors import ByheartError
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass

Result = TypeVar("Result")
Lane = Literal["read", "write", "export"]
_EXPORT_THREADS = 1


class Overloaded(ByheartError):
    """Refuse a request because too many are waiting."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Identify the API key of a request, and notice when its client hangs up."""

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
    """Represent a waiting request; `turn` is set when it gets a thread or is refused."""

    __slots__ = ("refused", "turn")

    def __init__(self) -> None:
        self.turn = anyio.Event()
        self.refused = False


class _Lane:
    """Run one kind of work in a fixed number of threads, with a bounded queue."""

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)
        self._threads = self._free = threads
        self._most_waiting = most_waiting
        self._waiting = 0
        # One queue for each key with waiting requests; the first key has the next turn.
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()

    @property
    def inside(self) -> int:
        """Count the requests that run or wait."""
        return self._threads - self._free + self._waiting

    async def run(self, task: Callable[[], Result], caller: Caller) -> Result:
        """Run a task when a thread is free; refuse it when too many wait already."""
        await self._enter(caller)
        try:
            return await anyio.to_thread.run_sync(task, limiter=self._limiter)
        finally:
            self._pass_on()

    async def _enter(self, caller: Caller) -> None:
        if self._free:  # then no request waits: a freed thread goes to a waiting request at once
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
        """Refuse the latest request of the key with the longest queue, unless it is this key."""
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
            self._queues[key] = queue  # the key goes to the end

    def _leave(self, key: str, waiter: _Waiter) -> None:
        """Remove a cancelled request; if it already had a thread, pass the thread on."""
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
        self._lanes: dict[Lane, _Lane] = {
            "read": _Lane(settings.max_concurrent_reads, waiting),
            "write": _Lane(settings.max_concurrent_writes, waiting),
            "export": _Lane(_EXPORT_THREADS, waiting),
        }
        self._stops: list[Callable[[], None]] = []

    def at_end(self, stop: Callable[[], None]) -> None:
        """Have an endless answer stopped when the server stops."""
        self._stops.append(stop)

    def end(self) -> None:
        """Stop the endless answers: no other work has to be stopped, because it ends by itself."""
        for stop in self._stops:
            stop()

    async def run(
        self, lane: Lane, task: Callable[[], Result], caller: Caller | None = None
    ) -> Result:
        """Run a task in a thread of its lane; it runs to its end even if its client hangs up."""
        return await self._lanes[lane].run(task, caller or Caller())

    def under_way(self) -> dict[Lane, int]:
        """Count the requests that run or wait now, by lane."""
        return {name: lane.inside for name, lane in self._lanes.items()}
