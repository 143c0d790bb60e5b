"""Ranking: the legs of a search and the order they give together.

The order of a question is one list, however deep it is paged. It is made in tiers: the first 300 of
each leg are fused, then the next 2,700, and so on; for passages the first 100, then 900. A page of
more than 33 passages, or 6 sections, begins with a larger tier (`results._depth`): three times as
many as are looked at.

What another memory has superseded comes after everything that still holds, ranked by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Ranked, Reader, Vectors
from byheart.language.terms import is_one_word, query_terms
from byheart.model import Filter
from byheart.search.evidence import VECTOR_WEIGHT, Evidence
from byheart.search.fusion import RRF_K, Fused, Tier, fuse, keep_order
from byheart.search.request import SearchRequest

FIRST_TIER = 300
# Enough for the ten passages or sections that a page shows (docs/quality.md).
FIRST_PASSAGES = 100
_TIER_GROWTH = 10

Leg = Callable[[int], Ranked]
Union = Callable[[Mapping[str, Tier]], Iterator[Fused]]


class Ranking:
    """The chunks that answer a request, best first, as far as they are asked for."""

    def __init__(
        self,
        request: SearchRequest,
        reader: Reader,
        vector: Vectors | None,
        first_tier: int,
    ) -> None:
        self._request = request
        self._first_tier = first_tier
        self._reader = reader
        self._vector = vector
        self._superseded: set[int] = set()
        self.raw = request.raw
        self.best: Fused | None = None
        self.terms = (
            reader.syntax_terms(request.query, request.where)
            if request.raw
            else query_terms(request.query)
        )
        self.legs = tuple(self._legs(request.where))
        # How the final scores are made, with the weights.
        self.method = self.legs[0]

    @property
    def by_words(self) -> bool:
        """Say whether words were looked for."""
        return "fts" in self.legs

    def _legs(self, where: Filter) -> dict[str, Leg]:
        request, reader, vector = self._request, self._reader, self._vector
        legs: dict[str, Leg] = {}
        if request.mode != "vector":
            if request.raw:
                legs["fts"] = lambda depth: reader.rank_by_syntax(
                    request.query, self.terms, where, depth
                )
            else:
                legs["fts"] = lambda depth: reader.rank_by_words(self.terms, where, depth)
        if vector is not None:
            legs["vector"] = lambda depth: reader.rank_by_vector(vector, where, depth)
        return legs

    def _union(self, where: Filter, found: Mapping[str, Ranked]) -> Union:
        """Choose how the rankings of the legs become one."""
        if len(self.legs) == 1:
            return lambda tier: keep_order(*next(iter(tier.items())))
        if self._request.fusion == "rrf":
            self.method = f"rrf(k={RRF_K})"
            return fuse
        assert self._vector is not None, "there are two legs"
        highest = float(found["fts"].scores.max(initial=0.0))
        one_word = is_one_word(self._request.query)
        evidence = Evidence(
            self._reader, self.terms, self._vector, where, highest, one_word=one_word
        )
        self.method = f"evidence({evidence.words_weight:.3g} bm25 + {VECTOR_WEIGHT} z^2)"
        return evidence.rank

    def where_of(self, fused: Fused) -> Filter:
        """Give the filter under which a chunk was ranked."""
        return replace(self._request.where, superseded=fused.chunk_no in self._superseded)

    def __iter__(self) -> Iterator[Fused]:
        for tier in self.tiers(superseded=False):
            yield from tier
        for tier in self.tiers(superseded=True):
            yield from tier

    def tiers(self, *, superseded: bool) -> Iterator[Iterator[Fused]]:
        """Rank what still holds, or what does not, tier by tier."""
        where = replace(self._request.where, superseded=superseded)
        if superseded and not self._reader.holds_superseded(where.space):
            return
        legs = self._legs(where)
        unite: Union | None = None
        seen: set[int] = set()
        placed = {leg: np.empty(0, np.int64) for leg in legs}
        depth = self._first_tier
        while True:
            found = {leg: rank(depth) for leg, rank in legs.items()}
            # Not only what lies behind the last tier: a deeper look can find what it had missed.
            tier = {leg: _without(ranked, placed[leg]) for leg, ranked in found.items()}
            # As the first tier says, in which the best are.
            unite = unite or self._union(where, found)
            yield self._noted(_unseen(unite(tier), seen), superseded=superseded)
            if all(len(ranked.chunk_nos) < depth for ranked in found.values()):
                return
            placed = {leg: ranked.chunk_nos for leg, ranked in found.items()}
            depth *= _TIER_GROWTH

    def _noted(self, ranked: Iterator[Fused], *, superseded: bool) -> Iterator[Fused]:
        for each in ranked:
            if superseded:
                self._superseded.add(each.chunk_no)
            if self.best is None:
                self.best = each
            yield each


def _unseen(ranked: Iterator[Fused], seen: set[int]) -> Iterator[Fused]:
    for each in ranked:
        if each.chunk_no not in seen:
            seen.add(each.chunk_no)
            yield each


def _without(ranked: Ranked, placed: NDArray[np.int64]) -> Tier:
    if not len(placed):
        return Tier(np.arange(len(ranked.chunk_nos)), ranked)
    ranks = np.flatnonzero(~np.isin(ranked.chunk_nos, placed))
    return Tier(ranks, Ranked(ranked.chunk_nos[ranks], ranked.scores[ranks]))
