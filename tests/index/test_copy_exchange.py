"""Servers load the copy of an index file from the database, and replace it when it is behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byheart.errors import StoreUnreachable
from byheart.index import parts
from byheart.index.file_coverage import FileCoverage
from byheart.index.index import Index
from byheart.memory.erasing import erase
from byheart.storage.postgres.error_translation import translating
from byheart.storage.postgres.published_index import Connect, PublishedIndex
from byheart.storage.sql.index_source import SqlIndexedDatabase
from byheart.storage.sqlite import SqliteStorage
from byheart.storage.sqlite.backend import SqliteBackend
from byheart.store import MemoryStore
from tests.postgres_stores import schema_script

NOW = 1 << 50
OpenStore = Callable[..., MemoryStore]


class Fleet:
    """Several servers on one store, each with a folder of its own, and one copy for all."""

    def __init__(self, store_path: Path, folder: Path, connect: Connect) -> None:
        self.database = SqlIndexedDatabase(SqliteBackend(store_path, busy_timeout_seconds=30), None)
        self.copy = PublishedIndex(connect, "byheart", "space")
        self.folder = folder
        self.work: list[str] = []

    def server(self, name: str) -> Index:
        path = self.folder / name
        index = Index(path, self.database, self.copy)
        index.on_work = lambda work, _seconds: self.work.append(work)
        return index

    def count(self, index: Index) -> int:
        """Bring an index up to date, and count the memories that it shows."""
        with self.database.snapshot() as source:
            view = index.view(source)
            assert view is not None
            return view.count_space("default", NOW).memories

    @property
    def coverage(self) -> FileCoverage | None:
        label = self.copy.label()
        return None if label is None else FileCoverage.of_label(label)


@pytest.fixture
def connect(postgres_url: str) -> Connect:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA byheart")
        for script in ("0001_published_index", "0009_published_parts"):
            connection.execute(schema_script(script, "byheart"))

    @contextmanager
    def connected() -> Iterator[psycopg.Connection[Any]]:
        with translating("the test"), psycopg.connect(postgres_url) as connection:
            yield connection

    return connected


@pytest.fixture
def store(open_store: OpenStore) -> MemoryStore:
    found: MemoryStore = open_store()
    save(found, 0, 500)
    return found


@pytest.fixture
def fleet(store: MemoryStore, path: Path, tmp_path: Path, connect: Connect) -> Fleet:
    return Fleet(path, tmp_path, connect)


def save(store: MemoryStore, first: int, last: int) -> list[str]:
    saved = store.save_many([{"content": f"apple number {n}"} for n in range(first, last)])
    return [each.memory_id for each in saved]


def test_a_new_server_loads_the_copy_and_reads_only_the_changes_after_it(
    store: MemoryStore, fleet: Fleet
) -> None:
    first = fleet.server("first")
    assert fleet.count(first) == 500
    first.publish()
    assert fleet.work == ["rebuild", "publish"]
    save(store, 500, 600)
    fleet.work.clear()
    second = fleet.server("second")
    assert fleet.count(second) == 600
    assert fleet.work == ["fetch", "catch_up"]
    assert (fleet.folder / "second").is_file()
    assert (fleet.folder / "second").stat().st_mode & 0o777 == 0o600
    fleet.work.clear()
    assert fleet.count(fleet.server("second")) == 600
    assert fleet.work == ["catch_up"], "from its own file"


@pytest.mark.parametrize("part", ["part_no = 0", "part_no = (SELECT max(part_no) FROM {})"])
def test_a_damaged_copy_is_not_used_and_the_next_file_replaces_it(
    fleet: Fleet, connect: Connect, part: str
) -> None:
    first = fleet.server("first")
    assert fleet.count(first) == 500
    first.publish()
    table = "byheart.published_index_parts"
    damage = "set_byte(bytes, length(bytes) - 100, 255 - get_byte(bytes, length(bytes) - 100))"
    with connect() as connection:
        where = part.format(table)
        connection.execute(f"UPDATE {table} SET bytes = {damage} WHERE {where}".encode())
    fleet.work.clear()
    second = fleet.server("second")
    assert fleet.count(second) == 500
    assert fleet.work == ["rebuild"]
    left = {each.name for each in fleet.folder.glob("second*")}
    assert left <= {"second-lock"}, "nothing of the copy is left"
    second.publish()
    fleet.work.clear()
    assert fleet.count(fleet.server("third")) == 500
    assert fleet.work[0] == "fetch"


def test_the_copy_of_another_store_is_not_used_and_is_replaced(
    fleet: Fleet, open_store: OpenStore, tmp_path: Path, connect: Connect
) -> None:
    other_path = tmp_path / "other.db"
    save(open_store(other_path), 1000, 1700)
    other = Fleet(other_path, tmp_path, connect)
    index = other.server("other")
    assert other.count(index) == 700
    index.publish()
    first = fleet.server("first")
    assert fleet.count(first) == 500
    assert fleet.work == ["rebuild"]
    first.publish()
    assert fleet.coverage is not None
    assert fleet.coverage.chunks == 500


def test_the_copy_is_loaded_in_place_of_a_local_file_only_if_that_is_far_behind(
    store: MemoryStore, fleet: Fleet
) -> None:
    first, second = fleet.server("first"), fleet.server("second")
    assert fleet.count(first) == fleet.count(second) == 500
    second.publish()
    save(store, 500, 600)
    assert fleet.count(first) == 600
    assert first.rewrite()
    fleet.work.clear()
    assert fleet.count(fleet.server("second")) == 600
    assert fleet.work == ["catch_up"]
    save(store, 600, 1100)
    assert fleet.count(first) == 1100
    first.publish()
    fleet.work.clear()
    assert fleet.count(fleet.server("second")) == 1100
    assert fleet.work == ["fetch", "catch_up"]


def test_a_copy_is_replaced_when_as_many_chunks_are_missing_as_make_a_file_be_written(
    store: MemoryStore, fleet: Fleet
) -> None:
    first = fleet.server("first")
    assert fleet.count(first) == 500
    first.publish()
    label = fleet.copy.label()
    save(store, 500, 600)
    assert fleet.count(first) == 600
    first.publish()
    assert fleet.copy.label() == label
    ids = save(store, 600, 900)
    assert fleet.count(first) == 900
    first.publish()
    assert fleet.copy.label() != label
    assert fleet.coverage is not None
    assert (fleet.coverage.chunks, fleet.coverage.embedded) == (900, 900)
    assert len(ids) == 300


def test_an_older_file_does_not_replace_a_newer_copy(store: MemoryStore, fleet: Fleet) -> None:
    older, newer = fleet.server("older"), fleet.server("newer")
    assert fleet.count(older) == 500
    save(store, 500, 1000)
    assert fleet.count(newer) == 1000
    newer.publish()
    older.publish()
    assert fleet.coverage is not None
    assert fleet.coverage.chunks == 1000


def test_erased_rows_leave_the_copy_when_the_index_is_rewritten(
    store: MemoryStore, fleet: Fleet, path: Path
) -> None:
    [erased] = save(store, 500, 501)
    first = fleet.server("first")
    assert fleet.count(first) == 501
    first.publish()
    storage = SqliteStorage(path)
    erase(storage, [erased], "default", tombstones=False)
    storage.close()
    assert first.rewrite()
    assert fleet.coverage is not None
    assert fleet.coverage.chunks == 500


def test_discarding_an_index_removes_its_copy(fleet: Fleet) -> None:
    first = fleet.server("first")
    assert fleet.count(first) == 500
    first.publish()
    first.discard()
    assert fleet.copy.label() is None
    assert fleet.count(first) == 500
    assert fleet.work[-1] == "rebuild"


def test_a_copy_ahead_of_the_transaction_serves_the_next_one(
    store: MemoryStore, fleet: Fleet
) -> None:
    second = fleet.server("second")
    with fleet.database.snapshot() as source:
        assert source.last_change().number
        save(store, 500, 1000)
        first = fleet.server("first")
        assert fleet.count(first) == 1000
        first.publish()
        fleet.work.clear()
        assert second.view(source) is None
    assert fleet.count(second) == 1000
    assert fleet.work == ["fetch", "catch_up"]


def test_a_copy_that_is_always_ahead_is_not_loaded_again(store: MemoryStore, fleet: Fleet) -> None:
    with fleet.database.snapshot() as source:
        assert source.last_change().number
        save(store, 500, 1000)
        first = fleet.server("first")
        assert fleet.count(first) == 1000
        first.publish()
        second = fleet.server("second")
        assert second.view(source) is None
        second.start_anew()
        view = second.view(source)
        assert view is not None
        assert view.count_space("default", NOW).memories == 500


def test_answers_do_not_need_the_shelf(
    store: MemoryStore, fleet: Fleet, path: Path, tmp_path: Path
) -> None:
    @contextmanager
    def unreachable() -> Iterator[psycopg.Connection[Any]]:
        with translating("the test"):
            yield psycopg.connect(f"postgresql:///?host={tmp_path}")

    alone = Fleet(path, tmp_path, unreachable)
    with pytest.raises(StoreUnreachable):
        alone.copy.label()
    index = alone.server("alone")
    assert alone.count(index) == 500
    index.publish()
    assert alone.count(alone.server("alone")) == 500
    assert alone.work == ["rebuild", "publish", "catch_up"]
    assert not index.rewrite(), "whether erased rows left the copy is unknown"


def test_servers_exchange_only_the_parts_that_the_other_side_lacks(
    store: MemoryStore, fleet: Fleet, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_MOST_IN_HEAD", 10_000)
    first, second = fleet.server("first"), fleet.server("second")
    assert fleet.count(first) == 500
    first.publish()
    assert fleet.count(second) == 500
    before = stored_parts(connect)
    assert len(before) == 1
    save(store, 500, 660)
    assert fleet.count(first) == 660
    first.publish()
    first.rewrite()  # the copy is replaced although few chunks are missing from it
    rewritten = stored_parts(connect)
    assert not before & rewritten
    save(store, 660, 1100)
    assert fleet.count(first) == 1100
    monkeypatch.setattr("byheart.index.published.count_kept", lambda known, _bytes: len(known))
    first.publish()
    assert stored_parts(connect) > rewritten, "the part of before stayed"
    fleet.work.clear()
    assert fleet.count(fleet.server("third")) == 1100
    assert fleet.work == ["fetch", "catch_up"]
    there = parts.read(fleet.folder / "third", verify=True)
    assert there is not None
    assert set(there.head.named) == stored_parts(connect)


def stored_parts(connect: Connect) -> set[str]:
    with connect() as connection:
        rows = connection.execute("SELECT DISTINCT name FROM byheart.published_index_parts")
        return {name for (name,) in rows} - {""}
