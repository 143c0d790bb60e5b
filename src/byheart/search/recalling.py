"""Recall memories: weigh every memory that matches, and return as many as a budget allows.

Relevance, importance, recency and frequency choose the memories together. Among many chunks, the
candidates are the first chunks of each retriever, and those of memories that stand out by
importance, recency or frequency (`Weighing`). A memory behind the first `NEAR` of each retriever
comes behind all others unless it is relevant: otherwise the important memories of a store would
answer every question. Superseded memories come after all current ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import mul
from typing import NamedTuple

from byheart.contracts import (
    Candidates,
    Figures,
    Numbers,
    Prominence,
    Reader,
    TextSummary,
    TokenCounter,
    Vectors,
    Weighing,
)
from byheart.contracts.ordering import best_first
from byheart.model import (
    Mode,
    RecallAnswer,
    RecallExplanation,
)
from byheart.model.answers import RELATED_FROM
from byheart.model.times import to_micros
from byheart.search.ranked_rows import Mask, Ordered
from byheart.search.ranking import FIRST_TIER, Ranking
from byheart.search.recall_budget import Budget
from byheart.search.recall_filling import RecallWriter, fill_page
from byheart.search.request import RecallRequest, Weights
from byheart.search.side_files import read_paths
from byheart.search.term_rarities import weigh_terms
from byheart.search.verdict import judge, judge_rows
from byheart.startup.late_numpy import np

RECENCY_DAYS = 30
# The first chunks of each retriever are near enough, whatever their share of the best relevance.
NEAR = FIRST_TIER
# A memory is relevant with these shares: of the best chunk's score, or of the words of the question
# that a chunk has at most.
LEAST_SHARE, LEAST_COVERAGE = 0.3, 0.5
# Among so many chunks every match is weighed, which takes a few milliseconds; among more, the
# first tier has a thousand chunks of each list.
WHOLE, _FIRST_OF_MANY = 1 << 14, 1000
_MINUTE = 60_000_000
_MINUTES_PER_DAY = 24 * 60
_DIGITS, _ORDER_DIGITS = 6, 12


def relevance_of(scores: Figures, mode: Mode, best: float) -> Figures:
    """Map chunks' scores to 0…1, so that a higher score never means less relevance.

    Evidence grows with the size of the store, so it is divided by the best chunk's evidence.
    """
    if mode == "hybrid":
        return scores / best if best > 0 else np.zeros(scores.shape)
    known = np.maximum(0.0, scores)
    return known if mode == "vector" else known / (1 + known)


def share_of_best(scores: Figures, mode: Mode, best: float, unrelated: float) -> Figures:
    """Say how relevant chunks are compared with the best one.

    A cosine counts as far as it is above that of texts that have nothing in common.
    """
    least = unrelated if mode == "vector" else 0.0
    if best <= least:
        return np.zeros(scores.shape)
    return (scores - least) / (best - least)


def recency_of(days: Figures) -> Figures:
    """Return values that fall with age: 0.37 after 30 days, 0.05 after 90; the future is 1."""
    recency: Figures = np.exp(-np.maximum(0.0, days) / RECENCY_DAYS)
    return recency


def frequency_of(accesses: Numbers) -> Figures:
    """Return values that grow with the logarithm of accesses: 0.5 after 9, 1 after 99."""
    frequency: Figures = np.minimum(1.0, np.log10(accesses + 1) / 2)
    return frequency


def days_before(moment: int, used_at: Numbers) -> Figures:
    """Count the days from times to a moment, all in microseconds, in whole minutes.

    So the pages of one recall rank memories of the same minute alike, however much later the next
    page is asked for.
    """
    days: Figures = (moment // _MINUTE - used_at // _MINUTE) / _MINUTES_PER_DAY
    return days


class _Match(NamedTuple):
    """Hold a found memory: the parts of its score, and the row of its best chunk."""

    memory_no: int
    parts: Weights
    score: float
    feedback: float
    time: float
    found: Candidates
    row: int
    in_time: bool

    def explain(self, memory_id: str) -> RecallExplanation:
        shown = Weights(*(round(part, _DIGITS) for part in self.parts))
        feedback, time = round(self.feedback, _DIGITS), round(self.time, _DIGITS)
        return RecallExplanation(
            memory_id, self.score, **shown._asdict(), feedback=feedback, time=time
        )


_Named = tuple[_Match, TextSummary]


class _Weighed(NamedTuple):
    """Hold the memories of a tier in their order: one value for each."""

    memory_nos: Numbers
    parts: tuple[Figures, ...]
    scores: Figures
    feedback: Figures
    time: Figures
    found: Candidates
    rows: Numbers
    in_time: Mask

    def matches(self, first: int, behind: int) -> Iterator[_Match]:
        """Describe the memories from one place to another."""
        here = slice(first, behind)
        parts = zip(*(part[here].tolist() for part in self.parts), strict=True)
        figures = (self.memory_nos, self.scores, self.feedback, self.time, self.rows, self.in_time)
        columns = (column[here].tolist() for column in figures)
        for number, score, gain, time, row, in_time, each in zip(*columns, parts, strict=True):
            shown = round(score, _DIGITS)
            yield _Match(number, Weights(*each), shown, gain, time, self.found, row, in_time)


class Recalled(NamedTuple):
    """Hold an answer, and the ids of the memories that count as accessed by it."""

    answer: RecallAnswer
    accessed: tuple[str, ...]


def recall(
    request: RecallRequest,
    reader: Reader,
    vector: Vectors | None,
    tokens: TokenCounter,
    writer: RecallWriter,
    now: datetime,
    unrelated: float = 0.0,
) -> Recalled:
    """Answer a request with a page of memories, listed and in full as far as the budget allows.

    A memory counts as accessed if it is given in full and has probably to do with the question: an
    unrelated question must not make memories seem useful.
    """
    asked = request.question
    finder = _Finder(request, reader, vector, now, unrelated)
    matches = finder.page()
    named = reader.summaries([match.memory_no for match in matches])
    page = list(zip(matches, named, strict=True))
    budget = Budget(tokens, request.max_tokens)
    texts = [(text, match.score) for match, text in page]
    filled = fill_page(texts, budget, reader, asked.where.space, writer)
    judgement = judge(finder.ranking, unrelated)
    answer = RecallAnswer(
        query=asked.query,
        mode=asked.mode,
        index=filled.index,
        details=filled.details,
        text=filled.text,
        total_count=finder.total,
        has_more=len(filled.index) < len(page) or asked.offset + len(page) < finder.total,
        tokens_used=budget.used,
        verdict=judgement.verdict,
        confidence=judgement.confidence,
        remark=f"damaged, so not given: {', '.join(filled.damaged)}" if filled.damaged else None,
        grounds=judgement.grounds if asked.explain else None,
        times=tuple(each.named for each in finder.ranking.times),
        explanations=tuple(match.explain(text.memory_id) for match, text in page)
        if asked.explain
        else None,
    )
    given = {each.id for each in filled.details}
    shown = [(match, text.memory_id) for match, text in page if text.memory_id in given]
    related = finder.related([match for match, _ in shown])
    used = (memory_id for match, memory_id in shown if match.memory_no in related)
    return Recalled(answer, tuple(used))


class _Finder:
    """Find the memories of a page, and count all that match."""

    def __init__(
        self,
        request: RecallRequest,
        reader: Reader,
        vector: Vectors | None,
        now: datetime,
        unrelated: float,
    ) -> None:
        self._request = request
        self._asked = request.question
        self._unrelated = unrelated
        self._moment = to_micros(request.question.where.as_of or now)
        weights = request.weights
        by_prominence = partial(_weigh_prominence, weights=weights, moment=self._moment)
        share = weights.relevance / sum(weights)
        weighing = Weighing(share, by_prominence, LEAST_COVERAGE, WHOLE)
        paths_of = read_paths(reader)
        self.ranking = Ranking(
            self._asked, reader.index, vector, _FIRST_OF_MANY, weighing, paths_of
        )
        self.total = 0

    def related(self, matches: Sequence[_Match]) -> set[int]:
        """Choose the memories that have probably to do with the question; a raw query is exact."""
        if self.ranking.raw:
            return {each.memory_no for each in matches}
        chosen: set[int] = set()
        for _, group in groupby(matches, lambda match: id(match.found)):
            tier = list(group)
            found, rows = tier[0].found, np.array([each.row for each in tier])
            rarities = weigh_terms(found) if self.ranking.by_words else None
            beside = np.any(found.neighbours.take(rows, axis=0), axis=1)
            judged = judge_rows(rows, found, self._unrelated, rarities, beside=beside)
            chosen.update(
                match.memory_no
                for match, related in zip(tier, judged, strict=True)
                if match.in_time or related >= RELATED_FROM
            )
        return chosen

    def page(self) -> list[_Match]:
        """List the matches of the page, reading as many tiers as it needs."""
        end = self._asked.offset + self._asked.limit
        page: list[_Match] = []
        passed = 0
        for superseded in (False, True):
            for tier in self._tiers(superseded=superseded):
                first, behind = (max(0, each - passed) for each in (self._asked.offset, end))
                page += tier.matches(first, behind)
                passed += len(tier.memory_nos)
                if passed >= end:
                    break
        return page

    def _tiers(self, *, superseded: bool) -> Iterator[_Weighed]:
        """Weigh the memories of each tier, each memory once, by its best chunk."""
        seen = np.empty(0, np.int64)
        best: float | None = None
        for found, ordered in self.ranking.ordered(superseded=superseded):
            self.ranking.note_best(found, ordered)
            if best is None:
                best = float(ordered.scores.take(ordered.rows[:1]).max(initial=0.0))
                self.total += found.matching_memories
            tier = self._weigh(found, ordered, seen, best)
            seen = np.concatenate((seen, tier.memory_nos))
            yield tier

    def _weigh(self, found: Candidates, ordered: Ordered, seen: Numbers, best: float) -> _Weighed:
        assert found.prominence is not None
        assert found.coverage is not None
        memory_nos = found.memory_nos.take(ordered.rows)
        first = _first_of_each(found, ordered)
        first = first[np.isin(memory_nos.take(first), seen, invert=True)]
        rows, memory_nos = ordered.rows.take(first), memory_nos.take(first)
        prominence = found.prominence.take(rows)
        scores = ordered.scores.take(rows)
        mode = self._asked.mode
        parts = (relevance_of(scores, mode, best), *_parts_of(prominence, self._moment))
        # Rounded, so that the order of equals does not depend on the last bits.
        weighed_scores = weighed(parts, self._request.weights).round(_ORDER_DIGITS)
        relevant = np.ones(len(rows), np.bool_)
        if not self.ranking.raw:
            relevant = share_of_best(scores, mode, best, self._unrelated) >= LEAST_SHARE
            relevant |= found.coverage.take(rows) >= LEAST_COVERAGE
        is_near = relevant | np.isin(memory_nos, found.memory_nos[_near(found)])
        order = best_first(weighed_scores)
        near = is_near.take(order)
        order = np.concatenate((order[near], order[~near]))
        in_time = (
            np.zeros(len(ordered.scores), np.bool_) if ordered.in_time is None else ordered.in_time
        )
        gains, by_time = (
            np.ones(len(rows)) if factors is None else factors.take(rows)
            for factors in (ordered.feedback, ordered.times)
        )
        return _Weighed(
            memory_nos.take(order),
            tuple(part.take(order) for part in parts),
            weighed_scores.take(order),
            gains.take(order),
            by_time.take(order),
            found,
            rows.take(order),
            in_time.take(rows.take(order)),
        )


def _first_of_each(found: Candidates, ordered: Ordered) -> Numbers:
    """Give the place of each memory's best chunk in an order."""
    # Memories are numbered in the order of rows, which is nearly sorted: sorting them in the order
    # of scores would take ten times as long.
    owners = np.unique(found.memory_nos, return_inverse=True)[1].take(ordered.rows)
    places = np.arange(len(owners))
    firsts = np.full(len(found.memory_nos), len(owners))
    np.minimum.at(firsts, owners, places)
    return np.flatnonzero(firsts.take(owners) == places)


def _near(found: Candidates) -> Mask:
    """Mark the first rows of each retriever."""
    near = np.zeros(len(found.chunk_nos), np.bool_)
    for ranks in (found.keyword_ranks, found.vector_ranks):
        near |= (ranks >= 0) & (ranks < NEAR)
    return near


def _parts_of(prominence: Prominence, moment: int) -> tuple[Figures, Figures, Figures]:
    """Turn prominence into importance, recency and frequency, each from 0 to 1."""
    return (
        prominence.importance / 10,
        recency_of(days_before(moment, prominence.used_at)),
        frequency_of(prominence.accesses),
    )


def _weigh_prominence(prominence: Prominence, *, weights: Weights, moment: int) -> Figures:
    """Weigh memories by their prominence alone."""
    nothing = np.zeros(len(prominence.accesses))
    return weighed((nothing, *_parts_of(prominence, moment)), weights)


def weighed(parts: Sequence[Figures], weights: Weights) -> Figures:
    """Return the weighted mean of the parts, from 0 to 1."""
    total: Figures = sum(map(mul, parts, weights), np.zeros(parts[0].shape)) / sum(weights)
    return total
