"""Rank candidates in one list, best first, for any depth of paging.

The list is made in tiers: the first 300 chunks of each retriever are fused, then the next 2,700,
and so on. For passages the tiers are the first 100, then 900. A page of more than 33 passages, or 6
sections, begins with a larger tier (`results._depth`): three times the number of chunks needed.

Superseded memories come after all others, and are ranked among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from byheart.contracts import Candidates, Index, Question, Vectors
from byheart.language.raw_query import RawQuery, parse_raw_query
from byheart.language.terms import is_one_word, query_terms
from byheart.search.evidence_fusion import VECTOR_WEIGHT, rank_by_evidence, weigh_words
from byheart.search.rank_fusion import KEYWORDS, RRF_K, VECTOR, Fused, Mask, fuse, keep_order
from byheart.search.request import SearchRequest

FIRST_TIER = 300
# This is enough for the ten passages or sections of a page (docs/quality.md).
FIRST_PASSAGES = 100
_TIER_GROWTH = 10


class Ranking:
    """Rank the chunks that answer a request, best first, as far as the caller reads them."""

    def __init__(
        self, request: SearchRequest, index: Index, vector: Vectors | None, first_tier: int
    ) -> None:
        self._request = request
        self._index = index
        self._vector = vector
        self._first_tier = first_tier
        self._raw: RawQuery | None = parse_raw_query(request.query) if request.raw else None
        self.by_words = request.mode != "vector"
        self._by_both = self.by_words and vector is not None
        self._questions: dict[bool, Question] = {}
        self._superseded: set[int] = set()
        self._may_hold_superseded = True
        # The terms of the search; those of a raw query become known from the index.
        self.terms = query_terms(request.query) if self._raw is None else self._raw.terms
        # The first chunk of the whole list, and the candidates from which it was chosen.
        self.best: tuple[Fused, Candidates] | None = None
        # The description of how the final scores are made, with the weights.
        self.method = KEYWORDS if self.by_words else VECTOR

    @property
    def raw(self) -> bool:
        """Return whether the query is in raw syntax."""
        return self._raw is not None

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
                tuple(query_terms(request.query)) if by_terms else None,
                self._vector,
                self._raw if self.by_words else None,
                neighbours=self._by_both and request.fusion != "rrf",
            )
        return known

    def term_shares(self, fused: Fused) -> dict[str, float]:
        """Return the contribution of each term to the BM25 score of a ranked chunk."""
        question = self._question(superseded=fused.chunk_no in self._superseded)
        return self._index.term_shares(question, fused.chunk_no)

    def __iter__(self) -> Iterator[Fused]:
        for superseded in (False, True):
            for tier in self.tiers(superseded=superseded):
                yield from tier

    def tiers(self, *, superseded: bool) -> Iterator[Iterator[Fused]]:
        """Rank either the current or the superseded memories, tier by tier."""
        if superseded and not self._may_hold_superseded:
            return
        question = self._question(superseded=superseded)
        before: Candidates | None = None
        seen: set[int] = set()
        depth = self._first_tier
        while True:
            found = self._index.candidates(question, depth)
            if self._raw is not None:
                self.terms = list(found.terms)
            self._may_hold_superseded = found.holds_superseded
            ranked = self._rank(found, _tier(found, before))
            yield self._noted(ranked, found, seen, superseded=superseded)
            if not found.more:
                return
            before = found
            depth *= _TIER_GROWTH

    def _rank(self, found: Candidates, tier: Mask) -> Iterator[Fused]:
        """Merge the rankings of the retrievers."""
        if not self._by_both:
            return keep_order(found, tier, self.method)
        if self._request.fusion == "rrf":
            self.method = f"rrf(k={RRF_K})"
            return fuse(found, tier)
        one_word = is_one_word(self._request.query)
        weight = weigh_words(found.highest_bm25, found.background, one_word=one_word)
        self.method = f"evidence({weight:.3g} bm25 + {VECTOR_WEIGHT} z^2)"
        return rank_by_evidence(found, tier, weight)

    def _noted(
        self, ranked: Iterator[Fused], found: Candidates, seen: set[int], *, superseded: bool
    ) -> Iterator[Fused]:
        for each in ranked:
            if each.chunk_no in seen:
                continue
            seen.add(each.chunk_no)
            if superseded:
                self._superseded.add(each.chunk_no)
            if self.best is None:
                self.best = each, found
            yield each


def _tier(found: Candidates, before: Candidates | None) -> Mask:
    """Mark the rows that a retriever ranks, and did not rank in the search before.

    A deeper search can also find chunks that the earlier one missed.
    """
    by_words, by_vector = found.keyword_ranks >= 0, found.vector_ranks >= 0
    if before is not None:
        ranked_before = before.chunk_nos[before.keyword_ranks >= 0]
        by_words &= ~np.isin(found.chunk_nos, ranked_before)
        ranked_before = before.chunk_nos[before.vector_ranks >= 0]
        by_vector &= ~np.isin(found.chunk_nos, ranked_before)
    return by_words | by_vector
