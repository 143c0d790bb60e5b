"""What a `Backend` and its connections promise, run on each implementation."""

from functools import partial
from pathlib import Path

import pytest

from byheart.contracts import Ledger
from byheart.errors import StoreError
from byheart.index.index import Index
from byheart.memory import erasing, transactions
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.connection import Connection, Database
from byheart.storage.sql.index_source import SqlIndexedDatabase
from byheart.storage.sql.storage import SqlStorage
from tests.contracts.conftest import OpenBackend
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft, found

PUT = "INSERT INTO store (key, value) VALUES (?, ?)"
VALUE = "SELECT value FROM store WHERE key = ?"
PENDING = "SELECT count(*) FROM pending_vectors"


def index_of(backend: Backend) -> Index:
    return Index(backend.index_path, SqlIndexedDatabase(backend))


@covers(Connection.get, Connection.all, Connection.each, Connection.run, Connection.run_many)
def test_a_connection_runs_statements_and_gives_rows(backend: Backend) -> None:
    select = "SELECT key, value FROM store WHERE key LIKE 'k%' ORDER BY key"
    with backend.writing() as connection:
        assert connection.run(PUT, ("k1", "a")) == 1
        connection.run_many(PUT, (("k2", "b"), ("k3", "c")))
        assert connection.get(select) == ("k1", "a")
        assert connection.get(VALUE, ("k2",)) == "b", "one column: the value itself"
        assert connection.get(VALUE, ("k9",)) is None
        assert connection.get("SELECT ?2, ?1, ?2", ("x", "y")) == ("y", "x", "y")
        assert connection.all(select) == [("k1", "a"), ("k2", "b"), ("k3", "c")]
        assert connection.all(VALUE, ("k9",)) == []
        assert list(connection.each(VALUE, ("k3",))) == [("c",)]
        rows = connection.each(select)
        assert next(rows) == ("k1", "a")
        assert connection.run("UPDATE store SET value = ? WHERE key LIKE 'k%'", ("d",)) == 3
        assert connection.run("DELETE FROM store WHERE key = ?", ("k9",)) == 0


@covers(Connection.insert)
def test_an_inserted_row_is_found_by_the_number_given(backend: Backend) -> None:
    insert = "INSERT INTO entities (space, key, name) VALUES (?, ?, ?)"
    with backend.writing() as connection:
        first, second = (connection.insert(insert, ("space", n, n.title())) for n in ("ant", "bee"))
        select = "SELECT name FROM entities WHERE entity_no = ?"
        assert [connection.get(select, (each,)) for each in (first, second)] == ["Ant", "Bee"]


@covers(Database.reading, Database.writing)
def test_a_snapshot_stays_and_a_failed_transaction_leaves_nothing(
    open_backend: OpenBackend,
) -> None:
    one, other = open_backend(), open_backend()
    with one.reading() as before:
        assert before.get(VALUE, ("k",)) is None
        with other.writing() as connection:
            connection.run(PUT, ("k", "v"))
        assert before.get(VALUE, ("k",)) is None
    with one.reading() as after:
        assert after.get(VALUE, ("k",)) == "v"

    def change_and_fail() -> None:
        with one.writing() as connection:
            connection.run("DELETE FROM store WHERE key = ?", ("k",))
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        change_and_fail()
    with other.reading() as after:
        assert after.get(VALUE, ("k",)) == "v"


@covers(Database.noting)
def test_a_minor_write_does_not_wait_for_another_writer(open_backend: OpenBackend) -> None:
    one, other = open_backend(), open_backend()

    def write_note(value: str) -> None:
        with one.noting(0) as connection:
            connection.run(PUT, ("k", value))

    with other.writing(), pytest.raises(StoreError):
        write_note("too early")
    write_note("noted")
    with other.reading() as connection:
        assert connection.get(VALUE, ("k",)) == "noted"


@covers(Backend.location, Database.writable, Backend.schema_version, Backend.trouble)
@covers(Backend.ledger, Backend.index_path, Backend.prepare_publishing)
def test_a_database_describes_itself(open_backend: OpenBackend) -> None:
    one, other = open_backend(), open_backend()
    assert one.location
    assert one.location == other.location
    assert one.writable
    assert one.schema_version == other.schema_version > 0
    assert one.trouble() is None
    ledger: Ledger | None = one.ledger
    assert ledger is not None
    assert one.index_path == other.index_path
    assert one.index_path.parent.is_dir()
    mode = one.prepare_publishing()
    assert mode & 0o600 == 0o600, "the owner reads and writes the file"
    assert mode & ~0o777 == 0


@covers(Backend.sizes, Backend.compact)
def test_compacting_returns_the_room_of_removed_rows(backend: Backend) -> None:
    empty = backend.sizes()
    assert empty.index_bytes == 0
    with backend.writing() as connection:
        connection.run_many(PUT, ((f"k{n}", "x" * 4000) for n in range(500)))
    with backend.writing() as connection:
        connection.run("DELETE FROM store WHERE key LIKE 'k%'")
        connection.run(PUT, ("kept", "v"))
    full = backend.sizes()
    assert full.store_bytes + full.log_bytes > empty.store_bytes + 2_000_000
    backend.compact()
    after = backend.sizes()
    assert after.store_bytes + after.log_bytes < empty.store_bytes + 1_000_000
    with backend.reading() as connection:
        assert connection.get(VALUE, ("kept",)) == "v"
    backend.index_path.write_bytes(b"12345")
    assert backend.sizes().index_bytes == 5


@covers(Backend.back_up)
def test_a_backup_has_what_was_committed_before(backend: Backend, tmp_path: Path) -> None:
    copies = [tmp_path / "first.copy", tmp_path / "second.copy"]
    for text, copy in zip(("earlier words", "later words"), copies, strict=True):
        with backend.writing() as connection:
            connection.run(PUT, (text, text))
        backend.back_up(copy)
    earlier, later = (copy.read_bytes() for copy in copies)
    assert [b"earlier words" in each for each in (earlier, later)] == [True, True]
    assert [b"later words" in each for each in (earlier, later)] == [False, True]


@covers(Backend.examine)
def test_an_examination_finds_and_repairs_lost_rows(backend: Backend) -> None:
    transactions.write(SqlStorage(backend), [draft("one", EAST), draft("two")], MODEL)
    index = index_of(backend)
    checks = {each.check for each in backend.examine(index, quick=False, fix=False) if each.ok}
    with backend.writing() as connection:
        assert connection.run("DELETE FROM pending_vectors") == 1
    [failed] = [each for each in backend.examine(index, quick=False, fix=False) if not each.ok]
    assert failed.check in checks
    assert not failed.fixed
    repaired = backend.examine(index, quick=False, fix=True)
    assert [each.check for each in repaired if each.fixed] == [failed.check]
    assert all(each.ok for each in backend.examine(index, quick=False, fix=False))
    quick = backend.examine(index, quick=True, fix=False)
    assert quick
    assert all(each.ok for each in quick)
    assert len(quick) < len(repaired)


@covers(Backend.rebuild)
def test_lost_rows_are_derived_again(backend: Backend) -> None:
    storage = SqlStorage(backend)
    transactions.write(storage, [draft("one", EAST), draft("two")], MODEL)
    with backend.writing() as connection:
        connection.run("DELETE FROM pending_vectors")
    backend.rebuild()
    with backend.reading() as connection:
        assert connection.get(PENDING) == 1
    assert found(storage, "two") == ["two"]


@covers(Backend.erase)
def test_erased_texts_leave_no_trace_in_the_database(backend: Backend) -> None:
    storage = SqlStorage(backend)
    made = [draft("a plainly visible text", EAST), draft("another one", NORTH)]
    transactions.write(storage, made, MODEL)
    ids = [made[0].memory.memory_id, "mem_unknown"]
    remove = partial(erasing.remove, space="space", tombstones=True)
    removal = backend.erase(index_of(backend), ids, "space", remove)
    assert (removal.memories, removal.texts, removal.chunks, removal.vectors) == (1, 1, 1, 1)
    assert removal.traces == ()
    assert found(storage, "plainly visible another") == ["another one"]


@covers(Backend.close)
def test_a_closed_database_keeps_what_was_written_and_opens_again(
    open_backend: OpenBackend,
) -> None:
    first = open_backend()
    with first.writing() as connection:
        connection.run(PUT, ("k", "v"))
    first.close()
    with open_backend().reading() as connection:
        assert connection.get(VALUE, ("k",)) == "v"
    with pytest.raises(StoreError), first.writing():
        pass
