"""The doctor finds and repairs damage that only a PostgreSQL store can have."""

from __future__ import annotations

import gc
from weakref import WeakSet

import pytest

from byheart.contracts import IndexSource
from byheart.index.index import Index
from byheart.index.memory_use import UNLOADED
from byheart.index.view import View
from byheart.language.raw_query import parse_raw_query
from byheart.memory import transactions
from byheart.model import Finding
from byheart.storage.postgres import repairs
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from byheart.storage.sql.traces import UNSWEPT
from tests.contracts.drafts import EAST, MODEL, draft, found


@pytest.fixture(autouse=True)
def _three_spaces(storage: SqlStorage) -> None:
    for space in ("space", "one", "two"):
        transactions.write(storage, [draft(f"apples of {space}", EAST, space=space)], MODEL)
    assert failures(storage) == []


def failures(storage: SqlStorage) -> list[str]:
    return [each.check for each in storage.examine() if not each.ok]


def repaired(storage: SqlStorage) -> list[Finding]:
    findings = [each for each in storage.examine(fix=True) if each.fixed]
    assert failures(storage) == []
    return findings


def run(backend: PostgresBackend, statement: str) -> None:
    with backend.database.connected() as raw:
        raw.execute(statement)


def part_of(backend: PostgresBackend, space: str) -> str:
    found = backend.database.find(space)
    assert found is not None
    return f"{backend.database.schema}_{found.part:02}"


def test_a_detached_table_is_reported(backend: PostgresBackend, storage: SqlStorage) -> None:
    schema = backend.database.schema
    run(backend, f"ALTER TABLE {schema}.tags DETACH PARTITION {schema}_01.tags")
    [finding] = [each for each in storage.examine() if not each.ok]
    assert finding.check == "parts"
    assert f"{schema}_01.tags" in finding.message


def test_a_chunk_with_a_number_of_another_space_is_reported(
    backend: PostgresBackend, storage: SqlStorage
) -> None:
    part = part_of(backend, "space")
    run(backend, f"ALTER TABLE {part}.chunk_words DROP CONSTRAINT chunk_words_chunk_no_fkey")
    run(backend, f"ALTER TABLE {part}.vectors DROP CONSTRAINT vectors_chunk_no_fkey")
    run(backend, f"UPDATE {part}.chunks SET chunk_no = chunk_no + (9::bigint << 36)")
    assert "numbers of spaces" in failures(storage)


def test_a_sequence_that_is_behind_continues_behind_all_numbers(
    backend: PostgresBackend, storage: SqlStorage
) -> None:
    run(backend, f"SELECT setval('{backend.database.schema}.numbers', 1)")
    assert failures(storage) == ["sequences"]
    assert [each.check for each in repaired(storage)] == ["sequences"]
    transactions.write(storage, [draft("pears", EAST)], MODEL)
    assert found(storage, "pears") == ["pears"]


def test_an_invalid_index_is_built_again(backend: PostgresBackend, storage: SqlStorage) -> None:
    part = part_of(backend, "space")
    run(
        backend,
        "UPDATE pg_index SET indisvalid = false "
        f"WHERE indexrelid = '{part}.memories_by_time'::regclass",
    )
    assert failures(storage) == ["database indexes"]
    assert [each.check for each in repaired(storage)] == ["database indexes"]


def test_a_key_in_the_order_of_a_language_is_reported(
    backend: PostgresBackend, storage: SqlStorage
) -> None:
    run(
        backend,
        f"ALTER TABLE {backend.database.schema}.workspaces "
        'ALTER COLUMN space TYPE text COLLATE "POSIX"',
    )
    assert failures(storage) == ["collation"]


def test_samples_of_texts_are_turned_off_again(
    backend: PostgresBackend, storage: SqlStorage
) -> None:
    part = part_of(backend, "space")
    run(backend, f"ALTER TABLE {part}.chunks ALTER COLUMN content SET STATISTICS 100")
    assert failures(storage) == ["statistics of texts"]
    assert [each.check for each in repaired(storage)] == ["statistics of texts"]


def test_missing_and_wrong_words_are_derived_again(
    backend: PostgresBackend, storage: SqlStorage
) -> None:
    part = part_of(backend, "space")
    run(backend, f"DELETE FROM {part}.chunk_words")
    assert failures(storage) == ["keyword index"]
    assert [each.check for each in repaired(storage)] == ["keyword index"]
    run(backend, f"UPDATE {part}.chunk_words SET words = '{{1}}'")
    assert failures(storage) == ["keyword index as saved"]
    assert [each.check for each in repaired(storage)] == ["keyword index as saved"]
    with backend.reading("space") as connection:
        query = parse_raw_query("apple*")
        assert len(backend.lookup(connection).matches(query, connection.numbers)) == 1
        assert list(backend.lookup(connection).continuations("appl", "", 9)) == ["appl"]


def test_a_changed_text_is_reported_in_any_part(
    backend: PostgresBackend, storage: SqlStorage
) -> None:
    for space in ("space", "one", "two"):
        run(backend, f"UPDATE {part_of(backend, space)}.chunks SET content = content || '!'")
    findings = {each.check: each for each in storage.examine()}
    assert findings["texts as saved"].message.startswith("3 memories")


def test_texts_with_nul_characters_have_their_hash(storage: SqlStorage) -> None:
    transactions.write(storage, [draft("a\0b \U0010fffe c", EAST)], MODEL)
    assert failures(storage) == []


def test_a_damaged_index_file_names_its_space(
    backend: PostgresBackend, storage: SqlStorage
) -> None:
    storage.optimize()
    path = backend.index_path("one")
    contents = path.read_bytes()
    path.write_bytes(contents.replace(b'"change_no"', b'"changed_no"'))
    [finding] = [each for each in storage.examine() if not each.ok]
    assert (finding.check, finding.message[:10]) == ("search index", "space one:")
    assert [each.check for each in repaired(storage)] == ["search index"]


def test_compacting_keeps_the_latest_changes_of_each_space(
    backend: PostgresBackend, storage: SqlStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairs, "_CHANGES_KEPT", 3)
    for number in range(6):
        transactions.write(storage, [draft(f"pears {number}", EAST)], MODEL)
    count = "SELECT count(*), max(change_no) FROM changes WHERE change_no BETWEEN ? AND ?"

    def log(space: str) -> tuple[int, int]:
        with backend.reading(space) as connection:
            numbers = connection.numbers
            changes, last = connection.get(count, (numbers.start, numbers[-1]))
        return changes, last

    before = {space: log(space) for space in ("space", "one", "two")}
    storage.optimize()
    assert log("space") == (3, before["space"][1])
    assert log("one") == before["one"]
    assert failures(storage) == []
    assert len(found(storage, "pears")) == 6


def test_the_doctor_keeps_few_indexes_in_memory_at_a_time(
    backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = SqlStorage(backend, index_memory_bytes=1)
    for number in range(8):
        transactions.write(storage, [draft(f"apple {number}", space=f"space {number}")], None)
    with backend.writing(None) as connection:  # the doctor rewrites every index
        connection.run("INSERT INTO store (key, value) VALUES (?, '1')", (f"{UNSWEPT}:1:a",))
    loaded: WeakSet[Index] = WeakSet()
    most, real = 0, Index.view

    def view(self: Index, source: IndexSource) -> View | None:
        nonlocal most
        loaded.add(self)
        try:
            return real(self, source)
        finally:
            gc.collect()
            most = max(most, sum(each.memory_use != UNLOADED for each in loaded))

    monkeypatch.setattr(Index, "view", view)
    assert all(each.ok for each in storage.inspect())
    assert all(each.ok for each in storage.examine(fix=True))
    assert 1 <= most <= 2, "the one that leaves, and the one that comes"
