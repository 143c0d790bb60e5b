"""Vectors kept: what was embedded once, for whatever store or variation, is not embedded again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import apsw
import numpy as np
from token_model import MEAN, Pooling, TokenModel

from byheart.contracts import Vectors

_HASH_BYTES = 16  # as stores have it, whose vectors are used too
_BATCH = 100


class KeptVectors:
    """Vectors by text and pooling, in a file; those of full stores are found as well."""

    def __init__(self, path: Path, stores: Path, model: TokenModel) -> None:
        self.model = model
        self._kept = apsw.Connection(str(path))
        self._kept.set_busy_timeout(60_000)
        self._kept.execute(
            "CREATE TABLE IF NOT EXISTS kept (pooling TEXT, text_hash BLOB, embedding BLOB, "
            "PRIMARY KEY (pooling, text_hash)) WITHOUT ROWID"
        )
        self._stores = [
            apsw.Connection(str(each), flags=apsw.SQLITE_OPEN_READONLY)
            for each in sorted(stores.glob("*.db"))
        ]

    def embed(self, texts: Sequence[str], poolings: Sequence[Pooling] = (MEAN,)) -> Vectors:
        """Give the vectors by the first pooling; those by the others are made on the way."""
        found = [self._find(text, poolings[0]) for text in texts]
        missing = list(
            dict.fromkeys(text for text, known in zip(texts, found, strict=True) if known is None)
        )
        for first in range(0, len(missing), _BATCH):
            self._make(missing[first : first + _BATCH], poolings)
            if len(missing) > 1:
                print(f"\r{first:,} of {len(missing):,} ", end="", file=sys.stderr, flush=True)
        known = [
            each or self._find(text, poolings[0]) for text, each in zip(texts, found, strict=True)
        ]
        return np.stack([np.frombuffer(each, "<f4") for each in known if each is not None])

    def _find(self, text: str, pooling: Pooling) -> bytes | None:
        key = _hash(text)
        kept: bytes | None = self._kept.execute(
            "SELECT embedding FROM kept WHERE pooling = ? AND text_hash = ?", (pooling.name, key)
        ).get
        if kept is None and pooling is MEAN:
            select = "SELECT embedding FROM vectors WHERE text_hash = ? LIMIT 1"
            several = (each.execute(select, (key,)).get for each in self._stores)
            return next((each for each in several if each is not None), None)
        return kept

    def _make(self, texts: Sequence[str], poolings: Sequence[Pooling]) -> None:
        rows = []
        for text in texts:
            tokens = self.model.run(text)
            rows += [
                (each.name, _hash(text), each.pool(tokens).astype("<f4").tobytes())
                for each in poolings
            ]
        with self._kept:  # only now: another run may be writing too
            self._kept.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", rows)


class KeptEmbedder:
    """The default embedder of a store, but for what is kept."""

    def __init__(self, kept: KeptVectors) -> None:
        embedder = kept.model.embedder
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.window_tokens = embedder.window_tokens
        self.token_starts = embedder.token_starts
        self._kept = kept

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed windows, which all fit."""
        return self._kept.embed(texts)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        vector: Vectors = self._kept.embed([text])[0]
        return vector


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()[:_HASH_BYTES]
