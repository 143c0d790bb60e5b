"""Open stores in PostgreSQL for the tests of their upkeep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from byheart.store import MemoryStore
from tests.postgres_stores import postgres_store


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[PostgresBackend]:
    with postgres_store() as address:
        backend = PostgresBackend(address, tmp_path / "cache", busy_timeout_seconds=30)
        yield backend
        backend.close()


@pytest.fixture
def storage(backend: PostgresBackend) -> SqlStorage:
    return SqlStorage(backend)


@pytest.fixture
def store(storage: SqlStorage) -> MemoryStore:
    return MemoryStore(storage, HashEmbedder(), load_settings({"embedding_provider": "hash"}))
