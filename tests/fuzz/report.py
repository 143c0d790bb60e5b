"""The result of a fuzz target."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """How many cases were tried, and a line for each that failed."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
