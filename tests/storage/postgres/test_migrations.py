"""The numbered changes of the schema are applied in order, to new stores and to old ones."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import StoreBusy
from byheart.settings import load_settings
from byheart.storage.postgres import migrations
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.backend import PostgresStorage
from byheart.storage.postgres.database import Database
from byheart.store import MemoryStore


def open_store(url: str, folder: Path, wait: float = 30) -> MemoryStore:
    settings = load_settings({"embedding_provider": "hash"})
    storage = PostgresStorage(parse_address(f"{url}&parts=2"), folder, busy_timeout_seconds=wait)
    return MemoryStore(storage, HashEmbedder(), settings)


def make_first(url: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Make a store of the first schema, with a memory."""
    known = migrations.known_migrations()
    with patch.context() as earlier:
        earlier.setattr(migrations, "known_migrations", lambda: known[:1])
        storage = PostgresStorage(parse_address(f"{url}&parts=2"), folder)
        assert storage.status("default").schema_version == 1
        storage.close()


def test_every_change_has_a_number(postgres_url: str) -> None:
    known = migrations.known_migrations()
    assert [number for number, _, _ in known] == list(range(1, len(known) + 1))
    assert all(store or part for _, store, part in known)


def test_a_store_of_the_first_schema_is_changed_when_it_is_opened(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_first(postgres_url, tmp_path, monkeypatch)
    with open_store(postgres_url, tmp_path) as store:
        assert store.status().schema_version == migrations.known_migrations()[-1][0]
        store.save("The ferry leaves at noon.")
        assert store.search("ferry").results
        assert all(each.ok for each in store.admin.doctor())


def test_a_change_of_the_schema_does_not_wait_for_ever_for_a_reader(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_first(postgres_url, tmp_path, monkeypatch)
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SELECT 1 FROM byheart.pending_vectors")
        with pytest.raises(StoreBusy):
            open_store(postgres_url, tmp_path, wait=0.2)
    with open_store(postgres_url, tmp_path) as store:
        assert store.status().writable


def test_a_store_that_another_process_made_meanwhile_is_not_made_again(postgres_url: str) -> None:
    """The first look finds no store, and this must not be remembered while waiting for the lock."""
    address, latest = parse_address(postgres_url), migrations.known_migrations()[-1][0]
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with (
        closing(Database(address, 30, 1)) as database,
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(postgres_url) as other,
    ):
        other.execute("SELECT pg_advisory_xact_lock(%s)", (migrations._LOCK,))
        migrated = threads.submit(migrations.migrate, database)
        while other.execute(waiting).fetchone() == (0,):
            assert not migrated.done()
            time.sleep(0.01)
        # The rest of a store would tell the waiting connection by its mere size.
        other.execute("CREATE SCHEMA byheart")
        other.execute("CREATE TABLE byheart.store (key text, value text)")
        values = {"schema_version": latest, "parts": 2}
        for key, value in values.items():
            other.execute("INSERT INTO byheart.store VALUES (%s, %s)", (key, str(value)))
        other.commit()
        assert migrated.result(30) == latest
        assert database.parts == 2
