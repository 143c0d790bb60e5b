"""Limit the size and speed of request bodies, and the request rate per API key and address."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byheart.interfaces.rest.problems import Problem

# A body that is refused early is still read to its end, within these bounds: otherwise a client
# that is still sending finds the connection broken, and never sees the answer. The bounds are low
# for callers without an API key, to save bandwidth.
_MOST_DRAINED_BYTES, _MOST_DRAINED_SECONDS = 256_000_000, 5.0
_MOST_DRAINED_OF_STRANGERS_BYTES, _MOST_DRAINED_OF_STRANGERS_SECONDS = 1_000_000, 1.0
_MINUTE_SECONDS = 60.0
_TOO_SLOW = 408
# A body that arrives more slowly counts as stalled.
_LEAST_BYTES_PER_SECOND = 1_000
# The limit for calls without a text to save; the longest query with all filters fits.
MOST_BYTES_OF_CALL = 1_000_000
_SEND_IN_PARTS = "send it in parts, or raise max_body_bytes"


class Rate:
    """Limit the requests per minute of each name, with a bucket that refills steadily.

    A name may send a whole minute's requests at once; then it waits for the bucket to refill.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(per_minute)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._swept = clock()

    def __len__(self) -> int:
        """Count the names that are remembered."""
        return len(self._buckets)

    def wait_seconds(self, name: str) -> float:
        """Count a request; return the seconds to wait if it is one too many, otherwise 0."""
        if not self._most:
            return 0.0
        now, per_second = self._clock(), self._most / _MINUTE_SECONDS
        self._forget_idle(now)
        left, since = self._buckets.get(name, (self._most, now))
        left = min(self._most, left + (now - since) * per_second)
        allowed = left >= 1
        self._buckets[name] = (left - allowed, now)
        return 0.0 if allowed else (1 - left) / per_second

    def _forget_idle(self, now: float) -> None:
        """Drop the buckets that are full again: a name without a bucket starts with a full one."""
        if now - self._swept < _MINUTE_SECONDS:
            return
        self._swept = now
        self._buckets = {
            name: bucket
            for name, bucket in self._buckets.items()
            if now - bucket[1] < _MINUTE_SECONDS
        }


def too_often(who: str, wait_seconds: float) -> Problem:
    """Make the problem 429, with the time to wait before the next request."""
    return Problem(
        429,
        f"{who} asks more often than max_requests_per_minute allows",
        "wait as long as the header Retry-After says",
        {"Retry-After": str(math.ceil(wait_seconds))},
    )


class RateLimit:
    """Answer 429 to an API key that sends too many requests."""

    def __init__(self, app: ASGIApp, rate: Rate) -> None:
        self._app = app
        self._rate = rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request of an API key; pass it on or refuse it."""
        token = scope.get("state", {}).get("token")
        wait = 0.0 if token is None else self._rate.wait_seconds(token)
        if wait:
            await too_often("this API key", wait).send(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def limit_body(receive: Receive, most_bytes: int, hint: str = "send less") -> Receive:
    """Count the bytes of a request as they are read; raise `Problem` 413 at one too many."""
    counted = 0

    async def receive_counted() -> Message:
        nonlocal counted
        message = await receive()
        counted += len(message.get("body", b""))
        if counted > most_bytes:
            raise too_large(most_bytes, hint)
        return message

    return receive_counted


def too_large(most_bytes: int, hint: str) -> Problem:
    """Make the problem 413, with the largest size allowed."""
    return Problem(413, f"the body has more than {most_bytes:,} bytes", hint)


def hurry_body(receive: Receive, seconds: float) -> Receive:
    """Raise `Problem` 408 when a body stalls for `seconds`, or arrives too slowly."""
    waited, counted, ended = 0.0, 0, False

    async def receive_in_time() -> Message:
        nonlocal waited, counted, ended
        if ended:  # the caller now waits for the client to disconnect
            return await receive()
        began = anyio.current_time()
        with anyio.move_on_after(seconds + counted / _LEAST_BYTES_PER_SECOND - waited):
            message = await receive()
            waited += anyio.current_time() - began
            counted += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            return message
        raise Problem(
            _TOO_SLOW,
            f"the body stopped for {seconds:g} seconds, or comes too slowly",
            "send it faster, or raise client_timeout_seconds",
        )

    return receive_in_time


class BodyLimit:
    """Answer 413 to a body that is too large, 408 to one that is too slow."""

    def __init__(self, app: ASGIApp, max_bytes: int, timeout_seconds: float) -> None:
        self._app = app
        self._most = max_bytes
        self._timeout_seconds = timeout_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the bytes of a request as they are read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if announced_bytes(scope) > self._most:
            await too_large(self._most, _SEND_IN_PARTS).send(scope, receive, send)
        else:
            in_time = hurry_body(receive, self._timeout_seconds)
            await self._app(scope, limit_body(in_time, self._most, _SEND_IN_PARTS), send)


class Patience:
    """Read the rest of a body before a refusal is sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and watch whether its body was read to the end."""
        if scope["type"] != "http" or not _is_sending(scope):
            await self._app(scope, receive, send)
            return
        ended = False

        async def receive_watched() -> Message:
            nonlocal ended
            message = await receive()
            ended = not message.get("more_body", False)
            return message

        async def send_late(message: Message) -> None:
            if message["type"] == "http.response.start" and not ended:
                if message["status"] == _TOO_SLOW:
                    pass  # the server has already waited for the body
                elif scope["state"].get("grant") is not None:
                    await drain(_MOST_DRAINED_BYTES, _MOST_DRAINED_SECONDS)
                else:
                    await drain(
                        _MOST_DRAINED_OF_STRANGERS_BYTES, _MOST_DRAINED_OF_STRANGERS_SECONDS
                    )
                if not ended:  # otherwise the server reads the rest, to reuse the connection
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        async def drain(most_bytes: int, most_seconds: float) -> None:
            read = 0
            with anyio.move_on_after(most_seconds):
                while not ended and read < most_bytes:
                    read += len((await receive_watched()).get("body", b""))

        await self._app(scope, receive_watched, send_late)


def announced_bytes(scope: Scope) -> int:
    """Return the size of the body that a request announces."""
    text = Headers(scope=scope).get("content-length", "0")
    return int(text) if text.isdecimal() else 0


def _is_sending(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    if headers.get("expect", "").lower() == "100-continue":
        return False  # the client waits for permission before it sends the body
    return "transfer-encoding" in headers or announced_bytes(scope) > 0
