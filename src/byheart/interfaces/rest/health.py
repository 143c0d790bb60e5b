"""Report whether the server is alive, and ready to answer from its store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import anyio
import anyio.to_thread

from byheart.errors import ByheartError, spell_hint
from byheart.interfaces.rest.hints import spell_request
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore

_READY, _NOT_READY = "ready", "not ready"
_REMEMBERED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the process answers at all."""

    status: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the store answers, and whether all of it does, with the reason."""

    status: str
    degraded: bool
    reason: str | None


class Watch:
    """Check the store, and remember the result for a moment, however many callers ask.

    The check has its own thread: callers without an API key may ask for it, and must not use up
    the threads of the others.
    """

    def __init__(self, store: MemoryStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._looking = anyio.Lock()
        self._thread = anyio.CapacityLimiter(1)
        self._seen: tuple[float, Readiness] | None = None

    async def look(self, *, tell: bool) -> tuple[Readiness, int]:
        """Return the readiness, and the status to answer with.

        The reason of a degraded answer is for callers that `tell` is set for. Everybody may know
        why the store does not answer: that text names neither the store nor its contents.
        """
        found = self._remembered()
        if found is None:
            async with self._looking:  # callers that waited for the lock find the result remembered
                found = self._remembered()
                if found is None:
                    now = self._clock()
                    found = await anyio.to_thread.run_sync(self._ask, limiter=self._thread)
                    self._seen = (now, found)
        if found.status == _NOT_READY:
            return found, 503
        return (found if tell else replace(found, reason=None)), 200

    def _remembered(self) -> Readiness | None:
        if self._seen is None or self._clock() - self._seen[0] >= _REMEMBERED_SECONDS:
            return None
        return self._seen[1]

    def _ask(self) -> Readiness:
        try:
            degraded = self._store.status().degraded
        except ByheartError as error:
            return Readiness(_NOT_READY, True, spell_hint(error.message, spell_request))
        return Readiness(_READY, degraded is not None, degraded)
