"""Candidates: what a search ranks highest, with all that is needed to choose among it."""

from __future__ import annotations

from itertools import chain, islice

from byheart.contracts import Candidate, Reader, Vectors
from byheart.search.ranking import Ranking
from byheart.search.request import SearchRequest


def gather(request: SearchRequest, reader: Reader, vector: Vectors | None) -> list[Candidate]:
    """Gather the best chunks of memories that still hold, best first."""
    if not request.query or not request.limit:
        return []
    tiers = Ranking(request, reader, vector).tiers(superseded=False)
    ranked = list(islice(chain.from_iterable(tiers), request.limit))
    numbers = [each.chunk_no for each in ranked]
    vectors = reader.vectors(numbers) if vector is not None else {}
    return [
        Candidate(found, fused.score, vectors.get(fused.chunk_no))
        for fused, found in zip(ranked, reader.chunks(numbers), strict=True)
    ]
