"""What is asked of a search, already checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from byheart.model import Filter, Fusion, Granularity, Mode


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question and how it is to be answered; an empty query asks for a listing."""

    query: str
    where: Filter
    limit: int = 10
    offset: int = 0
    mode: Mode = "hybrid"
    fusion: Fusion = "evidence"
    granularity: Granularity = "fine"
    raw: bool = False
    explain: bool = False
    snippet_chars: int = 500


class Weights(NamedTuple):
    """How much each part of a memory's worth counts; only their proportions matter."""

    relevance: float = 0.4
    importance: float = 0.3
    recency: float = 0.2
    frequency: float = 0.1


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question, how its answers are weighed, and how many tokens they may take."""

    question: SearchRequest
    max_tokens: int = 1000
    weights: Weights = Weights()  # noqa: RUF009 - a named tuple does not change
