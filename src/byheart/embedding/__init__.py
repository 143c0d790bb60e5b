"""Turn text into vectors."""

from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.lazy_embedder import LazyEmbedder
from byheart.embedding.own_embedder import SimpleEmbedder, check_embedder
from byheart.embedding.progress import Progress
from byheart.embedding.providers import open_embedder
from byheart.embedding.unit_vectors import to_unit_length
from byheart.embedding.unrelated_texts import measure_unrelated
from byheart.embedding.windows import window_texts

__all__ = [
    "EstimatedTokens",
    "LazyEmbedder",
    "Progress",
    "SimpleEmbedder",
    "check_embedder",
    "measure_unrelated",
    "open_embedder",
    "to_unit_length",
    "window_texts",
]
