"""Serving many clients over HTTP, at `/mcp` of `byheart serve`.

Tokens, Host, Origin and the size of bodies are looked at before anything comes here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from byheart.interfaces.mcp.lazy_store import OpenStore
from byheart.interfaces.mcp.server import make_server
from byheart.interfaces.operations import Grant
from byheart.interfaces.rest.work import Work
from byheart.memory_store import MemoryStore
from byheart.settings import Settings

PATH = "/mcp"


class McpOverHttp:
    """The door for agents as part of the server: a route, and what lives as long as the server."""

    def __init__(self, store: MemoryStore, settings: Settings, work: Work) -> None:
        # The threads of the whole server: what waits is bounded, and what runs when the server is
        # stopped is waited for.
        server = make_server(OpenStore(store, settings), _grant_of, work.run)
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
        self.route = Route(PATH, self, methods=["POST"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._sessions.handle_request(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Live as long as the server."""
        async with self._sessions.run():
            yield


def _grant_of(context: Any) -> Grant:
    """Give what the token of the request allows."""
    grant: Grant = context.request.scope["state"]["grant"]
    return grant
