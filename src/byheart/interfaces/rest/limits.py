"""How much and how often: the size of bodies, and the rate of each token and address."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byheart.interfaces.rest.problems import Problem

# What is refused before it was read is read to its end all the same, within these bounds: a client
# that is still sending would find the connection broken, and never see the answer. For strangers
# little is read: it is their word against our bandwidth.
_MOST_DRAINED_BYTES, _MOST_DRAINED_SECONDS = 256_000_000, 5.0
_MOST_DRAINED_OF_STRANGERS_BYTES, _MOST_DRAINED_OF_STRANGERS_SECONDS = 1_000_000, 1.0
_MINUTE_SECONDS = 60.0


class Rate:
    """Let each name ask so often in a minute: all at once, then as fast as its bucket fills."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(per_minute)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._swept = clock()

    def __len__(self) -> int:
        """Count the names that are remembered."""
        return len(self._buckets)

    def wait_seconds(self, name: str) -> float:
        """Count a request; say how long to wait if it is one too many."""
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
        """Drop the buckets that are full again: they are as good as none."""
        if now - self._swept < _MINUTE_SECONDS:
            return
        self._swept = now
        self._buckets = {
            name: bucket
            for name, bucket in self._buckets.items()
            if now - bucket[1] < _MINUTE_SECONDS
        }


def too_often(who: str, wait_seconds: float) -> Problem:
    """Say how long to wait before asking again."""
    return Problem(
        429,
        f"{who} asks more often than max_requests_per_minute allows",
        "wait as long as the header Retry-After says",
        {"Retry-After": str(math.ceil(wait_seconds))},
    )


class RateLimit:
    """Answer 429 to a token that asks too often."""

    def __init__(self, app: ASGIApp, rate: Rate) -> None:
        self._app = app
        self._rate = rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request of a token."""
        token = scope.get("state", {}).get("token")
        wait = 0.0 if token is None else self._rate.wait_seconds(token)
        if wait:
            await too_often("this token", wait).send(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class BodyLimit:
    """Answer 413 to a body that is too large, whether it says so or comes in pieces."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._most = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the bytes of a request as they are read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        counted = 0

        async def receive_counted() -> Message:
            nonlocal counted
            message = await receive()
            counted += len(message.get("body", b""))
            if counted > self._most:
                raise self._too_large()
            return message

        if _announced(scope) > self._most:
            await self._too_large().send(scope, receive, send)
        else:
            await self._app(scope, receive_counted, send)

    def _too_large(self) -> Problem:
        return Problem(
            413,
            f"the body has more than {self._most:,} bytes",
            "send it in parts, or raise max_body_bytes",
        )


class Patience:
    """Read what a client is still sending before its refusal goes out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Keep an eye on how much of a body was read."""
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
                if scope["state"].get("grant") is not None:
                    await drain(_MOST_DRAINED_BYTES, _MOST_DRAINED_SECONDS)
                else:
                    await drain(
                        _MOST_DRAINED_OF_STRANGERS_BYTES, _MOST_DRAINED_OF_STRANGERS_SECONDS
                    )
                if not ended:  # or the server would read the rest to keep the connection
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        async def drain(most_bytes: int, most_seconds: float) -> None:
            read = 0
            with anyio.move_on_after(most_seconds):
                while not ended and read < most_bytes:
                    read += len((await receive_watched()).get("body", b""))

        await self._app(scope, receive_watched, send_late)


def _announced(scope: Scope) -> int:
    text = Headers(scope=scope).get("content-length", "0")
    return int(text) if text.isdecimal() else 0


def _is_sending(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    if headers.get("expect", "").lower() == "100-continue":
        return False  # it waits to be told before it sends
    return "transfer-encoding" in headers or _announced(scope) > 0
