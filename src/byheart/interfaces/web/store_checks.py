"""Answer what the doctor finds, for the page; a check of a large store takes long.

The checks run in a thread of their own, never twice at the same time. Their result is kept for some
minutes: loading the page again does not check the store again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from byheart.interfaces.rest.endpoints import write_json
from byheart.interfaces.rest.hints import spell_on_page
from byheart.interfaces.rest.problems import Problem
from byheart.model import ApiKey, Finding, to_wire
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore
from byheart.system import clock

DOCTOR_PATH = "/doctor"
_KEPT_SECONDS = 300.0
# A person may ask for a new check sooner, but not all the time.
_KEPT_IF_ASKED_AGAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings of the doctor, when it looked, and how long it took."""

    findings: tuple[Finding, ...]
    checked_at: datetime
    elapsed_ms: float


class StoreChecks:
    """Check the store when a page asks, and remember the findings."""

    def __init__(self, store: MemoryStore, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._looking = anyio.Lock()
        self._thread = anyio.CapacityLimiter(1)
        self._kept: tuple[float, Examination] | None = None

    async def answer(self, request: Request) -> Response:
        """Answer with the findings; `again` asks for a new check."""
        login: ApiKey | None = getattr(request.state, "login", None)
        # The findings name files of the machine and memories of every space.
        if login is None or login.space != self._store.space:
            raise Problem(
                403,
                "the findings are about the whole store: only a login to the server's own space "
                "may see them",
                "run byheart doctor on the machine of this server",
            )
        again = request.query_params.get("again") == "true"
        longest = _KEPT_IF_ASKED_AGAIN_SECONDS if again else _KEPT_SECONDS
        found = await self._look(longest)
        body = write_json(to_wire(found, spell_on_page))
        return Response(body, media_type="application/json")

    async def _look(self, longest_seconds: float) -> Examination:
        async with self._looking:  # callers that waited find the result of the one before
            if self._kept is not None and self._monotonic() - self._kept[0] < longest_seconds:
                return self._kept[1]
            found = await anyio.to_thread.run_sync(self._examine, limiter=self._thread)
            self._kept = (self._monotonic(), found)
            return found

    def _examine(self) -> Examination:
        started, at = time.perf_counter(), clock.now()
        findings = self._store.admin.doctor()
        return Examination(findings, at, round((time.perf_counter() - started) * 1000, 3))
