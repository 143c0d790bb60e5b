"""Tell every open page what any process changes, as server-sent events.

One task for each space asks the store for its changes, for all pages of that space together. It
runs only while a page is connected. A page that comes back names the last event that it got, and
gets what it missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from typing import Literal, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from byheart.errors import ByheartError
from byheart.interfaces.rest.endpoints import write_json
from byheart.interfaces.rest.problems import Problem
from byheart.interfaces.rest.work import Work
from byheart.model import ApiKey, Changes, to_wire
from byheart.store import MemoryStore
from byheart.system import clock
from byheart.upkeep.api_keys import is_valid

EVENTS_PATH = "/events"
MEDIA_TYPE = "text/event-stream"
# Pages shall learn of a change within a second.
_LOOK_SECONDS = 0.4
_AFTER_TROUBLE_SECONDS = 5.0
# Logins are looked up after so many looks.
_LOOKS_PER_LOGIN_CHECK = 4
# A line without meaning, so that proxies and the server notice a connection that is gone.
_HEARTBEAT_SECONDS = 15.0
# A page that does not read gets a hint that there is more, instead of a queue that grows.
_MOST_WAITING = 8
_MOST_STREAMS, _MOST_STREAMS_OF_LOGIN = 128, 24
_RECONNECT_MS = 1000
_log = logging.getLogger(__name__)

Result = TypeVar("Result")

# Why a stream ends: its login has ended, or the server stops and the page shall come back.
_End = Literal["bye", "stop"]


class _Listener:
    """Hold what one page has still to be told."""

    def __init__(self, login: ApiKey) -> None:
        self.login = login
        self._waiting: list[Changes] = []
        self._end: _End | None = None
        self._woken = asyncio.Event()

    def put(self, changes: Changes) -> None:
        self._waiting.append(changes)
        if len(self._waiting) > _MOST_WAITING:
            self._waiting = [Changes(changes.mark, (), more=True)]
        self._woken.set()

    def end(self, why: _End) -> None:
        self._end = why
        self._woken.set()

    async def wait(self) -> tuple[list[Changes], _End | None]:
        """Wait for something to tell, for the end, or for the next heartbeat."""
        with anyio.move_on_after(_HEARTBEAT_SECONDS):
            await self._woken.wait()
        self._woken.clear()
        taken, self._waiting = self._waiting, []
        return taken, self._end


class _Space:
    """Follow one space for the pages that show it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mark: str | None = None
        self.listeners: set[_Listener] = set()
        self.joining = anyio.Lock()
        self.task: asyncio.Task[None] | None = None


class LiveChanges:
    """Answer requests for the stream of changes."""

    def __init__(self, store: MemoryStore, work: Work) -> None:
        self._store = store
        self._spaces: dict[str, _Space] = {}
        # A thread of its own: looking for changes waits for no search, and no search for it.
        self._thread = anyio.CapacityLimiter(1)
        self._stopped = False
        work.at_end(self.stop)

    async def answer(self, request: Request) -> Response:
        """Open a stream for a page."""
        login: ApiKey | None = getattr(request.state, "login", None)
        if login is None:
            raise Problem(
                403, "the stream of changes is for the web page", "log in: run byheart open"
            )
        headers = {"X-Accel-Buffering": "no"}  # otherwise nginx collects the events
        if request.method == "HEAD":
            return Response(None, headers=headers, media_type=MEDIA_TYPE)
        self._refuse_too_many(login)
        # A browser that reconnects by itself sends the header; a page that was hidden, `since`.
        named = request.headers.get("last-event-id") or request.query_params.get("since")
        events = self._stream(_Listener(login), named)
        return StreamingResponse(events, headers=headers, media_type=MEDIA_TYPE)

    def stop(self) -> None:
        """End all streams, because the server stops; the pages come back to the next server."""
        self._stopped = True
        for space in self._spaces.values():
            for listener in space.listeners:
                listener.end("stop")

    def count(self) -> int:
        """Count the open streams."""
        return sum(len(each.listeners) for each in self._spaces.values())

    def _refuse_too_many(self, login: ApiKey) -> None:
        space = self._spaces.get(login.space)
        same = login.token_id
        own = [each for each in space.listeners if each.login.token_id == same] if space else []
        full = self.count() >= _MOST_STREAMS or len(own) >= _MOST_STREAMS_OF_LOGIN
        if full or self._stopped:
            raise Problem(
                503,
                "too many pages are open" if full else "the server stops",
                "close some of them; the others work without live changes",
                {"Retry-After": "30"},
            )

    async def _stream(self, listener: _Listener, named: str | None) -> AsyncIterator[bytes]:
        space = self._spaces.setdefault(listener.login.space, _Space(listener.login.space))
        # The listener joins before the missed changes are read: a change may be told twice, but
        # none is left out.
        space.listeners.add(listener)
        try:
            missed = await self._join(space, named)
            yield _event("hello", missed.mark, {}, retry=True)
            if missed.memories or missed.more:
                yield _changes(missed)
            while True:
                found, end = await listener.wait()
                for each in found:
                    yield _changes(each)
                if end == "bye":
                    yield _event("bye", None, {})
                if end is not None:
                    return
                if not found:
                    yield b":\n\n"
        finally:
            self._leave(space, listener)

    async def _join(self, space: _Space, named: str | None) -> Changes:
        async with space.joining:  # the first listener decides where the task begins
            missed = await self._ask(space.name, named)
            if space.mark is None:
                space.mark = missed.mark
            if space.task is None:
                space.task = asyncio.create_task(self._follow(space))
        return missed

    async def _ask(self, space: str, named: str | None) -> Changes:
        try:
            return await self._in_thread(partial(self._store.views.changes, named, space=space))
        except ByheartError:
            if named is None:
                raise
        return await self._ask(space, None)  # no mark of ours

    def _leave(self, space: _Space, listener: _Listener) -> None:
        space.listeners.discard(listener)
        if not space.listeners:
            if space.task is not None:
                space.task.cancel()
            if self._spaces.get(space.name) is space:
                del self._spaces[space.name]

    async def _follow(self, space: _Space) -> None:
        looks = 0
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            looks += 1
            try:
                if looks % _LOOKS_PER_LOGIN_CHECK == 0:
                    self._end_all_but(space, await self._in_thread(self._valid_logins))
                found = await self._in_thread(
                    partial(self._store.views.changes, space.mark, space=space.name)
                )
            except Exception as error:  # noqa: BLE001 - it is tried again
                _log.info("changes of %s could not be read: %s", space.name, error)
                await asyncio.sleep(_AFTER_TROUBLE_SECONDS)
                continue
            space.mark = found.mark
            if found.memories or found.more:
                for each in space.listeners:
                    each.put(found)

    def _valid_logins(self) -> Collection[str]:
        now = clock.now()
        keys = self._store.api_keys.list()
        return {each.token_id for each in keys if is_valid(each, "login", now)}

    def _end_all_but(self, space: _Space, valid: Collection[str]) -> None:
        for each in space.listeners:
            if each.login.token_id not in valid:
                each.end("bye")

    async def _in_thread(self, task: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(task, limiter=self._thread)


def _changes(changes: Changes) -> bytes:
    told = {"memories": to_wire(changes.memories), "more": changes.more}
    return _event("changes", changes.mark, told)


def _event(name: str, mark: str | None, data: object, *, retry: bool = False) -> bytes:
    lines = [b"event: " + name.encode(), b"data: " + write_json(data)]
    if mark is not None:
        lines.insert(0, b"id: " + mark.encode())
    if retry:
        lines.insert(0, b"retry: %d" % _RECONNECT_MS)
    return b"\n".join(lines) + b"\n\n"
