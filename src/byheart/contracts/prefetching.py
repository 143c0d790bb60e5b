"""Define how callers prefetch answers, so that several of them cost one round trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# A call whose first step is a question to the database.
Lookup = Callable[[], object]


class Prefetching(Protocol):
    """Send questions to a database before their answers are needed."""

    def prefetch(self, *calls: Lookup) -> None:
        """Send the first question of each call, without waiting for the answer.

        The same call, made later in the same transaction, finds its answer there. This only saves
        time; a database without round trips does nothing.
        """
        ...
