"""Ranking: the legs of a search and the order they give together.

The order of a question is one list, however it is paged. It is made in tiers: the first 300 of each
leg are fused (three for each hit of a page of 100), then the next 2,700, and so on. A deeper page
never moves an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from byheart.contracts import Ranked, Reader, Vectors
from byheart.search.fusion import Fused, fuse, keep_order
from byheart.search.request import SearchRequest
from byheart.words import query_terms, raw_query_terms

FIRST_TIER = 300
_TIER_GROWTH = 10

Leg = Callable[[int], list[Ranked]]


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
        placed: dict[str, set[int]] = {leg: set() for leg in self.legs}
        depth = FIRST_TIER
        while True:
            found = {leg: list(enumerate(rank(depth))) for leg, rank in self.legs.items()}
            # Not only what lies behind the last tier: a deeper look can find what it had missed.
            tier = {
                leg: [each for each in ranking if each[1].chunk_no not in placed[leg]]
                if placed[leg]
                else ranking
                for leg, ranking in found.items()
            }
            fused = keep_order(*next(iter(tier.items()))) if len(tier) == 1 else fuse(tier)
            for each in fused:
                if each.chunk_no not in seen:
                    seen.add(each.chunk_no)
                    yield each
            if all(len(ranking) < depth for ranking in found.values()):
                return
            for leg, ranking in tier.items():
                placed[leg].update(each.chunk_no for _, each in ranking)
            depth *= _TIER_GROWTH
