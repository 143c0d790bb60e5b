"""Gather the chunks that a search ranks highest, with the data to choose among them."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain, islice

from byheart.contracts import Candidate, Reader, Vectors
from byheart.search.ranking import FIRST_PASSAGES, Ranking
from byheart.search.request import SearchRequest


def gather(
    request: SearchRequest, reader: Reader, vector: Vectors | None, there: Container[str]
) -> list[Candidate]:
    """Gather the best chunks of memories that are not superseded, best first.

    For each chunk of a memory that is already `there`, gather one more.
    """
    gathered: list[Candidate] = []
    if not request.query:
        return gathered
    ranking = Ranking(request, reader.index, vector, FIRST_PASSAGES)
    ranked = chain.from_iterable(ranking.tiers(superseded=False))
    wanted = request.limit
    while batch := list(islice(ranked, wanted)):
        numbers = [each.chunk_no for each in batch]
        vectors = reader.index.vectors(numbers) if vector is not None else {}
        found = reader.chunks(numbers)
        gathered += (
            Candidate(chunk, fused.score, vectors.get(fused.chunk_no))
            for fused, chunk in zip(batch, found, strict=True)
        )
        wanted = sum(chunk.memory.memory_id in there for chunk in found)
    return gathered
