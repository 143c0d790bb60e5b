"""Serve many clients over HTTP, at `/mcp` of `byheart serve`.

The REST layers check the API key, Host, Origin and body size before a request arrives here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.lowlevel import Server
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
from byheart.interfaces.mcp.subscriptions import Subscriptions
from byheart.interfaces.mcp.tool_texts import tool_profile
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
# A client that wants to know the progress of a call names a token for it.
_PROGRESS = b'"progressToken"'
Result = TypeVar("Result")


class ClientGone(ByheartError):
    """Give up a call because its client hung up before the call began."""


class McpOverHttp:
    """Add MCP to the HTTP server: a route, and sessions that live as long as the server."""

    def __init__(self, store: MemoryStore, settings: Settings, work: Work) -> None:
        # Calls run in the threads of the whole server: it limits how many wait, and it waits for
        # the running ones when it stops.
        async def run(lane: Access, task: Callable[[], Result], context: Any) -> Result:
            try:
                return await work.run(lane, task, Caller.of(context.request))
            except ClientDisconnect:
                raise ClientGone("the client has hung up") from None

        opened = OpenStore(store, settings)
        subscriptions = Subscriptions(opened, _grant_of)
        work.at_end(subscriptions.close)
        server = make_server(opened, _grant_of, run, lambda: tool_profile(settings), subscriptions)
        self._transport = HttpTransport(server, settings.max_body_bytes)
        # Requests share no state, so there is no stream for a GET to listen to: only POST is
        # routed.
        self.route = Route(PATH, self, methods=["POST"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._transport(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Run the transport as long as the server runs."""
        async with self._transport.run():
            yield


class HttpTransport:
    """Carry the requests of a server over HTTP, each by itself, behind the guard of calls.

    A client that asks for the progress of a call gets a stream of events, which ends with the
    answer. Every other call is answered by one JSON object.
    """

    def __init__(self, server: Server[Any], max_body_bytes: int) -> None:
        self._streams, self._answers = (
            StreamableHTTPSessionManager(
                server,
                # Requests share no state: nothing is lost when the server restarts, and no other
                # API key can take over a session.
                stateless=True,
                json_response=answers_only,
                max_request_body_size=max_body_bytes,
                # `rest/guard.py` has checked Host and Origin already.
                security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            for answers_only in (False, True)
        )
        self._app = CallGuard(self._carry, max_body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    async def _carry(self, scope: Scope, receive: Receive, send: Send) -> None:
        messages = await _read_body(receive)
        wants_progress = any(_PROGRESS in each.get("body", b"") for each in messages)
        sessions = self._streams if wants_progress and _takes_streams(scope) else self._answers

        async def receive_again() -> Message:
            return messages.pop(0) if messages else await receive()

        await sessions.handle_request(scope, receive_again, send)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the session managers."""
        async with self._streams.run(), self._answers.run():
            yield


async def _read_body(receive: Receive) -> list[Message]:
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


def _takes_streams(scope: Scope) -> bool:
    accepts = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return b"text/event-stream" in accepts.lower()


class CallGuard:
    """Refuse calls that are too large, have too many values or are nested too deeply.

    The SDK reads a whole body and parses it in the event loop, where all requests wait for it. A
    key that may only read has no text to send, so its limit is smaller.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._most_bytes = {"read": min(MOST_BYTES_OF_CALL, max_body_bytes)}
        self._most_bytes["write"] = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a body while it is read; answer a refusal as a JSON-RPC error."""
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
    """Write a refusal as JSON-RPC: its clients show no other kind of answer."""
    error = {"code": types.INVALID_REQUEST, "message": f"{problem.detail}; {problem.hint}"}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return Response(json.dumps(body), problem.status, media_type="application/json")


def _grant_of(context: Any) -> Grant:
    """Return the grant of the request's API key."""
    grant: Grant = context.request.scope["state"]["grant"]
    return grant
