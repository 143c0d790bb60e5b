"""Scale vectors to unit length, and refuse vectors that have no direction."""

from __future__ import annotations

from byheart.contracts import Vectors
from byheart.errors import EmbeddingError

# Rounding to float32 causes an error a hundred times smaller than this.
_OFF_AT_MOST = 1e-5


def to_unit_length(vectors: Vectors, name: str) -> Vectors:
    """Scale vectors to unit length, as cosines need; raise if one is zero or not finite."""
    exact = vectors.astype("float64")
    lengths = (exact * exact).sum(axis=-1, keepdims=True) ** 0.5
    if not ((lengths > 0) & (lengths < float("inf"))).all():  # false for NaN too
        raise EmbeddingError(
            f"the embedder {name} gave vectors that are zero or not finite",
            "use another model: setting embedding_model",
        )
    if (abs(lengths - 1) <= _OFF_AT_MOST).all():
        return vectors
    unit: Vectors = (exact / lengths).astype("float32")
    return unit
