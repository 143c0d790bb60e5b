"""Where the counts of all processes come together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from byheart.model import BenchRun, SlowQuery


class Count(NamedTuple):
    """What a number counts: in which space (`""`: the whole store), what, of which kind."""

    space: str
    name: str
    kind: str
    bucket: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted: `counts` add up, of `latest` the last stands, `slowest` are by space."""

    counts: dict[Count, float] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)
    slowest: dict[str, list[SlowQuery]] = field(default_factory=dict)
    since: datetime | None = None


class Ledger(Protocol):
    """Where the counts of all processes come together. It holds no truth, so it never raises."""

    def add(self, tally: Tally) -> bool:
        """Add what one process has counted; say whether that could be done."""
        ...

    def read(self, space: str) -> Tally:
        """Give what was counted in a space and for the whole store."""
        ...

    def reset(self, space: str) -> None:
        """Start anew for a space and the whole store."""
        ...

    def clear_queries(self) -> None:
        """Leave no text of any query behind, also of those that other processes add later."""
        ...

    def keep_run(self, run: BenchRun) -> None:
        """Keep the figures of a bench, and the latest ones before it."""
        ...

    def runs(self, space: str) -> Sequence[BenchRun]:
        """Give the figures of benches that are kept, oldest first."""
        ...
