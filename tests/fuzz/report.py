"""The result of a fuzzer's run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """How many inputs were tried, and which of them failed, in words that let one repeat it."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
