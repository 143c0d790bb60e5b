"""Latent semantic analysis: vectors that are made of the words of the texts alone.

Its vectors are weak, as those of a model that knows nothing beyond the words are: they agree with
keywords, and add little.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Vectors

DIMENSIONS = 128
_MORE, _ROUNDS, _SEED, _ROWS = 10, 3, 7, 4000
_LEAST_TEXTS = 2
_WORD = re.compile(r"\w+")
Numbers = NDArray[np.float32]


class _Sparse:
    """A sparse matrix by rows, which multiplies some rows at a time."""

    def __init__(self, rows: Sequence[Sequence[tuple[int, float]]], columns: int) -> None:
        self.starts = np.cumsum([0, *(len(row) for row in rows)])
        self.at = np.array([at for row in rows for at, _ in row], np.int64)
        self.values = np.array([value for row in rows for _, value in row], np.float32)
        self.columns = columns

    def times(self, dense: Numbers) -> Numbers:
        made = np.zeros((len(self.starts) - 1, dense.shape[1]), np.float32)
        for first in range(0, len(made), _ROWS):
            starts = self.starts[first : first + _ROWS + 1]
            part = slice(int(starts[0]), int(starts[-1]))
            products = dense[self.at[part]] * self.values[part, np.newaxis]
            filled = np.diff(starts) > 0
            offsets = (starts[:-1] - starts[0])[filled]
            rows = np.flatnonzero(filled) + first
            if len(rows):
                made[rows] = np.add.reduceat(products, offsets)
        return made

    def turn(self) -> _Sparse:
        """Return the matrix with its rows and columns exchanged."""
        order = np.argsort(self.at, kind="stable")
        turned = _Sparse([], len(self.starts) - 1)
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        turned.at, turned.values = rows[order], self.values[order]
        turned.starts = np.concatenate([[0], np.cumsum(np.bincount(self.at, None, self.columns))])
        return turned


class LatentSemantics:
    """The main directions of the words of many texts, found with random projections."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [Counter(_WORD.findall(text.lower())) for text in texts]
        texts_with = Counter(word for words in counted for word in words)
        kept = (word for word, count in texts_with.items() if count >= _LEAST_TEXTS)
        self._columns = {word: at for at, word in enumerate(sorted(kept))}
        self._rarity = {word: np.log(len(texts) / texts_with[word]) for word in self._columns}
        matrix = _Sparse([self._row(words) for words in counted], len(self._columns))
        turned = matrix.turn()
        random = np.random.default_rng(_SEED)
        width = min(DIMENSIONS + _MORE, len(texts), len(self._columns))
        found = matrix.times(random.standard_normal((len(self._columns), width)).astype(np.float32))
        for _ in range(_ROUNDS):
            found = matrix.times(turned.times(np.linalg.qr(found)[0]))
        directions = turned.times(np.linalg.qr(found)[0])
        self._directions = np.linalg.svd(directions, full_matrices=False)[0][:, :DIMENSIONS]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Give each text a vector of unit length, or of zeros if none of its words is known."""
        rows = [self._row(Counter(_WORD.findall(text.lower()))) for text in texts]
        vectors = _Sparse(rows, len(self._columns)).times(self._directions)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        made: Vectors = (vectors / np.maximum(lengths, 1e-9)).astype("<f4")
        return made

    def _row(self, words: Counter[str]) -> list[tuple[int, float]]:
        weighed = [
            (self._columns[word], (1 + np.log(count)) * self._rarity[word])
            for word, count in words.items()
            if word in self._columns
        ]
        length = np.sqrt(sum(weight**2 for _, weight in weighed)) or 1.0
        return [(at, weight / length) for at, weight in sorted(weighed)]
