"""Fuse the rankings of two retrievers into one, by rank alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Candidates

RRF_K = 60
KEYWORDS, VECTOR = "fts", "vector"

Mask = NDArray[np.bool_]


class Place(NamedTuple):
    """Hold a chunk's rank in one retriever (from 0, None if not found), score and contribution."""

    rank: int | None
    score: float
    contribution: float


class Fused(NamedTuple):
    """Hold a chunk with its final score, its place in each retriever, and its neighbours' share."""

    chunk_no: int
    memory_no: int
    score: float
    places: Mapping[str, Place]
    # The cosine of the best window, if both the chunk and the question have vectors.
    cosine: float | None
    beside: float = 0.0


def reciprocal_rank(rank: int) -> float:
    """Return the value of a rank: `1 / (60 + rank + 1)` with rank from 0."""
    return 1 / (RRF_K + rank + 1)


def fuse(found: Candidates, tier: Mask) -> Iterator[Fused]:
    """Merge rankings by Reciprocal Rank Fusion; ties go to better scores, then to older chunks."""
    rows = np.flatnonzero(tier)
    totals, scores = np.zeros(len(rows)), np.zeros(len(rows))
    for ranks, figures in (
        (found.keyword_ranks[rows], found.bm25[rows]),
        (found.vector_ranks[rows], found.cosines[rows]),
    ):
        ranked = ranks >= 0
        totals[ranked] += 1 / (RRF_K + ranks[ranked] + 1)
        scores[ranked] += figures[ranked]
    # Rows are already ordered by age, and the sort is stable.
    for at in np.lexsort((-scores, -totals)).tolist():
        # Make the results one by one, since a page needs only 11 of hundreds.
        yield _fused(found, int(rows[at]), float(totals[at]), _places(found, int(rows[at])))


def _places(found: Candidates, row: int) -> Iterator[tuple[str, Place]]:
    keyword_rank, vector_rank = int(found.keyword_ranks[row]), int(found.vector_ranks[row])
    if keyword_rank >= 0:
        value = reciprocal_rank(keyword_rank)
        yield KEYWORDS, Place(keyword_rank, float(found.bm25[row]), value)
    if vector_rank >= 0:
        yield VECTOR, Place(vector_rank, float(found.cosines[row]), reciprocal_rank(vector_rank))


def keep_order(found: Candidates, tier: Mask, retriever: str) -> Iterator[Fused]:
    """Return the ranking of a single retriever unchanged, with its scores as final scores."""
    ranks = found.keyword_ranks if retriever == KEYWORDS else found.vector_ranks
    scores = found.bm25 if retriever == KEYWORDS else found.cosines
    rows = np.flatnonzero(tier)
    for row in rows[np.argsort(ranks[rows])].tolist():
        score = float(scores[row])
        place = Place(int(ranks[row]), score, score)
        yield _fused(found, row, score, [(retriever, place)])


def _fused(found: Candidates, row: int, score: float, places: Iterable[tuple[str, Place]]) -> Fused:
    return Fused(
        int(found.chunk_nos[row]),
        int(found.memory_nos[row]),
        score,
        dict(places),
        cosine_of(found, row),
    )


def cosine_of(found: Candidates, row: int) -> float | None:
    """Return the cosine of a row, or None if it has none."""
    cosine = float(found.cosines[row])
    return None if np.isnan(cosine) else cosine
