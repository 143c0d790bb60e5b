"""What a fuzz target reports."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """How many cases were tried, and which failed: one line each, enough to repeat it."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
