"""How much and how often: the size of bodies, and the rate of each token."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byheart.interfaces.rest.problems import Problem

# What is refused before it was read is read to its end all the same, within these bounds: a client
# that is still sending would find the connection broken, and never see the answer.
_MOST_DRAINED_BYTES, _MOST_DRAINED_SECONDS = 256_000_000, 5.0


class Rate:
    """Let each token ask so often in a minute: all at once, then as fast as its bucket fills."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(per_minute)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_seconds(self, token: str) -> float:
        """Count a request; say how long to wait if it is one too many."""
        if not self._most:
            return 0.0
        now, per_second = self._clock(), self._most / 60
        left, since = self._buckets.get(token, (self._most, now))
        left = min(self._most, left + (now - since) * per_second)
        allowed = left >= 1
        self._buckets[token] = (left - allowed, now)
        return 0.0 if allowed else (1 - left) / per_second


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
            problem = Problem(
                429,
                "this token asks more often than max_requests_per_minute allows",
                "wait as long as the header Retry-After says",
                {"Retry-After": str(math.ceil(wait))},
            )
            await problem.send(scope, receive, send)
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
                with anyio.move_on_after(_MOST_DRAINED_SECONDS):
                    await drain()
            await send(message)

        async def drain() -> None:
            read = 0
            while not ended and read < _MOST_DRAINED_BYTES:
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
