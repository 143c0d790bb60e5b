"""Recall memories: weigh the memories of the ranked chunks, and return as many as a budget allows.

Every memory in the first tier of the ranking is weighed, so that an important memory is not lost
because others matched slightly better. Superseded memories come after all current ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from itertools import islice
from operator import mul
from typing import NamedTuple

from byheart.contracts import Reader, Standing, TokenCounter, Vectors
from byheart.model import (
    Memory,
    Mode,
    RecallAnswer,
    RecalledMemory,
    RecalledSummary,
    RecallExplanation,
)
from byheart.search.budget import Budget
from byheart.search.contradictions import contradiction
from byheart.search.rank_fusion import Fused
from byheart.search.ranking import FIRST_TIER, Ranking
from byheart.search.request import RecallRequest, Weights
from byheart.search.verdict import judge

RECENCY_DAYS = 30
# A long document can fill the first tier alone. With fewer than _FEW_MEMORIES memories, one more
# tier is read.
_FEW_MEMORIES, _MOST_TIERS = 100, 2
_DIGITS = 6
_DETAIL_FIELDS = tuple(each.name for each in fields(RecalledMemory))


def relevance_of(score: float, mode: Mode, best: float) -> float:
    """Map a chunk's score to 0…1, so that a higher score never means less relevance.

    Evidence grows with the size of the store, so it is divided by the best chunk's evidence.
    """
    if mode == "hybrid":
        return score / best if best > 0 else 0.0
    if mode == "vector":
        return max(0.0, score)
    return score / (1 + score)


def recency_of(age: timedelta) -> float:
    """Return a value that falls with age: 0.37 after 30 days, 0.05 after 90; the future is 1."""
    days = max(0.0, age / timedelta(days=1))
    return math.exp(-days / RECENCY_DAYS)


def frequency_of(accesses: int) -> float:
    """Return a value that grows with the logarithm of accesses: 0.5 after 9, 1 after 99."""
    return min(1.0, math.log10(accesses + 1) / 2)


class _Match(NamedTuple):
    """Hold a found memory, its rank by relevance alone, and its weighed score."""

    standing: Standing
    superseded: bool
    rank: int
    parts: Weights
    score: float

    @property
    def order(self) -> tuple[bool, float, int, str]:
        return self.superseded, -self.score, self.rank, self.standing.memory_id

    def explain(self) -> RecallExplanation:
        parts = (round(part, _DIGITS) for part in self.parts)
        return RecallExplanation(self.standing.memory_id, self.score, *parts)


def recall(
    request: RecallRequest,
    reader: Reader,
    vector: Vectors | None,
    tokens: TokenCounter,
    now: datetime,
    unrelated: float = 0.0,
) -> RecallAnswer:
    """Answer a request with a page of memories, listed and in full as far as the budget allows."""
    asked = request.question
    ranking = Ranking(asked, reader.index, vector, FIRST_TIER)
    matches = [
        match
        for superseded in (False, True)
        for match in _weigh(ranking, reader, request, superseded=superseded, now=now)
    ]
    matches.sort(key=lambda match: match.order)
    page = matches[asked.offset : asked.offset + asked.limit]
    budget = Budget(tokens, request.max_tokens)
    damaged: list[str] = []
    index, details = _fill(page, budget, reader, asked.where.space, damaged)
    judgement = judge(ranking, unrelated)
    return RecallAnswer(
        query=asked.query,
        mode=asked.mode,
        index=index,
        details=details,
        total_count=len(matches),
        has_more=len(index) < len(page) or asked.offset + len(page) < len(matches),
        tokens_used=budget.used,
        verdict=judgement.verdict,
        confidence=judgement.confidence,
        remark=f"damaged, so not given: {', '.join(damaged)}" if damaged else None,
        grounds=judgement.grounds if asked.explain else None,
        explanations=tuple(match.explain() for match in page) if asked.explain else None,
    )


def _weigh(
    ranking: Ranking, reader: Reader, request: RecallRequest, *, superseded: bool, now: datetime
) -> Iterator[_Match]:
    moment = request.question.where.as_of or now
    best = _best_chunks(ranking, superseded=superseded)
    highest = max((fused.score for fused in best.values()), default=0.0)
    for rank, (standing, fused) in enumerate(
        zip(reader.standings(list(best)), best.values(), strict=True)
    ):
        parts = Weights(
            relevance=relevance_of(fused.score, request.question.mode, highest),
            importance=standing.importance / 10,
            recency=recency_of(moment - standing.used_at),
            frequency=frequency_of(standing.access_count),
        )
        # Rounded, so that the more relevant of two nearly equal memories comes first.
        score = round(weighed(parts, request.weights), _DIGITS)
        yield _Match(standing, superseded, rank, parts, score)


def weighed(parts: Weights, weights: Weights) -> float:
    """Return the weighted mean of the parts, from 0 to 1."""
    return float(sum(map(mul, parts, weights)) / sum(weights))


def _best_chunks(ranking: Ranking, *, superseded: bool) -> dict[int, Fused]:
    """Gather the memories of the first tiers, each with its best chunk."""
    best: dict[int, Fused] = {}
    for tier in islice(ranking.tiers(superseded=superseded), _MOST_TIERS):
        for fused in tier:
            best.setdefault(fused.memory_no, fused)
        if len(best) >= _FEW_MEMORIES:
            break
    return best


def _fill(
    page: Sequence[_Match], budget: Budget, reader: Reader, space: str, damaged: list[str]
) -> tuple[tuple[RecalledSummary, ...], tuple[RecalledMemory, ...]]:
    """List memories in half of the budget, add full memories that fit, then list the rest."""
    entries = [RecalledSummary(each.standing.memory_id, each.standing.summary) for each in page]
    half = budget.left // 2
    listed = [budget.spend(budget.cost(entry, budget.left), within=half) for entry in entries]
    details = tuple(_details(page, budget, reader, space, damaged))
    index = tuple(
        entry
        for entry, done in zip(entries, listed, strict=True)
        if done or budget.spend(budget.cost(entry, budget.left))
    )
    return index, details


def _details(
    page: Sequence[_Match], budget: Budget, reader: Reader, space: str, damaged: list[str]
) -> Iterator[RecalledMemory]:
    least = budget.cost(dict.fromkeys(_DETAIL_FIELDS), budget.left)
    lengths = reader.token_counts([match.standing.text_id for match in page])
    for match in page:
        if least is None or least > budget.left:
            return  # not even the field names fit any more, so read no further memory
        if (lengths.get(match.standing.text_id) or 0) > budget.left:
            continue
        memory = reader.memory(match.standing.text_id, space)
        if memory is None:  # impossible in an undamaged store, since one snapshot has both
            raise contradiction(match.standing.text_id)
        if memory.damaged:
            damaged.append(memory.memory_id)
            continue
        entry = _detail(memory, match.score)
        if budget.spend(budget.cost(entry, budget.left)):
            yield entry


def _detail(memory: Memory, score: float) -> RecalledMemory:
    named = {name: getattr(memory, name) for name in _DETAIL_FIELDS if name not in ("id", "score")}
    return RecalledMemory(id=memory.memory_id, score=score, **named)
