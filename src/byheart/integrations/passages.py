"""Find the passages that retrievers of other frameworks return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byheart.model import ChunkHit
from byheart.store import MemoryStore


def find_passages(
    store: MemoryStore, query: str, limit: int, filters: Mapping[str, Any]
) -> list[ChunkHit]:
    """Search for passages, within the filters of `MemoryStore.search`."""
    found = store.search(query, limit, **{**filters, "granularity": "fine"})
    return [each for each in found.results if isinstance(each, ChunkHit)]
