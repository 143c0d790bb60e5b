"""How much a term says about a text: the rarer it is among the chunks, the more."""

from __future__ import annotations

import math


def rarity(chunks: int, total: int) -> float:
    """Give the inverse document frequency of BM25 for a term that so many of all chunks have."""
    return math.log1p((total - chunks + 0.5) / (chunks + 0.5))
