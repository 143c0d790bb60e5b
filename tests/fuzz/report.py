"""The result of a fuzz target: how many inputs were tried, and which of them failed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Count inputs, and describe each failure well enough to repeat it."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
