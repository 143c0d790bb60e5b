"""Fuse the rankings of two retrievers into one, by rank alone."""

from __future__ import annotations

from byheart.contracts import Candidates, Figures, Numbers
from byheart.search.ranked_rows import Mask, Ordered, Shares, describe
from byheart.startup.late_numpy import np

RRF_K = 60


def reciprocal_rank(ranks: Numbers) -> Figures:
    """Return the value of each rank: `1 / (60 + rank + 1)` with rank from 0; 0 without a rank."""
    values: Figures = np.where(ranks >= 0, 1 / (RRF_K + ranks + 1), 0.0)
    return values


def fuse(found: Candidates, tier: Mask) -> Ordered:
    """Merge rankings by Reciprocal Rank Fusion; ties go to better scores, then to older chunks."""
    by_words, by_vector = map(reciprocal_rank, (found.keyword_ranks, found.vector_ranks))
    totals = by_words + by_vector
    scores = np.where(by_words > 0, found.bm25, 0.0) + np.where(by_vector > 0, found.cosines, 0.0)
    rows = tier.nonzero()[0]
    # Rows are already ordered by age, and the sort is stable.
    order = np.lexsort((-scores[rows], -totals[rows]))
    shares = Shares(by_words, by_vector)
    return Ordered(
        rows.take(order), totals, lambda some: describe(found, some, totals, shares, by_rank=True)
    )
