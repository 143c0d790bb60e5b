"""Define the rows of memories that may be erased after a grace period."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason to erase a memory: it has expired, or it is of a kind and was hidden by an author.

    Everything that is given has to apply.
    """

    expired: bool = False
    kind: str | None = None
    hidden_by: str | None = None


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The time that the store has seen pass, and the values of the clocks at that moment.

    All times are in microseconds. `boot` names the run of the machine that `running` counts.
    """

    passed: int
    at: int
    running: int
    boot: str


class ServerClocks(NamedTuple):
    """The clocks of a database server, in microseconds; `boot` names the run of the server."""

    now: int
    running: int
    boot: str


class Lapsed(NamedTuple):
    """A memory that may be erased, by the row of its present text."""

    memory_no: int
    memory_id: str
    space: str


class ExpiryReader(Protocol):
    """Look up memories that may be erased.

    A mark is the time that the store had seen pass when the memory was found.
    """

    def server_clocks(self) -> ServerClocks | None:
        """Give the clocks of the server; `None` where the machine itself keeps the store."""
        ...

    def time_passed(self) -> TimePassed | None:
        """Give the time that was recorded last."""
        ...

    def unmarked(self, cause: Cause, now: datetime, limit: int) -> list[Lapsed]:
        """List memories to which a cause applies, and which have no mark."""
        ...

    def marked(
        self, cause: Cause, now: datetime, by: int, limit: int, space: str | None = None
    ) -> list[Lapsed]:
        """List memories to which a cause applies, and whose mark is at most `by`, oldest first.

        With `space`, list only memories of this space.
        """
        ...

    def marked_too_early(self, now: datetime, unless: Cause) -> list[Lapsed] | None:
        """List memories that have a mark and expire later; give `None` if none has a mark.

        Leave out memories to which the cause `unless` applies.
        """
        ...


class ExpiryRows(ExpiryReader, Protocol):
    """Look up memories that may be erased, and record the time that passes."""

    def set_time_passed(self, time: TimePassed) -> None:
        """Record the time that the store has seen pass."""
        ...
