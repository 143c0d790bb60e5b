"""Describe search requests, already checked."""

from __future__ import annotations

from typing import NamedTuple

from byheart.model import Filter, Fusion, Granularity, Mode
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Describe a question and how to answer it; an empty query asks for a listing."""

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
    # The days after which feedback counts half; without them, feedback does not count.
    feedback_half_life_days: float = 0.0
    # How much a time that the question names counts; with 0, it does not count.
    time_weight: float = 0.0


class Weights(NamedTuple):
    """Weigh the parts of a memory's score; only the proportions of the weights matter."""

    relevance: float = 0.4
    importance: float = 0.3
    recency: float = 0.2
    frequency: float = 0.1


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """Describe a question, the weights of its answers, and their token limit."""

    question: SearchRequest
    max_tokens: int = 1000
    weights: Weights = Weights()
