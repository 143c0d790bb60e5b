"""Define the interface of rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Reranker(Protocol):
    """Compare a question with passages, each by itself; several threads may call it at once."""

    def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        """Score each passage by how well it answers the question; a higher score is better."""
        ...
