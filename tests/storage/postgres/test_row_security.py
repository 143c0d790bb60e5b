"""Row level security: a second barrier between spaces, below the filters of the statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import StoreError
from byheart.settings import load_settings
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from byheart.store import MemoryStore
from tests.large_spaces import NONE_LOCAL
from tests.postgres_stores import secured_store_url

# Each table, with rows of several spaces in every part: there are two parts.
SPACES = ("ann", "ben", "cleo", "dan")


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[PostgresBackend]:
    """Open a secured store with a few rows of four spaces in most tables."""
    with secured_store_url() as url:
        address = parse_address(url)
        backend = PostgresBackend(address, tmp_path, 30, local_chunks=NONE_LOCAL)
        settings = load_settings({"embedding_provider": "hash"})
        storage = SqlStorage(backend)
        store = MemoryStore(storage, HashEmbedder(), settings)
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "a.md").write_text("# Notes\n\nBerlin is grey.\n")
        for space in SPACES:
            tea = store.save(f"Anna Bell of {space} drinks tea.", tags=["tea"], space=space)
            store.review.keep(f"unused:{tea.memory_id}@1", space=space)
            gone = store.save(f"{space} has a secret.", space=space)
            store.forget(gone.memory_id, hard=True, space=space)
            store.log("s1", "user", f"hello from {space}", space=space)
            store.context("s1", "tea", space=space)
            store.index(tmp_path / "notes", space=space)
            assert store.receipts.list(space=space).total == 1  # waits for the notes
            storage.refresh(space)
        yield backend
        backend.close()


# These have no table over all parts.
PART_ONLY = {"vocabulary", "posting_runs", "posting_blocks"}


def tables(backend: PostgresBackend) -> list[str]:
    with backend.reading(None) as connection:
        rows = connection.all(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = 'byheart_00' AND c.relkind = 'r' ORDER BY 1"
        )
    return [row[0] for row in rows]


def test_a_statement_without_a_filter_sees_one_space_alone(backend: PostgresBackend) -> None:
    in_all_spaces = set()
    for table in tables(backend):
        counts = []
        for space in SPACES:
            with backend.reading(space) as connection:
                counts.append(connection.get(f"SELECT count(*) FROM {table}"))
                if table not in PART_ONLY:
                    assert connection.get(f"SELECT count(*) FROM byheart.{table}") == counts[-1]
        assert len(set(counts)) == 1, table
        if table not in PART_ONLY:
            with backend.reading(None) as connection:
                assert connection.get(f"SELECT count(*) FROM {table}") == sum(counts)
        in_all_spaces |= {table} if counts[0] else set()
    assert set(tables(backend)) - in_all_spaces == {
        "pending_vectors",
        "entity_aliases",
        "bookmarks",
    }


def test_an_unknown_space_sees_nothing(backend: PostgresBackend) -> None:
    with backend.reading("nobody") as connection:
        for table in set(tables(backend)) - PART_ONLY:
            assert connection.get(f"SELECT count(*) FROM {table}") == 0, table


def test_a_row_of_another_space_is_neither_changed_nor_written(backend: PostgresBackend) -> None:
    with backend.writing("ann") as connection:
        assert connection.count("DELETE FROM byheart.memories WHERE space <> 'ann'") == 0
        assert connection.count("UPDATE byheart.memories SET title = 'x' WHERE true") > 0
    with backend.reading(None) as connection:
        assert connection.all("SELECT DISTINCT space FROM memories WHERE title = 'x'") == [("ann",)]
    with pytest.raises(StoreError), backend.writing("ann") as connection:
        connection.run(
            "INSERT INTO tombstones (space, content_hash, at) VALUES (?, ?, 1)", ("ben", b"x" * 32)
        )


def test_the_owner_turns_it_on_and_off(backend: PostgresBackend) -> None:
    secured = "SELECT count(*) FROM pg_class WHERE relrowsecurity AND relforcerowsecurity"
    with psycopg.connect(backend.database.address.conninfo, autocommit=True) as connection:
        on = connection.execute(secured).fetchone()
        said = connection.execute("SELECT byheart.set_row_security(false)").fetchone()
        assert on is not None
        assert said == (f"row level security is off for {on[0]} tables",)
        assert connection.execute(secured).fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pg_policy").fetchone() == (0,)
        for _ in range(2):
            connection.execute("SELECT byheart.set_row_security(true)")
        assert connection.execute(secured).fetchone() == on
