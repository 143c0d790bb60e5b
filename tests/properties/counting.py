"""Ways of counting tokens, each with a store of its own."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from byheart.contracts import Embedder
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore


class CountingHash:
    """Count tokens in another way than the vectors know, and do not say how."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern, re.DOTALL)
        self._vectors = HashEmbedder(16)
        self.name, self.dimensions = self._vectors.name, self._vectors.dimensions
        self.window_tokens = self._vectors.window_tokens
        self.embed, self.embed_query = self._vectors.embed, self._vectors.embed_query

    def token_starts(self, text: str) -> list[int]:
        return [match.start() for match in self._pattern.finditer(text)]


EMBEDDERS: Mapping[str, Embedder] = {
    "estimate": HashEmbedder(16),
    "words": CountingHash(r"\S+"),
    "characters": CountingHash(r"."),
    "hundreds": CountingHash(r".{1,100}"),
}


@contextlib.contextmanager
def open_stores(
    folder: Path, embedders: Mapping[str, Embedder], **chosen: object
) -> Iterator[dict[str, MemoryStore]]:
    """Open one store for each way of counting."""
    settings = load_settings({"embedding_provider": "hash", **chosen})
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(
                MemoryStore(SqliteStorage(folder / f"{name}.db"), embedder, settings)
            )
            for name, embedder in embedders.items()
        }
