"""Weigh a term by its rarity: the fewer chunks contain it, the more it says about a text."""

from __future__ import annotations

import math


def rarity(chunks: int, total: int) -> float:
    """Return BM25's inverse document frequency of a term in `chunks` of `total` chunks."""
    return math.log1p((total - chunks + 0.5) / (chunks + 0.5))
