"""Serving one client over stdin and stdout, and not outliving it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from byheart.interfaces.mcp.lazy_store import LazyStore, Opened
from byheart.interfaces.mcp.server import make_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from byheart.interfaces.operations import Grant
    from byheart.model import Access

Result = TypeVar("Result")

# More searches at once than this only wait for the processor, and no number of saves, which wait
# for the disk and for one another, keeps a search waiting.
_MOST_READS_AT_ONCE, _MOST_WRITES_AT_ONCE = 8, 4
_CLOSING_SECONDS = 0.7
_log = logging.getLogger(__name__)


def serve_stdio(open_store: Callable[[], Opened]) -> None:
    """Serve until the client closes its end or is gone, then leave at once."""
    store = LazyStore(open_store)
    # At once: cancelled, the server would wait for a line from the client, or a second Ctrl-C.
    signal.signal(signal.SIGINT, lambda *_: _leave(store, 0))
    code = 0
    try:
        anyio.run(_serve, store)
    except Exception:  # noqa: BLE001 (the outermost door)
        _log.exception("the server failed")
        code = 1
    _leave(store, code)


async def _serve(store: LazyStore) -> None:
    server = make_server(store, _owner, _Threads().run)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class _Threads:
    """So many threads for reading, and so many for writing."""

    def __init__(self) -> None:
        self._lanes: dict[Access, anyio.CapacityLimiter] = {
            "read": anyio.CapacityLimiter(_MOST_READS_AT_ONCE),
            "write": anyio.CapacityLimiter(_MOST_WRITES_AT_ONCE),
        }

    async def run(self, lane: Access, task: Callable[[], Result], _context: object) -> Result:
        """Run a task in a thread of its lane."""
        # Abandoned, not awaited, when the client is gone: what it wrote is whole or not there.
        return await anyio.to_thread.run_sync(
            task, abandon_on_cancel=True, limiter=self._lanes[lane]
        )


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
