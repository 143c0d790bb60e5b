"""Rank candidates in one list, best first, for any depth of paging.

The list is made in tiers: the first 300 chunks of each retriever are fused, then the next 2,700,
and so on. For passages the tiers are the first 100, then 900. A page of more than 33 passages, or 6
sections, begins with a larger tier (`results._depth`): three times the number of chunks needed.

Superseded memories come after all others, and are ranked among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from byheart.contracts import Candidates, Figures, Index, Question, Vectors, Weighing
from byheart.language.terms import is_one_word, query_terms
from byheart.language.word_pieces import terms_of_question, words_of_pieces
from byheart.search.evidence_fusion import (
    VECTOR_WEIGHT,
    rank_by_evidence,
    weigh_nearness,
    weigh_words,
)
from byheart.search.feedback import describe_question, feedback_gains
from byheart.search.named_times import find_nearness, names_nothing_else, read_times
from byheart.search.rank_fusion import RRF_K, fuse
from byheart.search.ranked_rows import (
    KEYWORDS,
    VECTOR,
    Fused,
    Mask,
    Ordered,
    add_times,
    apply_gains,
    keep_order,
    prefer_times,
    put_aside,
)
from byheart.search.request import SearchRequest
from byheart.search.side_files import PathsOf, asks_for_side_files, file_factors
from byheart.startup.late_numpy import np
from byheart.system import clock

if TYPE_CHECKING:
    from byheart.language.raw_query import RawQuery

FIRST_TIER = 300
# This is enough for the ten passages or sections of a page (docs/quality-method.md).
FIRST_PASSAGES = 100
_TIER_GROWTH = 10


class Best(NamedTuple):
    """Hold the first chunk of a list, the candidates it was chosen from, and its lead.

    The lead is how much its score exceeds the best one of another memory, if scores are evidence or
    BM25: reciprocal ranks have no lead, and that of cosines says nothing.
    """

    fused: Fused
    found: Candidates
    lead: float | None


class Ranking:
    """Rank the chunks that answer a request, best first, as far as the caller reads them.

    With a `weighing`, each tier also has the chunks of memories that stand out by themselves. With
    `paths_of`, tests and generated files come after the source.
    """

    def __init__(
        self,
        request: SearchRequest,
        index: Index,
        vector: Vectors | None,
        first_tier: int,
        weighing: Weighing | None = None,
        paths_of: PathsOf | None = None,
    ) -> None:
        self._request = request
        self._index = index
        self._vector = vector
        self._first_tier = first_tier
        self._weighing = weighing
        self._raw = _parse(request.query) if request.raw else None
        self.by_words = request.mode != "vector"
        self._by_both = self.by_words and vector is not None
        self._questions: dict[bool, Question] = {}
        self._superseded: set[int] = set()
        self._may_hold_superseded = True
        # The terms of the search; those of a raw query become known from the index.
        self.terms = query_terms(request.query) if self._raw is None else self._raw.terms
        # The first chunk of the whole list.
        self.best: Best | None = None
        # The candidates of the chunk that was read last.
        self.found: Candidates | None = None
        # The description of how the final scores are made, with the weights.
        self.method = KEYWORDS if self.by_words else VECTOR
        # Cosines and reciprocal ranks are references: feedback and times move evidence alone.
        self._is_reference = not self.by_words or request.fusion == "rrf"
        # The times that the question names; raw syntax has no sentences.
        is_moved = request.time_weight > 0 and not (request.raw or self._is_reference)
        moment = request.where.as_of or clock.now()
        self.times = read_times(request.query, moment) if is_moved else ()
        self._asks_for_times = names_nothing_else(request.query, self.times)
        # Tests and generated files come later, unless the question asks for them.
        keeps_files = request.where.path is not None or asks_for_side_files(request.query)
        self._paths_of = None if request.raw or self._is_reference or keeps_files else paths_of

    @property
    def raw(self) -> bool:
        """Return whether the query is in raw syntax."""
        return self._raw is not None

    @property
    def has_lead(self) -> bool:
        """Return whether scores are evidence or BM25, whose differences mean something."""
        return not self._is_reference

    def _question(self, *, superseded: bool) -> Question:
        """Return the question about the current or the superseded memories, always the same one.

        The index keeps what it has computed for a question.
        """
        known = self._questions.get(superseded)
        if known is None:
            request = self._request
            by_terms = self.by_words and self._raw is None
            known = self._questions[superseded] = Question(
                replace(request.where, superseded=superseded),
                terms_of_question(request.query) if by_terms else None,
                self._vector,
                self._raw if self.by_words else None,
                neighbours=self._by_both and request.fusion != "rrf",
                weighing=self._weighing,
                times=tuple(each.in_micros for each in self.times),
                words_of_pieces=words_of_pieces(request.query) if by_terms else {},
            )
        return known

    def term_shares(self, fused: Fused) -> dict[str, float]:
        """Return the contribution of each term to the BM25 score of a ranked chunk."""
        question = self._question(superseded=fused.chunk_no in self._superseded)
        return self._index.term_shares(question, fused.chunk_no)

    def is_superseded(self, fused: Fused) -> bool:
        """Tell whether a chunk that was read is of a superseded memory."""
        return fused.chunk_no in self._superseded

    def __iter__(self) -> Iterator[Fused]:
        for superseded in (False, True):
            for tier in self.tiers(superseded=superseded):
                yield from tier

    def tiers(self, *, superseded: bool) -> Iterator[Iterator[Fused]]:
        """Rank either the current or the superseded memories, tier by tier."""
        seen: set[int] = set()
        for found, ordered in self.ordered(superseded=superseded):
            yield self._noted(ordered, found, seen, superseded=superseded)

    def ordered(self, *, superseded: bool) -> Iterator[tuple[Candidates, Ordered]]:
        """Order the rows of each tier, and give them with the candidates they belong to."""
        if superseded and not self._may_hold_superseded:
            return
        question = self._question(superseded=superseded)
        before: Candidates | None = None
        depth = self._first_tier
        while True:
            found = self._index.candidates(question, depth)
            if self._raw is not None:
                self.terms = list(found.terms)
            self._may_hold_superseded = found.holds_superseded
            ordered = self._rank(found, _tier(found, before))
            nearness = find_nearness(found.events, self.times)
            if nearness is not None:
                if self._asks_for_times:
                    ordered = add_times(ordered, nearness, found.chunks)
                ordered = prefer_times(ordered, 1 + self._request.time_weight * nearness)
            if self._paths_of is not None:
                ordered = put_aside(ordered, file_factors(found, self._paths_of))
            yield found, apply_gains(ordered, self._feedback(found))
            if not found.more:
                return
            before = found
            depth *= _TIER_GROWTH

    def _rank(self, found: Candidates, tier: Mask) -> Ordered:
        """Merge the rankings of the retrievers."""
        if not self._by_both:
            return keep_order(found, tier, self.method)
        if self._request.fusion == "rrf":
            self.method = f"rrf(k={RRF_K})"
            return fuse(found, tier)
        one_word = is_one_word(self._request.query)
        weight = weigh_words(found.highest_bm25, found.background, one_word=one_word)
        nearness = weigh_nearness(found)
        self.method = f"evidence({weight:.3g} bm25 + {VECTOR_WEIGHT * nearness:.3g} z^2)"
        return rank_by_evidence(found, tier, weight, nearness)

    def _feedback(self, found: Candidates) -> Figures | None:
        """Return the factor of each row by the feedback on its memory, if any has feedback."""
        half_life = self._request.feedback_half_life_days
        if not found.feedback or not half_life or self._is_reference:
            return None
        asked = describe_question(self._request.query, self._vector)
        rows = len(found.chunk_nos)
        return feedback_gains(found.feedback, rows, asked, clock.now(), half_life)

    def note_best(self, found: Candidates, ordered: Ordered) -> None:
        """Note the first chunk of the whole list, for the verdict."""
        if self.best is None:
            for fused in ordered.describe(ordered.rows[:1]):
                self.best = Best(fused, found, self._lead(ordered, found))

    def _lead(self, ordered: Ordered, found: Candidates) -> float | None:
        """Return how much the first score exceeds the best one of another memory."""
        if not self.has_lead:
            return None
        scores = ordered.scores.take(ordered.rows)
        owners = found.memory_nos.take(ordered.rows)
        others = np.flatnonzero(owners != owners[0])
        return float(scores[0] - scores[others[0]]) if len(others) else float(scores[0])

    def _noted(
        self, ordered: Ordered, found: Candidates, seen: set[int], *, superseded: bool
    ) -> Iterator[Fused]:
        for each in ordered:
            if each.chunk_no in seen:
                continue
            seen.add(each.chunk_no)
            if superseded:
                self._superseded.add(each.chunk_no)
            if self.best is None:
                self.best = Best(each, found, self._lead(ordered, found))
            self.found = found
            yield each


def _parse(query: str) -> RawQuery:
    # Imported here, because few searches are in raw syntax.
    from byheart.language.raw_query import parse_raw_query

    return parse_raw_query(query)


def _tier(found: Candidates, before: Candidates | None) -> Mask:
    """Mark the rows that a list ranks, and did not rank in the search before.

    A deeper search can also find chunks that the earlier one missed.
    """
    tier = np.zeros(len(found.chunk_nos), np.bool_)
    for name in ("keyword_ranks", "vector_ranks", "prominence_ranks", "time_ranks"):
        ranks = getattr(found, name)
        if ranks is None:
            continue
        listed = ranks >= 0
        if before is not None:
            ranked_before = before.chunk_nos[getattr(before, name) >= 0]
            listed &= ~np.isin(found.chunk_nos, ranked_before)
        tier |= listed
    return tier
