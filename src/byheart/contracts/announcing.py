"""Define how callers announce questions, so that several of them cost one round trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# A call that asks the database, with nothing to do before its first question.
Asking = Callable[[], object]


class Announcing(Protocol):
    """Take questions to a database before their answers are needed."""

    def announce(self, *calls: Asking) -> None:
        """Send the first question of each call, without waiting for the answer.

        The same call, made later in the same transaction, finds the answer there. This returns
        nothing and only saves time; a database without round trips does nothing.
        """
        ...
