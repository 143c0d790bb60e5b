"""Ranking: the legs of a search and the order they give together.

The order of a question is one list, however it is paged. It is made in tiers: the first 300 of each
leg are fused (three for each hit of a page of 100), then the next 2,700, and so on. Neither a
deeper page nor a larger limit moves what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Ranked, Reader, Vectors
from byheart.search.fusion import Fused, Tier, fuse, keep_order
from byheart.search.request import SearchRequest
from byheart.words import query_terms, raw_query_terms

FIRST_TIER = 300
_TIER_GROWTH = 10

Leg = Callable[[int], Ranked]


class Ranking:
    """The chunks that answer a request, best first, as far as they are asked for."""

    def __init__(self, request: SearchRequest, reader: Reader, vector: Vectors | None) -> None:
        self._reader = reader
        self.where = request.where
        self.terms = (raw_query_terms if request.raw else query_terms)(request.query)
        self.legs = self._legs(request, vector)

    def _legs(self, request: SearchRequest, vector: Vectors | None) -> dict[str, Leg]:
        reader, where = self._reader, request.where
        legs: dict[str, Leg] = {}
        if request.mode != "vector":
            if request.raw:
                legs["fts"] = lambda depth: reader.rank_by_syntax(request.query, where, depth)
            else:
                legs["fts"] = lambda depth: reader.rank_by_words(self.terms, where, depth)
        if vector is not None:
            legs["vector"] = lambda depth: reader.rank_by_vector(vector, where, depth)
        return legs

    def __iter__(self) -> Iterator[Fused]:
        seen: set[int] = set()
        placed = {leg: np.empty(0, np.int64) for leg in self.legs}
        depth = FIRST_TIER
        while True:
            found = {leg: rank(depth) for leg, rank in self.legs.items()}
            # Not only what lies behind the last tier: a deeper look can find what it had missed.
            tier = {leg: _without(ranked, placed[leg]) for leg, ranked in found.items()}
            fused = keep_order(*next(iter(tier.items()))) if len(tier) == 1 else fuse(tier)
            for each in fused:
                if each.chunk_no not in seen:
                    seen.add(each.chunk_no)
                    yield each
            if all(len(ranked.chunk_nos) < depth for ranked in found.values()):
                return
            placed = {leg: ranked.chunk_nos for leg, ranked in found.items()}
            depth *= _TIER_GROWTH


def _without(ranked: Ranked, placed: NDArray[np.int64]) -> Tier:
    ranks = np.flatnonzero(~np.isin(ranked.chunk_nos, placed))
    return Tier(ranks, Ranked(ranked.chunk_nos[ranks], ranked.scores[ranks]))
