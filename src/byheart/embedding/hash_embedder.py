"""An embedder without a model, for tests: equal words give similar vectors, the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np

from byheart.contracts import Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens

WORD = re.compile(r"\w+")
# A word counts for more than its parts, so that a shared ending alone does not look like a match.
TRIGRAM_WEIGHT = 0.25


class HashEmbedder(EstimatedTokens):
    """Hash the words and character trigrams of a text into a unit vector."""

    def __init__(self, dimensions: int = 384, window_tokens: int = 254) -> None:
        self.name = f"hash-{dimensions}"
        self.dimensions = dimensions
        self.window_tokens = window_tokens

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in the order given."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for feature, weight in _features(text):
                digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
                row[(digest >> 1) % self.dimensions] += weight if digest & 1 else -weight
            length = np.linalg.norm(row)
            if length > 0:
                row /= length
            else:  # no words, or words that cancel out: any fixed direction will do
                row[0] = 1.0
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a question like any other text."""
        vector: Vectors = self.embed([text])[0]
        return vector


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in WORD.findall(text.casefold()):
        yield word, 1.0
        marked = f"<{word}>"
        for index in range(len(marked) - 2):
            yield marked[index : index + 3], TRIGRAM_WEIGHT
