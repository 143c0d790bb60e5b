"""Define the ledger, which adds up the counts of all processes."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import NamedTuple, Protocol

from byheart.model import BenchRun, SlowQuery
from byheart.startup.dataclass_types import dataclass


class Count(NamedTuple):
    """Identify a count by its space (`""` is the whole store), its name and its kind."""

    space: str
    name: str
    kind: str
    bucket: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """Hold counts: `counts` add up, `latest` keeps the last value, `slowest` is by space.

    `runs` are the figures of benchmark runs, oldest first; the latest ones of each space are kept.
    """

    counts: dict[Count, float] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)
    slowest: dict[str, list[SlowQuery]] = field(default_factory=dict)
    since: datetime | None = None
    runs: tuple[BenchRun, ...] = ()


class Ledger(Protocol):
    """Add up the counts of all processes. The ledger never raises: its counts are not essential."""

    def add(self, tally: Tally) -> bool:
        """Add the counts and runs of one process; say whether they could be written."""
        ...

    def read(self, space: str) -> Tally:
        """Give the counts of a space and of the whole store, and the runs of the space."""
        ...

    def reset(self, space: str) -> None:
        """Reset the counts of a space and of the whole store."""
        ...

    def clear_queries(self) -> None:
        """Remove the text of every query, also of past queries that other processes add later."""
        ...
