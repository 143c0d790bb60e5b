"""Serve one client over stdin and stdout, and end with it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from byheart.interfaces.mcp.client_log import ClientLog
from byheart.interfaces.mcp.lazy_store import LazyStore, Opened
from byheart.interfaces.mcp.server import make_server
from byheart.interfaces.mcp.subscriptions import ConnectionSubscriptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from byheart.interfaces.mcp.tool_texts import ToolProfile
    from byheart.interfaces.operations import Grant
    from byheart.model import Access

Result = TypeVar("Result")

# More searches at once would only wait for the processor. Saves wait for the disk and for one
# another; they have their own threads, so that no number of saves keeps a search waiting.
_MOST_READS_AT_ONCE, _MOST_WRITES_AT_ONCE = 8, 4
_CLOSING_SECONDS = 0.7
_log = logging.getLogger(__name__)


def serve_stdio(open_store: Callable[[], Opened], profile_of: Callable[[], ToolProfile]) -> None:
    """Serve until the client closes stdin or ends, then exit at once."""
    store = LazyStore(open_store)
    # Ctrl-C exits at once: a cancelled server would still wait for a line from the client, or for
    # a second Ctrl-C.
    signal.signal(signal.SIGINT, lambda *_: _leave(store, 0))
    code = 0
    try:
        anyio.run(_serve, store, profile_of)
    except Exception:  # noqa: BLE001 (the outermost layer)
        _log.exception("the server failed")
        code = 1
    _leave(store, code)


async def _serve(store: LazyStore, profile_of: Callable[[], ToolProfile]) -> None:
    grant_of = partial(_owner, store)
    async with anyio.create_task_group() as tasks, stdio_server() as (read, write):
        subscriptions = ConnectionSubscriptions(store, grant_of, tasks)
        server = make_server(
            store, grant_of, _Threads().run, profile_of, subscriptions, ClientLog()
        )
        await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


class _Threads:
    """Run tasks in a fixed number of threads for reading, and another for writing."""

    def __init__(self) -> None:
        self._lanes: dict[Access, anyio.CapacityLimiter] = {
            "read": anyio.CapacityLimiter(_MOST_READS_AT_ONCE),
            "write": anyio.CapacityLimiter(_MOST_WRITES_AT_ONCE),
        }

    async def run(self, lane: Access, task: Callable[[], Result], _context: object) -> Result:
        """Run a task in a thread of its lane."""
        # When the client is gone, a task is abandoned, not awaited: each write is atomic.
        return await anyio.to_thread.run_sync(
            task, abandon_on_cancel=True, limiter=self._lanes[lane]
        )


def _owner(store: LazyStore, context: Any) -> Grant:
    """Allow the user's own client everything but to speak for the user, as the settings say.

    The history shows the client's name.
    """
    from byheart.interfaces.operations import Grant

    client = context.session.client_params
    name = client.client_info.name[:200] if client and client.client_info.name else None
    opened = store.opened  # a store that cannot be opened grants nothing to save
    return Grant(who=name, voice="agent" if opened is None else opened.settings.mcp_voice)


def _leave(store: LazyStore, code: int) -> None:
    """End the process even if threads are still working: each write is atomic."""
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(_CLOSING_SECONDS)
    sys.stderr.flush()
    os._exit(code)
