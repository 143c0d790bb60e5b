"""Give each request an id and a line in the access log, and catch all remaining errors."""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from datetime import UTC, datetime
from typing import TextIO

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byheart.interfaces.rest.metrics import Metrics, Observation
from byheart.interfaces.rest.problems import Problem, instance_of, unexpected
from byheart.startup.late_patterns import late_pattern

REQUEST_ID = "X-Request-Id"
_SANE = late_pattern(r"[A-Za-z0-9._:-]{1,100}")
# The status that proxies log when the client disconnects before it is answered.
CLIENT_GONE = 499
# Answers contain private memories: no cache may keep a copy, no browser may guess their type, and
# no other page may show or embed them. A page of this server sets a policy of its own.
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_log = logging.getLogger(__name__)


class Journal:
    """Identify, time and log every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics, lines: TextIO | None) -> None:
        self._app = app
        self._metrics = metrics
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log its outcome."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        state = scope.setdefault("state", {})
        state["request_id"] = _request_id(scope)
        # Routes match the path as it was sent: an id may contain a slash if it is encoded.
        scope["path"] = instance_of(scope)
        status = size = 0

        async def send_named(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = state["request_id"]
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except ClientDisconnect:
            status = CLIENT_GONE
        except Exception as error:  # noqa: BLE001 - the outermost layer
            problem = error if isinstance(error, Problem) else unexpected(error)
            if not isinstance(error, Problem):
                _log.error(
                    "%s: %s: %s",
                    state["request_id"],
                    type(error).__name__,
                    error,
                    exc_info=_log.isEnabledFor(logging.DEBUG),
                )
            if not status:
                await problem.send(scope, receive, send_named)
        finally:
            seconds = time.perf_counter() - started
            self._metrics.observe(Observation.of(scope, status, seconds))
            self._write(scope, status, seconds, size)

    def _write(self, scope: Scope, status: int, seconds: float, size: int) -> None:
        if self._lines is None:
            return
        state = scope["state"]
        line = (
            f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z {status} {scope['method']} "
            f"{instance_of(scope)} {seconds * 1000:.1f}ms {size}B "
            f"{state.get('who', '-')!r} {state['request_id']}\n"
        )
        # A request must not fail because its log line cannot be written.
        with contextlib.suppress(OSError, ValueError):
            self._lines.write(line)
            self._lines.flush()


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _SANE.fullmatch(given) else secrets.token_hex(8)
