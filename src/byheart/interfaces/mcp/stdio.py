"""Serving one client over stdin and stdout, and not outliving it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server

from byheart.interfaces.mcp.lazy_store import LazyStore, Opened
from byheart.interfaces.mcp.server import make_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from byheart.interfaces.operations import Grant

_CLOSING_SECONDS = 0.7
_log = logging.getLogger(__name__)


def serve_stdio(open_store: Callable[[], Opened]) -> None:
    """Serve until the client closes its end or is gone, then leave at once."""
    store = LazyStore(open_store)
    code = 0
    try:
        anyio.run(_serve, store)
    except KeyboardInterrupt:
        pass
    except Exception:  # noqa: BLE001 (the outermost door)
        _log.exception("the server failed")
        code = 1
    _leave(store, code)


async def _serve(store: LazyStore) -> None:
    server = make_server(store, _owner)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _owner(context: Any) -> Grant:
    """Let the user's own client do everything, under its own name in the history."""
    from byheart.interfaces.operations import Grant

    client = context.session.client_params
    return Grant(who=client.client_info.name[:200] if client and client.client_info.name else None)


def _leave(store: LazyStore, code: int) -> None:
    """End the process, whatever a thread may still be doing: a write is whole or not there."""
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(_CLOSING_SECONDS)
    sys.stderr.flush()
    os._exit(code)
