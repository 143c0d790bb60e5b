"""Define the rows of memories that may be erased after a grace period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

# A reason to erase a memory. The memory of a missing file may be erased before it expires.
Cause = Literal["expired", "missing file"]


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The time that the store has seen pass, and the values of the clocks at that moment.

    All times are in microseconds. `boot` names the run of the machine that `running` counts.
    """

    passed: int
    at: int
    running: int
    boot: str


class Lapsed(NamedTuple):
    """A memory that may be erased, by the row of its present text."""

    memory_no: int
    memory_id: str


class ExpiryReader(Protocol):
    """Look up memories that may be erased.

    A mark is the time that the store had seen pass when the memory was found.
    """

    def time_passed(self) -> TimePassed | None:
        """Give the time that was recorded last."""
        ...

    def unmarked(self, cause: Cause, now: datetime, limit: int) -> list[Lapsed]:
        """List memories to which a cause applies, and which have no mark."""
        ...

    def marked(self, cause: Cause, now: datetime, by: int, limit: int) -> list[Lapsed]:
        """List memories to which a cause applies, and whose mark is at most `by`, oldest first."""
        ...

    def marked_too_early(self, now: datetime) -> list[Lapsed] | None:
        """List memories that have a mark and expire later; give `None` if none has a mark."""
        ...


class ExpiryRows(ExpiryReader, Protocol):
    """Look up memories that may be erased, and record the time that passes."""

    def set_time_passed(self, time: TimePassed) -> None:
        """Record the time that the store has seen pass."""
        ...
