"""What the rows of a copy promise, run on each implementation."""

from datetime import UTC, datetime

from byheart.contracts import Reader, Storage, Writer
from byheart.contracts.copies import CopyReader, CopyRows
from byheart.memory import transactions
from byheart.model import ApiKey
from byheart.model.times import now_micros
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.connection import Connection
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft, found, near

STAMP = 77
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


@covers(
    Reader.whole_rows,
    Writer.whole_rows,
    CopyReader.numbers,
    CopyReader.of_memories,
    CopyRows.add_memories,
    CopyRows.remove_memories,
)
def test_texts_come_back_as_they_were_and_are_found_again(storage: Storage) -> None:
    made = [draft("apples", EAST, tags=("t",), entities=("Ant",)), draft("pears", NORTH)]
    transactions.write(storage, made, MODEL)
    with storage.reading("space") as reader:
        numbers = reader.whole_rows.numbers("space")
        assert reader.whole_rows.numbers("nowhere") == []
        rows = reader.whole_rows.of_memories(numbers)
        assert [len(rows[each]) for each in ("memories", "chunks", "vectors", "tags")] == [
            *(2, 2, 2, 1)
        ]
        assert reader.whole_rows.of_memories(numbers[:1])["memories"] == rows["memories"][:1]
    with storage.writing("space") as writer:
        writer.whole_rows.remove_memories(numbers, STAMP)
        assert writer.whole_rows.numbers("space") == []
        writer.entities.add("Ant", "space")
    assert found(storage, "apples") == []
    with storage.writing("space") as writer:
        assert not any(writer.whole_rows.of_memories(numbers).values())
        writer.whole_rows.add_memories(rows, STAMP)
    with storage.reading("space") as reader:
        assert reader.whole_rows.of_memories(numbers) == rows
    transactions.write(storage, [draft("later", EAST)], MODEL)
    with storage.reading("space") as reader:
        assert reader.whole_rows.numbers("space")[:-1] == numbers


@covers(CopyReader.store_id, CopyReader.now_micros, CopyRows.renew_id)
def test_an_index_is_built_anew_under_another_id(storage: Storage) -> None:
    transactions.write(storage, [draft("apples", EAST)], MODEL)
    assert near(storage, EAST) == [("apples", 1.0)]
    with storage.writing("space") as writer:
        rows = writer.whole_rows
        before, [number] = rows.store_id(), rows.numbers("space")
        held = rows.of_memories([number])
        rows.remove_memories([number], STAMP)
        # The same numbers with another text: an index that follows the log would not notice.
        chunks = [(*row[:3], "pears!", *row[4:]) for row in held["chunks"]]
        rows.add_memories({**held, "chunks": chunks}, STAMP)
        rows.renew_id()
        assert rows.store_id() != before
        assert abs(rows.now_micros() - now_micros()) < 60_000_000
    assert found(storage, "pears") == ["pears!"]


@covers(CopyReader.spaces, CopyReader.of_space, CopyRows.replace_space)
def test_the_rows_of_a_space_are_replaced_in_that_space_alone(storage: Storage) -> None:
    for space in ("one", "two"):
        with storage.writing(space) as writer:
            entity = writer.entities.add("Ant", space)
            writer.entities.put(entity._replace(aliases=("Emmet",)))
            writer.workspaces.add(space, "/folder")
    with storage.reading() as reader:
        assert reader.whole_rows.spaces() == ["one", "two"]
        before = [reader.whole_rows.of_space(space) for space in ("one", "two")]
    assert {table for table, rows in before[0].items() if rows} == {
        *("entities", "entity_aliases", "workspaces")
    }
    with storage.writing("one") as writer:
        writer.whole_rows.replace_space("one", dict.fromkeys(before[0], ()))
    with storage.reading() as reader:
        assert not any(reader.whole_rows.of_space("one").values())
        assert reader.whole_rows.of_space("two") == before[1]
        assert reader.whole_rows.spaces() == ["two"]
    with storage.writing("one") as writer:
        writer.whole_rows.replace_space("one", before[0])
        assert writer.whole_rows.of_space("one") == before[0]


@covers(CopyReader.of_store, CopyRows.replace_store)
def test_the_rows_of_the_store_are_replaced(storage: Storage) -> None:
    with storage.writing(None) as writer:
        key = ApiKey("id", "laptop", "read", "space", None, AT, None, None)
        writer.api_keys.put(key, b"1" * 32)
        rows = writer.whole_rows.of_store()
        writer.api_keys.remove("id")
    with storage.writing(None) as writer:
        assert writer.whole_rows.of_store()["tokens"] == []
        writer.whole_rows.replace_store(rows)
        assert writer.whole_rows.of_store() == rows
    with storage.reading() as reader:
        assert reader.api_keys.find(secret_hash=b"1" * 32) == [key]


@covers(CopyReader.mark, CopyRows.set_mark, CopyReader.changed_by_others)
def test_a_copy_knows_its_mark_and_the_changes_of_others(storage: Storage) -> None:
    with storage.writing("space") as writer:
        rows = writer.whole_rows
        assert rows.mark() is None
        rows.set_mark("first")
        rows.set_mark("second")
        rows.remove_memories([1], STAMP)  # logs a change, even of a text that is not there
    with storage.reading() as reader:
        assert reader.whole_rows.mark() == "second"
        assert not reader.whole_rows.changed_by_others(STAMP)
        assert reader.whole_rows.changed_by_others(STAMP + 1)
    transactions.write(storage, [draft("apples", EAST)], MODEL)
    with storage.reading() as reader:
        assert reader.whole_rows.changed_by_others(STAMP)


@covers(Connection.skip_numbers)
def test_skipped_numbers_are_not_given(backend: Backend) -> None:
    row = {"space": "space", "key": "ant", "name": "Ant"}
    with backend.writing("space") as connection:
        connection.skip_numbers(500)
        connection.run(
            "INSERT INTO entities (entity_no, space, key, name) VALUES (500, 'space', 'b', 'B')"
        )
        assert connection.insert("entities", row) > 500
        connection.skip_numbers(3)
        assert connection.insert("entities", {**row, "key": "cat"}) > 500
