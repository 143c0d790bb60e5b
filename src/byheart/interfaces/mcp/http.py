"""Serving many clients over HTTP, at `/mcp` of `byheart serve`.

Tokens, Host, Origin and the largest size of bodies are looked at before anything comes here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byheart.errors import ByheartError
from byheart.interfaces.mcp.lazy_store import OpenStore
from byheart.interfaces.mcp.server import make_server
from byheart.interfaces.operations import Grant
from byheart.interfaces.rest.json_shape import MOST_VALUES_OF_CALL, JsonShape
from byheart.interfaces.rest.limits import (
    MOST_BYTES_OF_CALL,
    announced_bytes,
    limit_body,
    too_large,
)
from byheart.interfaces.rest.problems import Problem
from byheart.interfaces.rest.work import Caller, Work
from byheart.model import Access
from byheart.settings import Settings
from byheart.store import MemoryStore

PATH = "/mcp"
Result = TypeVar("Result")


class ClientGone(ByheartError):
    """Give up a call whose client hung up before it was begun."""


class McpOverHttp:
    """The door for agents as part of the server: a route, and what lives as long as the server."""

    def __init__(self, store: MemoryStore, settings: Settings, work: Work) -> None:
        # The threads of the whole server: what waits is bounded, and what runs when the server is
        # stopped is waited for.
        async def run(lane: Access, task: Callable[[], Result], context: Any) -> Result:
            try:
                return await work.run(lane, task, Caller.of(context.request))
            except ClientDisconnect:
                raise ClientGone("the client has hung up") from None

        server = make_server(OpenStore(store, settings), _grant_of, run)
        self._sessions = StreamableHTTPSessionManager(
            server,
            # Every request stands by itself: nothing is lost when the server starts anew, and a
            # session cannot be taken over with another token.
            stateless=True,
            json_response=True,
            max_request_body_size=settings.max_body_bytes,
            # The server's own guard has looked at them already.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        # Where every request stands by itself, there is no stream for a GET to listen to.
        self._app = CallGuard(self._sessions.handle_request, settings.max_body_bytes)
        self.route = Route(PATH, self, methods=["POST"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Live as long as the server."""
        async with self._sessions.run():
            yield


class CallGuard:
    """Refuse calls that are too large, have too many values or are nested too deeply.

    The SDK reads a body whole and parses it in the event loop, where everybody waits for it. A key
    that may only read has no text to send: its calls are small.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._most_bytes = {"read": min(MOST_BYTES_OF_CALL, max_body_bytes)}
        self._most_bytes["write"] = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at a body while it is read; answer a refusal as an error of JSON-RPC."""
        most = self._most_bytes[scope["state"]["grant"].access]
        shape = JsonShape(MOST_VALUES_OF_CALL)
        counted = limit_body(receive, most)

        async def receive_checked() -> Message:
            message = await counted()
            shape.feed(message.get("body", b""))
            return message

        try:
            if announced_bytes(scope) > most:
                raise too_large(most, "send less")
            await self._app(scope, receive_checked, send)
        except Problem as problem:
            await _refusal(problem)(scope, receive, send)


def _refusal(problem: Problem) -> Response:
    """Write a refusal as JSON-RPC, whose clients show no other kind of answer."""
    error = {"code": types.INVALID_REQUEST, "message": f"{problem.detail}; {problem.hint}"}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return Response(json.dumps(body), problem.status, media_type="application/json")


def _grant_of(context: Any) -> Grant:
    """Give what the token of the request allows."""
    grant: Grant = context.request.scope["state"]["grant"]
    return grant
