"""Embed without a model, for tests: texts that share words get similar vectors everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from byheart.contracts import Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.startup.late_numpy import np
from byheart.startup.late_patterns import late_pattern

WORD = late_pattern(r"\w+")
# A word counts for more than its parts, so that a shared ending alone does not look like a match.
TRIGRAM_WEIGHT = 0.25
LONGEST_KEPT = 40  # characters: words recur and are worth caching, long runs without spaces do not


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
            row[:] = self._sums(text)
            length = np.linalg.norm(row)
            if length > 0:
                row /= length
            else:  # there are no words, or they cancel out: any fixed direction will do
                row[0] = 1.0
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a question in the same way as a passage."""
        vector: Vectors = self.embed([text])[0]
        return vector

    def _sums(self, text: str) -> list[float]:
        sums = [0.0] * self.dimensions  # a list, because changing single items of an array is slow
        for word in WORD.findall(text.casefold()):
            features = _features if len(word) <= LONGEST_KEPT else _features.__wrapped__
            for place, weight in features(word):
                sums[place % self.dimensions] += weight
        return sums


@lru_cache(1 << 13)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """Return the places of a word and its trigrams in the vector, with their weights."""
    marked = f"<{word}>"
    trigrams = (marked[index : index + 3] for index in range(len(marked) - 2))
    return (_place(word, 1.0), *(_place(each, TRIGRAM_WEIGHT) for each in trigrams))


def _place(feature: str, weight: float) -> tuple[int, float]:
    digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
    return digest >> 1, weight if digest & 1 else -weight
