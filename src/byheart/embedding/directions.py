"""Are these vectors that texts can be compared by?"""

from __future__ import annotations

from byheart.contracts import Vectors
from byheart.errors import EmbeddingError

# Rounding to float32 leaves a hundredth of that.
_OFF_AT_MOST = 1e-5


def to_unit_length(vectors: Vectors, name: str) -> Vectors:
    """Give vectors the length that cosines need, or refuse those that have no direction."""
    exact = vectors.astype("float64")
    lengths = (exact * exact).sum(axis=-1, keepdims=True) ** 0.5
    if not ((lengths > 0) & (lengths < float("inf"))).all():  # nor is any of them NaN
        raise EmbeddingError(f"the embedder {name} gave vectors that are zero or not finite")
    if (abs(lengths - 1) <= _OFF_AT_MOST).all():
        return vectors
    unit: Vectors = (exact / lengths).astype("float32")
    return unit
