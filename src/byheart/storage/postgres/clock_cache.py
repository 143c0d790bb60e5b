"""Remember the clocks of a server for a while, so that not every save asks for them."""

from __future__ import annotations

import time

from byheart.contracts import ServerClocks

_KEPT_SECONDS = 30.0
_MICROS = 1_000_000


class ClockCache:
    """The clocks of a server as one process saw them, which go on with the clock of the process."""

    def __init__(self) -> None:
        self._seen: tuple[ServerClocks, float] | None = None

    def keep(self, clocks: ServerClocks) -> None:
        """Keep the clocks that the server has just told."""
        self._seen = clocks, time.monotonic()

    def recall(self) -> ServerClocks | None:
        """Give the clocks as they are by now; `None` if the server has to be asked again."""
        if self._seen is None:
            return None
        clocks, seen_at = self._seen
        since = time.monotonic() - seen_at
        if since > _KEPT_SECONDS:
            return None
        micros = int(since * _MICROS)
        return clocks._replace(now=clocks.now + micros, running=clocks.running + micros)
