"""Send the log records of a call to the client that made it, as MCP's log messages."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPDeprecationWarning

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

# The protocol's levels, as numbers of Python's logging.
_LEVELS: Mapping[types.LoggingLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO + 5,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL + 5,
    "emergency": logging.CRITICAL + 10,
}


Result = TypeVar("Result")


class _Call(NamedTuple):
    context: Context
    loop: asyncio.AbstractEventLoop


_call: ContextVar[_Call | None] = ContextVar("call", default=None)


class ClientLog(logging.Handler):
    """Send records of the level that the client chose; `warning` and above until it chooses.

    Only the owner's own client gets them, because records may name files of the store.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._logger = logging.getLogger("byheart")
        self._own_level = self._logger.level
        self._logger.addHandler(self)

    async def set_level(
        self, _context: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Answer `logging/setLevel`."""
        self.setLevel(_LEVELS[params.level])
        # A logger passes on no record below its own level, or that of its parents.
        usual = self._own_level or logging.getLogger().level
        self._logger.setLevel(min(usual, self.level))
        return types.EmptyResult()

    def during(
        self, context: Context, loop: asyncio.AbstractEventLoop, task: Callable[[], Result]
    ) -> Result:
        """Run a task, and send the records of its thread to the client of a call."""
        token = _call.set(_Call(context, loop))
        try:
            return task()
        finally:
            _call.reset(token)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record to the client whose call this thread answers."""
        call = _call.get()
        if call is None:
            return
        level = next(
            name for name, number in reversed([*_LEVELS.items()]) if record.levelno >= number
        )
        with warnings.catch_warnings():  # it is deprecated only for clients of 2026-07-28
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            sending = call.context.session.send_log_message(
                level, record.getMessage(), record.name, call.context.request_id
            )
        asyncio.run_coroutine_threadsafe(sending, call.loop)
