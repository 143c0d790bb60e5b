"""What a `Backend` and its connections promise, run on each implementation."""

import secrets
import time
from functools import partial
from pathlib import Path

import pytest

from byheart.contracts import COPY_MARK, NUMBER_BITS, Ledger, Prefetching
from byheart.errors import StoreError, StoreReadOnly
from byheart.index.index import Index
from byheart.language.raw_query import parse_raw_query
from byheart.memory import erasing, transactions
from byheart.model import Finding
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.bookmarks import SqlBookmarks
from byheart.storage.sql.connection import Connection, Database
from byheart.storage.sql.index_source import SqlIndexedDatabase, SqlIndexSource
from byheart.storage.sql.storage import SqlStorage
from tests.contracts.conftest import OpenBackend
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft, found

PUT = "INSERT INTO store (key, value) VALUES (?, ?)"
VALUE = "SELECT value FROM store WHERE key = ?"
PENDING = "SELECT count(*) FROM pending_vectors"


def index_of(backend: Backend) -> Index:
    scope = backend.index_scope("space")
    return Index(backend.index_path(scope), SqlIndexedDatabase(backend, scope))


@covers(Connection.get, Connection.all, Connection.each, Connection.run, Connection.run_many)
@covers(Connection.count, Connection.get_many)
def test_a_connection_runs_statements_and_gives_rows(backend: Backend) -> None:
    select = "SELECT key, value FROM store WHERE key LIKE 'k%' ORDER BY key"
    with backend.writing("space") as connection:
        assert connection.count(PUT, ("k1", "a")) == 1
        connection.run(PUT, ("k2", "b"))
        connection.run_many(PUT, (("k3", "c"),))
        assert connection.get(select) == ("k1", "a")
        assert connection.get(VALUE, ("k2",)) == "b", "one column: the value itself"
        assert connection.get(VALUE, ("k9",)) is None
        assert connection.get_many(VALUE, [("k3",), ("k9",), ("k1",)]) == ["c", None, "a"]
        assert connection.get("SELECT ?2, ?1, ?2", ("x", "y")) == ("y", "x", "y")
        assert connection.all(select) == [("k1", "a"), ("k2", "b"), ("k3", "c")]
        assert connection.all(VALUE, ("k9",)) == []
        assert list(connection.each(VALUE, ("k3",))) == [("c",)]
        rows = connection.each(select)
        assert next(rows) == ("k1", "a")
        assert connection.count("UPDATE store SET value = ? WHERE key LIKE 'k%'", ("d",)) == 3
        assert connection.count("DELETE FROM store WHERE key = ?", ("k9",)) == 0


@covers(Prefetching.prefetch)
def test_an_announced_question_has_the_answer_of_its_moment(backend: Backend) -> None:
    with backend.writing("space") as connection:
        connection.run(PUT, ("k1", "a"))
        ask = partial(connection.get, VALUE, ("k1",))
        ask_many = partial(connection.get_many, VALUE, [("k1",), ("k9",)])
        connection.prefetch(ask, ask_many, lambda: connection.run(PUT, ("k1", "announced")))
        assert ask() == "a"
        connection.prefetch(ask_many)
        assert connection.get("SELECT 1") == 1
        connection.run("UPDATE store SET value = ? WHERE key = ?", ("b", "k1"))
        assert (ask(), ask_many()) == ("b", ["b", None]), "a change makes answers stale"
        connection.prefetch(ask)
        connection.run("DELETE FROM store WHERE key = ?", ("k1",))
        assert ask() is None
    with backend.reading("space") as connection:
        connection.prefetch(partial(connection.all, VALUE, ("k2",)), lambda: 1 / 1)
        with backend.writing("space") as other:
            other.run(PUT, ("k2", "later"))
        assert connection.get("SELECT 1") == 1
    with backend.reading("space") as connection:
        # An answer that nobody reads does not disturb the next transaction.
        connection.prefetch(partial(connection.all, VALUE, ("k2",)))
    with backend.reading("space") as connection:
        assert connection.all(VALUE, ("k2",)) == [("later",)]


@covers(Backend.copy_mark, Backend.refuse_writes)
def test_an_unfinished_copy_is_known_when_it_is_opened_and_not_written(
    open_backend: OpenBackend,
) -> None:
    backend = open_backend()
    assert backend.copy_mark is None
    with backend.writing(None) as connection:
        connection.run(PUT, (COPY_MARK, "a mark"))
    later = open_backend()
    assert later.copy_mark == "a mark"
    assert later.writable
    later.refuse_writes(StoreReadOnly("not yet", "wait"))
    assert not later.writable
    for write in (later.writing(None), later.writing("space")):
        with pytest.raises(StoreReadOnly, match="not yet"), write:
            pass
    with later.reading(None) as connection:
        assert connection.get(VALUE, (COPY_MARK,)) == "a mark"


@covers(Connection.insert)
def test_an_inserted_row_is_found_by_the_number_given(backend: Backend) -> None:
    with backend.writing("space") as connection:
        first, second = (
            connection.insert("entities", {"space": "space", "key": name, "name": name.title()})
            for name in ("ant", "bee")
        )
        select = "SELECT name FROM entities WHERE entity_no = ?"
        assert [connection.get(select, (each,)) for each in (first, second)] == ["Ant", "Bee"]


@covers(Connection.stream)
def test_a_stream_gives_all_rows_while_other_statements_run(backend: Backend) -> None:
    with backend.writing("space") as connection:
        connection.run_many(PUT, ((f"k{n:04}", "v") for n in range(3000)))
    with backend.reading("space") as connection:
        rows = connection.stream("SELECT key FROM store WHERE key LIKE 'k%' ORDER BY key")
        assert next(rows) == ("k0000",)
        assert connection.get(VALUE, ("k0001",)) == "v"
        assert len(list(rows)) == 2999


@covers(Connection.parts, Connection.logs)
def test_every_part_and_every_log_is_visited(backend: Backend) -> None:
    storage = SqlStorage(backend)
    drafts = [draft(f"in {space}", EAST, space=space) for space in ("one", "two", "three")]
    transactions.write(storage, drafts, MODEL)
    with backend.writing(None) as connection:
        chunks = [connection.get("SELECT count(*) FROM chunks") for _ in connection.parts()]
        assert sum(chunks) == 3
        for _ in connection.logs():
            connection.run("INSERT INTO changes (memory_no, stamp) VALUES (0, 7)")
    for space in ("one", "two", "three"):
        with backend.reading(space) as connection:
            assert SqlIndexSource(connection).last_change().stamp == 7


@covers(Connection.now_micros)
def test_the_clock_of_a_connection_goes_on(backend: Backend) -> None:
    with backend.reading("space") as connection:
        before = connection.now_micros()
        assert isinstance(before, int)
        time.sleep(0.01)
        assert 9_000 < connection.now_micros() - before < 30_000_000


@covers(Connection.numbers)
def test_the_numbers_of_a_space_are_those_of_its_rows(backend: Backend) -> None:
    storage = SqlStorage(backend)
    drafts = [draft(f"in {space}", EAST, space=space) for space in ("one", "two")]
    transactions.write(storage, drafts, MODEL)
    for space in ("one", "two"):
        with backend.reading(space) as connection:
            numbers = connection.numbers
            own = connection.get("SELECT memory_no FROM memories WHERE space = ?", (space,))
            assert own in numbers


@covers(Connection.expect_chunks)
def test_chunks_are_numbered_without_gaps_across_spaces(backend: Backend) -> None:
    drafts = [draft(f"in {space}", EAST, space=space) for space in ("one", "two", "one")]
    for each in drafts:
        transactions.write(SqlStorage(backend), [each], MODEL)
    with backend.reading(None) as connection:
        found = connection.all("SELECT chunk_no FROM chunks ORDER BY memory_no")
    assert sorted(row[0] & ((1 << NUMBER_BITS) - 1) for row in found) == [1, 2]
    with backend.writing("one") as connection:
        connection.expect_chunks(1)


def test_only_old_bookmarks_of_the_same_space_are_removed(backend: Backend) -> None:
    bookmarks, spaces = SqlBookmarks(backend), ("one", "two", "three")  # some share a part
    for space in spaces:
        with backend.writing(space) as connection:
            connection.run(
                "INSERT INTO bookmarks (space, path, mark, put_at) VALUES (?, '/old', '1', 1)",
                (space,),
            )
    bookmarks.put("/new", "one", "2")
    assert [bookmarks.find("/old", each) for each in spaces] == [None, "1", "1"]


@covers(Connection.insert_words, Connection.remove_words)
def test_removed_words_are_found_no_more(backend: Backend) -> None:
    storage = SqlStorage(backend)
    transactions.write(storage, [draft("apples", EAST)], MODEL)
    query = parse_raw_query("app*")
    with backend.writing("space") as connection:
        [number] = backend.lookup(connection).matches(query, connection.numbers)
        connection.remove_words([int(number)])
        assert not len(backend.lookup(connection).matches(query, connection.numbers))
        connection.insert_words(int(number), ["", "", "", "apples and pears"])
        [found_again] = backend.lookup(connection).matches(query, connection.numbers)
        assert found_again == number


@covers(Backend.index_scope, Backend.index_scopes, Backend.index_copy)
def test_a_space_that_was_written_to_has_an_index(backend: Backend) -> None:
    transactions.write(SqlStorage(backend), [draft("one", EAST)], MODEL)
    scope = backend.index_scope("space")
    assert scope in backend.index_scopes()
    copy = backend.index_copy(scope)
    assert copy is None or copy.label() is None


@covers(Database.reading, Database.writing)
def test_a_snapshot_stays_and_a_failed_transaction_leaves_nothing(
    open_backend: OpenBackend,
) -> None:
    one, other = open_backend(), open_backend()
    with one.reading("space") as before:
        assert before.get(VALUE, ("k",)) is None
        with other.writing("space") as connection:
            connection.run(PUT, ("k", "v"))
        assert before.get(VALUE, ("k",)) is None
    with one.reading("space") as after:
        assert after.get(VALUE, ("k",)) == "v"

    def change_and_fail() -> None:
        with one.writing("space") as connection:
            connection.run("DELETE FROM store WHERE key = ?", ("k",))
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        change_and_fail()
    with other.reading("space") as after:
        assert after.get(VALUE, ("k",)) == "v"


@covers(Database.noting)
def test_a_minor_write_does_not_wait_for_another_writer(open_backend: OpenBackend) -> None:
    one, other = open_backend(), open_backend()

    change = "UPDATE store SET value = ? WHERE key = 'k'"

    def write_note(value: str) -> None:
        with one.noting("space", 0) as connection:
            connection.run(change, (value,))

    with other.writing("space") as connection:
        connection.run(PUT, ("k", "before"))
    with other.writing("space") as connection:
        assert connection.count(change, ("written",)) == 1  # a run might still be on its way
        with pytest.raises(StoreError):
            write_note("too early")
    with other.reading("space") as connection:
        assert connection.get(VALUE, ("k",)) == "written"
    write_note("noted")
    with other.reading("space") as connection:
        assert connection.get(VALUE, ("k",)) == "noted"


@covers(
    Backend.location, Database.writable, Database.is_remote, Backend.schema_version, Backend.trouble
)
@covers(Backend.ledger, Backend.index_path, Backend.prepare_publishing)
def test_a_database_describes_itself(open_backend: OpenBackend) -> None:
    one, other = open_backend(), open_backend()
    assert one.location
    assert one.location == other.location
    assert one.writable
    assert one.is_remote == other.is_remote
    assert one.schema_version == other.schema_version > 0
    assert one.trouble() is None
    ledger: Ledger | None = one.ledger
    assert ledger is not None
    scope = one.index_scope("space")
    assert one.index_path(scope) == other.index_path(scope)
    mode = one.prepare_publishing()
    assert one.index_path(scope).parent.is_dir()
    assert mode & 0o600 == 0o600, "the owner reads and writes the file"
    assert mode & ~0o777 == 0


@covers(Backend.sizes, Backend.compact)
def test_compacting_returns_the_room_of_removed_rows(backend: Backend) -> None:
    empty = backend.sizes()
    assert empty.index_bytes == 0
    with backend.writing("space") as connection:
        connection.run_many(PUT, ((f"k{n}", secrets.token_hex(2000)) for n in range(500)))
    with backend.writing("space") as connection:
        connection.run("DELETE FROM store WHERE key LIKE 'k%'")
        connection.run(PUT, ("kept", "v"))
    full = backend.sizes()
    assert full.store_bytes + full.log_bytes > empty.store_bytes + 2_000_000
    backend.compact()
    after = backend.sizes()
    assert after.store_bytes + after.log_bytes < empty.store_bytes + 1_000_000
    with backend.reading("space") as connection:
        assert connection.get(VALUE, ("kept",)) == "v"
    path = backend.index_path(backend.index_scope("space"))
    backend.prepare_publishing()
    path.write_bytes(b"12345")
    assert backend.sizes().index_bytes == 5


@covers(Backend.back_up)
def test_a_backup_has_what_was_committed_before(backend: Backend, tmp_path: Path) -> None:
    copies = [tmp_path / "first.copy", tmp_path / "second.copy"]
    for text, copy in zip(("earlier words", "later words"), copies, strict=True):
        with backend.writing("space") as connection:
            connection.run(PUT, (text, text))
        if not backend.back_up(copy):
            assert not copy.exists()
            return  # a server has no file to copy; the caller writes an export
    earlier, later = (copy.read_bytes() for copy in copies)
    assert [b"earlier words" in each for each in (earlier, later)] == [True, True]
    assert [b"later words" in each for each in (earlier, later)] == [False, True]


@covers(Backend.examine)
def test_an_examination_finds_and_repairs_lost_rows(backend: Backend) -> None:
    transactions.write(SqlStorage(backend), [draft("one", EAST), draft("two")], MODEL)
    index = index_of(backend)

    def examine(*, quick: bool = False, fix: bool = False) -> list[Finding]:
        return backend.examine(lambda _: index, quick=quick, fix=fix)

    checks = {each.check for each in examine() if each.ok}
    with backend.writing("space") as connection:
        assert connection.count("DELETE FROM pending_vectors") == 1
    [failed] = [each for each in examine() if not each.ok]
    assert failed.check in checks
    assert not failed.fixed
    repaired = examine(fix=True)
    assert [each.check for each in repaired if each.fixed] == [failed.check]
    assert all(each.ok for each in examine())
    quick = examine(quick=True)
    assert quick
    assert all(each.ok for each in quick)
    assert len(quick) < len(repaired)


@covers(Backend.rebuild)
def test_lost_rows_are_derived_again(backend: Backend) -> None:
    storage = SqlStorage(backend)
    transactions.write(storage, [draft("one", EAST), draft("two")], MODEL)
    with backend.writing("space") as connection:
        connection.run("DELETE FROM pending_vectors")
    backend.rebuild()
    with backend.reading("space") as connection:
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


@covers(Backend.claim, Backend.hold)
def test_a_claim_names_chunks_that_wait_for_vectors(backend: Backend) -> None:
    transactions.write(SqlStorage(backend), [draft("one"), draft("two"), draft("three")], None)
    numbers = sorted(backend.claim(9, 60, []))
    assert len(numbers) == 3
    backend.hold(numbers, 0)
    assert sorted(backend.claim(2, 60, numbers[:1])) == numbers[1:]
    backend.hold(numbers, 0)
    with backend.writing("space") as connection:
        connection.run("DELETE FROM pending_vectors WHERE chunk_no = ?", numbers[:1])
    assert backend.claim(1, 60, []) == numbers[1:2], "the oldest that still waits"
    backend.hold(numbers, 0)


@covers(Backend.close)
def test_a_closed_database_keeps_what_was_written_and_opens_again(
    open_backend: OpenBackend,
) -> None:
    first = open_backend()
    with first.writing("space") as connection:
        connection.run(PUT, ("k", "v"))
    first.close()
    with open_backend().reading("space") as connection:
        assert connection.get(VALUE, ("k",)) == "v"
    with pytest.raises(StoreError), first.writing("space"):
        pass
