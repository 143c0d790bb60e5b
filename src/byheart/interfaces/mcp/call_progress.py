"""Report the progress of a call to its client, and stop the call if the client cancels it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

from byheart.errors import ByheartError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from byheart.memory.batches import Progress

# More reports than this would only keep the client busy.
_SECONDS_BETWEEN = 0.1


class Cancelled(ByheartError):
    """End a call that its client cancelled."""


class CallProgress:
    """Report from a worker thread; reporting is also where a cancelled call ends."""

    def __init__(
        self, context: ServerRequestContext[Any, Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._context = context
        self._loop = loop
        self._cancelled = threading.Event()
        self._next_at = 0.0

    def cancel(self) -> None:
        """Let the call end at its next report."""
        self._cancelled.set()

    def __call__(self, progress: Progress) -> None:
        """Report the vectors that were made."""
        done, total = progress.vectors, progress.vectors_total
        if self._cancelled.is_set():
            raise Cancelled(f"cancelled after {done} of {total} vectors; the text is saved")
        if (now := time.monotonic()) < self._next_at and done < total:
            return
        self._next_at = now + _SECONDS_BETWEEN
        sending = self._context.session.report_progress(done, total, "making vectors")
        asyncio.run_coroutine_threadsafe(sending, self._loop)
