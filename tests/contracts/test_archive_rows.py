"""What the rows of imports, dumps and tombstones promise, run on each implementation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from byheart.contracts import (
    ArchiveRows,
    Dump,
    EntityRecord,
    EntityRows,
    KnownModel,
    LostLink,
    MemoryRecord,
    MemoryRows,
    Model,
    ModelReader,
    ModelRows,
    Models,
    Reader,
    Revision,
    Storage,
    StoredText,
    TextKey,
    TombstoneRecord,
    TombstoneRows,
    Window,
    Writer,
    key_of,
)
from byheart.memory import erasing, transactions
from byheart.model import HistoryEntry
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft, near

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
ONE, OTHER = TextKey("space", "aa" * 32), TextKey("other", "aa" * 32)
VECTOR = Window(b"1" * 16, np.array(EAST, np.float32))


def stored(content: str, turn_no: int | None = None, **fields: object) -> StoredText:
    """Make a text of one chunk as an export holds it, with a vector of MODEL."""
    made = draft(content, **fields)
    vectors = ({MODEL.name: (VECTOR,)},)
    return StoredText(made.memory, made.memory.updated_at, None, made.chunks, vectors, turn_no)


def records(storage: Storage, space: str | None = "space") -> list[object]:
    with storage.reading() as reader:
        return list(reader.dump(space, vectors=True).records())


@covers(
    Reader.tombstoned,
    TombstoneRows.add,
    TombstoneRows.find,
    TombstoneRows.remove,
    Writer.tombstones,
)
def test_tombstones_are_found_counted_once_and_removed_in_their_space(storage: Storage) -> None:
    first = TombstoneRecord(*ONE, at=AT)
    with storage.writing("space") as writer:
        assert writer.tombstones.add([first]) == 1
        assert writer.tombstones.add([replace(first, at=AT + timedelta(days=1))]) == 0
        assert writer.tombstones.find([ONE, OTHER]) == {ONE}
    with storage.reading() as reader:
        assert reader.tombstoned([ONE, OTHER, TextKey("space", "bb" * 32)]) == {ONE}
    assert records(storage) == [first], "the older one stays"
    assert records(storage, "other") == []
    with storage.writing("other") as writer:
        writer.tombstones.remove([OTHER])
    with storage.writing("space") as writer:
        assert writer.tombstones.find([ONE]) == {ONE}
        writer.tombstones.remove([ONE])
        assert writer.tombstones.find([ONE]) == set()


def test_a_text_that_is_saved_or_becomes_the_text_of_an_update_loses_its_tombstone(
    storage: Storage,
) -> None:
    first, second = draft("first text"), draft("second text")
    keys = [key_of(each.memory).text for each in (first, second)]
    for each in (*keys, OTHER):
        with storage.writing(each.space) as writer:
            writer.tombstones.add([TombstoneRecord(*each, at=AT)])
    transactions.write(storage, [first], None)
    with storage.reading() as reader:
        assert reader.tombstoned([*keys, OTHER]) == {keys[1], OTHER}
    memory = replace(second.memory, memory_id=first.memory.memory_id)
    text = (second.chunks, second.windows)
    transactions.revise(storage, Revision(memory, 1, (), "me", {}, text), None)
    with storage.reading() as reader:
        assert reader.tombstoned([*keys, OTHER]) == {OTHER}


@covers(
    ArchiveRows.space_of,
    ArchiveRows.insert,
    ArchiveRows.add_history,
    ArchiveRows.has_place,
    MemoryRows.texts,
    Dump.records,
    Dump.memory_count,
    Dump.model,
    Dump.models,
    Reader.dump,
    Reader.taken,
    Writer.archive,
)
def test_an_imported_text_is_dumped_as_it_came(storage: Storage) -> None:
    ended = {"memory_id": "mem_1", "replaced_at": AT, "session_id": "s"}
    earlier = stored("before", 7, version=1, **ended)
    present = stored("after", 7, memory_id="mem_1", session_id="s", version=2, tags=("t",))
    entry = HistoryEntry("update", AT, "tester", 2, "why", {"title": {"from": "a", "to": "b"}})
    with storage.writing("space") as writer:
        rows = writer.archive
        writer.models.write(Models((KnownModel(*MODEL), KnownModel("other", 2)), MODEL.name))
        assert rows.space_of("mem_1") is None
        rows.insert(earlier, 7)
        rows.add_history(rows.insert(present, 7), [entry])
        assert rows.space_of("mem_1") == "space"
        assert rows.has_place("space", "s", 7)
        assert not rows.has_place("space", "s", 8)
        assert not rows.has_place("other", "s", 7)
        texts = writer.memories.texts("mem_1", "space")
    assert [each[1:] for each in texts] == [
        (present.memory.content_hash, 1, 1, 1),
        (earlier.memory.content_hash, 1, 1, 0),
    ]
    [record] = records(storage)
    assert isinstance(record, MemoryRecord)
    assert [each.memory for each in (record.text, *record.earlier)] == [
        present.memory,
        earlier.memory,
    ]
    assert (record.text.turn_no, record.history) == (7, (entry,))
    [[window]] = record.text.vectors[0].values()
    assert window.text_hash == VECTOR.text_hash
    assert near(storage, EAST) == [("after", 1.0)]
    with storage.reading() as reader:
        dump = reader.dump(None, vectors=False)
        assert (dump.memory_count, dump.model) == (1, MODEL.name)
        assert list(dump.models) == [MODEL, Model("other", 2)]
        assert reader.taken(["mem_1", "mem_2"]) == {"mem_1"}
        some = reader.dump("space", vectors=True, memory_ids=["mem_1", "mem_2"])
        [chosen] = some.records()
        assert isinstance(chosen, MemoryRecord)
        assert (some.memory_count, chosen.text.memory) == (1, record.text.memory)
        assert (chosen.earlier[0].memory, chosen.history) == (earlier.memory, record.history)
        assert list(reader.dump("other", vectors=True, memory_ids=["mem_1"]).records()) == []
    assert all(finding.ok for finding in storage.examine())


@covers(ModelRows.write, ModelReader.lacking, Writer.models, Reader.models)
def test_imported_chunks_without_usable_vectors_wait_for_them(storage: Storage) -> None:
    wrong = Window(b"2" * 16, np.array((1.0, 0.0), np.float32))
    fits, misfits, unknown = stored("fits"), stored("misfits"), stored("unknown")
    with storage.writing("space") as writer:
        writer.models.write(Models((KnownModel(*MODEL), KnownModel("next", 3)), MODEL.name))
        misfits = replace(misfits, vectors=({MODEL.name: (wrong,)},))
        unknown = replace(unknown, vectors=({"unheard-of": (VECTOR,)},))
        for each in (fits, misfits, unknown):
            created = HistoryEntry("create", AT, "tester", 1, None, {})
            writer.archive.add_history(writer.archive.insert(each, None), [created])
    with storage.reading() as reader:
        waiting = reader.models.lacking(None, 10)
    assert [each.chunk.content for each in waiting] == ["misfits", "unknown"]
    assert [finding for finding in storage.examine() if not finding.ok] == []


def test_a_dump_of_some_memories_has_their_entities_and_no_tombstones(storage: Storage) -> None:
    chosen, other = draft("one", entities=("Bee",)), draft("two", entities=("Ant",))
    transactions.write(storage, [chosen, other], None)
    with storage.writing("space") as writer:
        writer.tombstones.add([TombstoneRecord(*ONE, at=AT)])
    ids = [chosen.memory.memory_id]
    with storage.reading("space") as reader:
        entity, memory = reader.dump("space", vectors=False, memory_ids=ids).records()
    assert entity == EntityRecord("space", "Bee", ())
    assert isinstance(memory, MemoryRecord)
    assert memory.text.memory.content == "one"


@covers(EntityRows.add, EntityRows.put, EntityRows.find, EntityRows.remove_unnamed, Writer.entities)
def test_entities_come_with_aliases_and_go_if_no_memory_names_them(storage: Storage) -> None:
    transactions.write(storage, [draft("text", entities=("Bee",))], None)
    with storage.writing("space") as writer:
        rows = writer.entities
        ant, bee = rows.add("Ant", "space"), rows.add("BEE", "space")
        assert (ant.name, ant.aliases, bee.name) == ("Ant", (), "Bee")
        rows.put(ant._replace(aliases=("Emmet",)))
        rows.put(bee._replace(aliases=("Drone",)))
        assert rows.add("EMMET", "space") == ant._replace(aliases=("Emmet",))
    with storage.writing("other") as writer:
        assert writer.entities.add("Ant", "other").entity_no != ant.entity_no
    expected = [EntityRecord("space", "Bee", ("Drone",)), EntityRecord("space", "Ant", ("Emmet",))]
    assert records(storage)[:2] == expected
    with storage.writing("space") as writer:
        for name in ("ANT", "Bee", "Wasp"):
            writer.entities.remove_unnamed(name, "space")
        assert writer.entities.find("Emmet", "space") is None
        assert writer.entities.find("Drone", "space") is not None
    with storage.writing("other") as writer:
        assert writer.entities.find("Ant", "other") is not None


@covers(ArchiveRows.lost_links)
def test_a_link_is_lost_if_its_space_has_no_memory_of_that_id(storage: Storage) -> None:
    here, far = draft("here"), draft("far", space="other")
    transactions.write(storage, [here, far], None)
    targets = (here.memory.memory_id, far.memory.memory_id, "mem_unknown")
    with storage.writing("space") as writer:
        numbers = [
            writer.archive.insert(stored(f"to {target}", superseded_by=target), None)
            for target in targets
        ]
        assert writer.archive.lost_links("space") == [
            LostLink(number, target)
            for number, target in zip(numbers[1:], targets[1:], strict=True)
        ]


def test_an_erasure_is_all_or_nothing_within_its_transaction(storage: Storage) -> None:
    made = [draft("one", EAST), draft("two", NORTH)]
    transactions.write(storage, made, MODEL)
    ids = [each.memory.memory_id for each in made]
    keys = [TextKey("space", each.memory.content_hash) for each in made]

    def remove_and_fail() -> None:
        with storage.writing("space") as writer:
            removed = erasing.remove(writer, [*ids, "unheard-of"], "space", tombstones=True)
            assert (removed.memories, removed.texts, removed.vectors) == (2, 2, 2)
            assert writer.tombstones.find(keys) == set(keys)
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        remove_and_fail()
    assert near(storage, EAST) == [("one", 1.0), ("two", 0.0)]
    with storage.writing("other") as writer:
        assert erasing.remove(writer, ids[:1], "other", tombstones=True).memories == 0
    with storage.writing("space") as writer:
        assert writer.tombstones.find(keys) == set()
    assert erasing.erase(storage, ids[:1], "space", tombstones=True).memories == 1
    with storage.reading() as reader:
        assert reader.tombstoned(keys) == {keys[0]}
    assert near(storage, EAST) == [("two", 0.0)]
