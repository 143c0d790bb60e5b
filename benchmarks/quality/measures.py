"""Measures of a ranking, and how sure a difference between two runs is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

DEPTH = 10
_RESAMPLES, _SEED = 2000, 7


def measure(found: Sequence[str], gains: Mapping[str, float]) -> dict[str, float]:
    """Score the first ten of a ranking; nDCG with linear gain."""
    first = found[:DEPTH]
    ranks = [rank for rank, name in enumerate(first) if name in gains]
    best = sorted(gains.values(), reverse=True)[:DEPTH]
    gained = sum(gains[first[rank]] / math.log2(rank + 2) for rank in ranks)
    return {
        "ndcg@10": gained / sum(gain / math.log2(rank + 2) for rank, gain in enumerate(best)),
        "recall@5": sum(rank < 5 for rank in ranks) / len(gains),
        "recall@10": len(ranks) / len(gains),
        "mrr": 1 / (ranks[0] + 1) if ranks else 0.0,
        "hit@1": float(bool(ranks) and ranks[0] == 0),
    }


class Difference(NamedTuple):
    """A mean difference, and the range that holds 95 of 100 resampled ones."""

    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Say whether chance alone is an unlikely reason."""
        return self.low > 0 or self.high < 0


def compare(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Compare figures question by question, by a bootstrap over the questions."""
    differences = np.array(after) - np.array(before)
    chosen = np.random.default_rng(_SEED).integers(
        0, len(differences), (_RESAMPLES, len(differences))
    )
    means = differences[chosen].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(float(differences.mean()), float(low), float(high))
