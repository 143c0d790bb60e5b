"""Limit how many clients are connected, and how long each may keep the server waiting.

uvicorn closes a connection that is idle between two requests, but it waits forever for the end of a
request's head, and for a client that does not read its answer. `limits.py` limits the time that a
body may take.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from byheart.interfaces.rest.problems import Problem
from byheart.settings import Settings

_CHECKS_PER_TIMEOUT = 4
# How long a refused connection stays open. If the server closed it with bytes unread, the client
# would see a broken connection instead of the answer.
_LINGER_SECONDS = 1.0
_MORE_CONNECTIONS = "ask again in a moment, or raise max_connections"


class Connection(H11Protocol):
    """Watch one connection, and close it if its client stalls."""

    most: ClassVar[int]
    timeout_seconds: ClassVar[float]

    # Since when the server waits for a request's head; `None` while it carries out a request.
    _waiting_since: float | None = None
    _refused = False
    _next_check: asyncio.TimerHandle | None = None
    # How many bytes of answers the client has not read yet, and since when that number is the same.
    _unsent = 0
    _unsent_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start watching a connection; refuse it if too many are in use."""
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._check_later()
        if len(self.connections) > 2 * self.most:
            transport.abort()  # too many even to answer each with a refusal
        elif len(self.connections) > self.most and not self._make_room():
            self._answer(
                Problem(503, f"{self.most} connections are in use", _MORE_CONNECTIONS),
                ((b"retry-after", b"1"),),
            )

    def data_received(self, data: bytes) -> None:
        """Process received bytes, unless the connection was refused."""
        if not self._refused:
            super().data_received(data)
            self._note_waiting()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._note_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection."""
        if self._next_check is not None:
            self._next_check.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close when the server stops; a refused connection already has its answer."""
        if self._refused:
            self.transport.abort()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not an HTTP request in the form of every other error."""
        self._answer(Problem(400, msg, "send a request of HTTP/1.1"))

    def _note_waiting(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = self.loop.time()

    def _make_room(self) -> bool:
        """Close the longest idle connection if too many are in use; tell whether there is room."""
        others = [cast(Connection, each) for each in self.connections if each is not self]
        used = [each for each in others if not each._refused and not each.transport.is_closing()]
        if len(used) < self.most:
            return True
        waiting = [each for each in used if each._waiting_since is not None]
        if not waiting:
            return False
        min(waiting, key=lambda each: each._waiting_since or 0.0).transport.close()
        return True

    def _check_later(self) -> None:
        delay = self.timeout_seconds / _CHECKS_PER_TIMEOUT
        self._next_check = self.loop.call_later(delay, self._check)

    def _check(self) -> None:
        """Close the connection if its client has stalled for too long."""
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        if unsent and now - self._unsent_since >= self.timeout_seconds:
            self.transport.abort()
            return
        self._check_later()
        if self.transport.is_closing() or self._waiting_since is None:
            return
        if now - self._waiting_since >= self.timeout_seconds:
            self._time_out()

    def _time_out(self) -> None:
        begun, _ = self.conn.trailing_data
        if not begun:
            self.transport.close()
            return
        seconds = f"{self.timeout_seconds:g} seconds"
        self._answer(
            Problem(
                408,
                f"the head of the request did not come within {seconds}",
                "send it at once, or raise client_timeout_seconds",
            )
        )

    def _answer(self, problem: Problem, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Answer without the app, if no answer has begun yet, and close."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # tells the app that its answer is no longer wanted
            self.cycle.message_event.set()
        if self._refused or self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        self._refused = True
        answer = problem.answer({"path": ""})
        own = [(b"connection", b"close"), *answer.raw_headers, *headers]
        events = (
            h11.Response(status_code=problem.status, headers=own),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        )
        self.transport.writelines([self.conn.send(event) or b"" for event in events])
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)


def connection_class(settings: Settings) -> type[Connection]:
    """Make a connection class with the limits of the settings."""

    class LimitedConnection(Connection):
        most = min(settings.max_connections, _most_files() // 2)
        timeout_seconds = settings.client_timeout_seconds

    return LimitedConnection


def _most_files() -> int:
    """Return how many files and connections the process may have open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 10**9
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 10**9 if soft == resource.RLIM_INFINITY else soft
