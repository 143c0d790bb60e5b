"""What the rows of memories promise, run on each implementation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from byheart.contracts import (
    Draft,
    Event,
    Inserted,
    Listing,
    MemoryChange,
    MemoryRows,
    MemoryState,
    NewText,
    Places,
    Storage,
    Window,
    Writer,
)
from byheart.memory import transactions
from byheart.model import Filter, text_id
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft, found, key_of, near

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


def put(rows: MemoryRows, made: Draft, turn_no: int | None = None, **life: object) -> int:
    """Insert a text, and give its number."""
    text = NewText(made.memory, made.derived, made.chunks, made.windows, turn_no, life)
    return rows.insert(text, MODEL).memory_no


def put_earlier(rows: MemoryRows, made: Draft, present: Draft) -> int:
    """Insert an earlier text of a memory."""
    name = text_id(present.memory.memory_id, 1)
    earlier = replace(made, memory=replace(made.memory, memory_id=name))
    return put(rows, earlier, version_of=present.memory.memory_id, replaced_at=AT)


@covers(Storage.writing, Writer.memories, MemoryRows.insert, MemoryRows.memory)
@covers(MemoryRows.prefetch_insert)
def test_a_text_is_inserted_whole_with_the_fields_of_its_life(storage: Storage) -> None:
    transactions.write(storage, [draft("first", EAST)], MODEL)
    made = draft("plum", NORTH, tags=("x",), entities=("Ann",), title="T")
    with storage.writing("space") as writer:
        rows = writer.memories
        text = NewText(made.memory, (), made.chunks, made.windows, 7, {"version": 3})
        rows.prefetch_insert(made.memory, len(made.chunks), MODEL)
        number, pending = rows.insert(text, MODEL)
        assert pending == 0
        bare = draft("bare")
        waiting = rows.insert(NewText(bare.memory, (), bare.chunks, bare.windows, None), MODEL)
        assert waiting == Inserted(waiting.memory_no, 1)
        assert rows.memory(number) == replace(made.memory, version=3)
        assert rows.memory(waiting.memory_no) == bare.memory
    assert found(storage, "plum") == ["plum"]
    assert found(storage, "plum", tags=("x",), entities=("ann",)) == ["plum"]
    assert near(storage, NORTH)[0] == ("plum", 1.0)


@covers(MemoryRows.find)
def test_a_memory_is_found_by_its_text_or_by_its_client_id(storage: Storage) -> None:
    plain, turn = draft("plain", session_id="s"), draft("turn", session_id="s", role="user")
    named = draft("named", client_id="c")
    with storage.writing("space") as writer:
        rows = writer.memories
        numbers = [put(rows, each) for each in (plain, turn, named)]
        key = key_of(plain)
        for wanted, expected in {
            key: numbers[0],
            key._replace(session_id=None): None,
            key._replace(kind="file"): None,
            key._replace(space="other"): None,
            key_of(turn): None,
            key_of(named): numbers[2],
            key_of(named)._replace(content_hash="00" * 32): numbers[2],
        }.items():
            same = rows.find(wanted)
            assert (None if same is None else same.memory_no) == expected, wanted
        rows.change([MemoryChange(each, {"forgotten_at": AT}) for each in numbers])
        assert rows.find(key) is None
        hidden = rows.find(key_of(named))
        assert hidden is not None
        assert hidden.forgotten_at == AT
        again = put(rows, named := draft("again", client_id="c"))
        preferred = rows.find(key_of(named))
        assert preferred is not None
        assert preferred.memory_no == again, "a visible one is preferred"


@covers(MemoryRows.held, MemoryRows.texts, MemoryRows.superseded_by)
def test_memories_are_held_by_the_rows_of_their_present_texts(storage: Storage) -> None:
    old, new, other = draft("old"), draft("new"), draft("other", session_id="s", space="other")
    before = draft("before")
    fields = {"superseded_by": new.memory.memory_id, "superseded_at": AT, "pinned_at": AT}
    fields |= {"untrusted_at": AT}
    with storage.writing("other") as writer:
        put(writer.memories, other, **fields)
    with storage.writing("space") as writer:
        rows = writer.memories
        first, second = put(rows, old, **fields), put(rows, new)
        earlier = put_earlier(rows, before, new)
        ids = [new.memory.memory_id, "unheard-of", other.memory.memory_id, old.memory.memory_id]
        held = rows.held(ids, "space")
        assert [each.memory_no for each in held] == [second, first]
        assert held[1] == MemoryState(
            *(first, old.memory.memory_id, key_of(old), 1, old.memory.created_at),
            *(old.memory.updated_at, None, None, None, new.memory.memory_id, AT, AT, AT),
            *(None, None, None, 0, None, None, 1, 1),
        )
        assert rows.superseded_by(new.memory.memory_id, "space") == held[1:]
        assert rows.superseded_by(old.memory.memory_id, "space") == []
        texts = rows.texts(new.memory.memory_id, "space")
        assert [(each.memory_no, each.content_hash) for each in texts] == [
            (second, new.memory.content_hash),
            (earlier, before.memory.content_hash),
        ]
        assert rows.texts(new.memory.memory_id, "other") == []


@covers(MemoryRows.hidden_last, MemoryRows.named)
def test_the_memories_hidden_last_were_hidden_at_one_moment(storage: Storage) -> None:
    made = [draft(f"text {n}", session_id="s") for n in range(4)]
    with storage.writing("space") as writer:
        rows = writer.memories
        numbers = [put(rows, each) for each in made]
        assert rows.hidden_last("s", "space") == []
        assert rows.named("space", "s", "unheard-of") == []
        for number, at in zip(numbers, (AT + timedelta(1), AT, AT), strict=False):
            event = Event("forget", at, "tester")
            rows.change([MemoryChange(number, {"forgotten_at": at}, event)])
        assert [each.memory_no for each in rows.hidden_last("s", "space")] == numbers[1:3]
        assert rows.hidden_last("s", "other") == rows.hidden_last("t", "space") == []


@covers(MemoryRows.places, MemoryRows.space_out)
def test_places_of_a_session_are_found_by_time_and_spaced_out_in_order(storage: Storage) -> None:
    hours = [AT + timedelta(hours=n) for n in range(3)]
    with storage.writing("other") as writer:
        put(writer.memories, draft("far", session_id="s", space="other", created_at=AT), 99)
    with storage.writing("space") as writer:
        rows = writer.memories
        assert rows.places("space", "s", None) == rows.places("space", "s", AT)
        assert rows.places("space", "s", None) == Places(None, None, None)
        for turn_no, at in zip((4, 5, 6), hours, strict=True):
            made = draft(f"turn {turn_no}", session_id="s", role="user", created_at=at)
            put(rows, made, turn_no)
        minute = timedelta(minutes=1)
        for at, before, after in (
            (AT - minute, None, 4),
            (hours[0], 4, 5),
            (hours[1] + minute, 5, 6),
            (hours[2] + minute, 6, None),
        ):
            assert rows.places("space", "s", at) == Places(None, before, after)
        assert rows.places("space", "s", None).last == 6
        rows.space_out("space", "s", 100)
        assert rows.places("space", "s", hours[1]) == Places(None, 200, 300)
        assert rows.places("space", "s", None).last == 300
    with storage.writing("other") as writer:
        assert writer.memories.places("other", "s", None).last == 99
    with storage.reading() as reader:
        said = reader.memories(Listing(Filter("space"), "said", roles=()))
        assert [each.content for each in said] == ["turn 4", "turn 5", "turn 6"]


@covers(MemoryRows.change)
def test_a_change_sets_fields_labels_and_history_together(storage: Storage) -> None:
    made = draft("plum", EAST, tags=("x",), entities=("Ann",))
    transactions.write(storage, [made], MODEL)
    labels = replace(made.memory, tags=("y",), entities=("Bob",))
    event = Event("update", AT, "someone", "why", {"kind": {"from": "note", "to": "file"}})
    assert found(storage, "plum", kind=("note",)) == ["plum"]
    with storage.writing("space") as writer:
        rows = writer.memories
        [held] = rows.held([made.memory.memory_id], "space")
        earlier = put_earlier(rows, draft("before"), made)
        changed = MemoryChange(held.memory_no, {"kind": "file", "version": 2}, event, labels=labels)
        rows.change([changed, MemoryChange(held.memory_no, {"expires_at": AT}, every_text=True)])
        assert rows.memory(earlier).expires_at == AT
        assert rows.memory(earlier).kind == "note"
        memory = rows.memory(held.memory_no)
        assert (memory.kind, memory.version, memory.expires_at) == ("file", 2, AT)
        assert (memory.tags, memory.entities) == (("y",), ("Bob",))
        rows.change([MemoryChange(held.memory_no, {"expires_at": None}, every_text=True)])
    with storage.reading() as reader:
        last = reader.history(made.memory.memory_id, "space")[-1]
    assert (last.operation, last.at, last.who, last.version) == ("update", AT, "someone", 2)
    assert (last.reason, last.changes) == ("why", event.changes)
    for where, expected in (
        ({"kind": ("file",)}, ["plum"]),
        ({"kind": ("note",)}, []),
        ({"tags": ("x",)}, []),
        ({"tags": ("y",), "entities": ("bob",)}, ["plum"]),
    ):
        assert found(storage, "plum", **where) == expected, "the index follows"


@covers(MemoryRows.rewrite_chunks)
@pytest.mark.parametrize("embedded_again", [False, True])
def test_rewritten_chunks_have_new_words_and_old_or_new_vectors(
    storage: Storage, embedded_again: bool
) -> None:
    made = draft("plum", EAST, title="Before")
    transactions.write(storage, [made, draft("other", (0.0, 0.0, 1.0))], MODEL)
    assert found(storage, "before") == ["plum"]
    windows = [[Window(b"3" * 16, np.array(NORTH, np.float32))]] if embedded_again else None
    changed = replace(made.memory, title="After")
    with storage.writing("space") as writer:
        [held] = writer.memories.held([made.memory.memory_id], "space")
        writer.memories.change([MemoryChange(held.memory_no, {"title": "After"})])
        writer.memories.rewrite_chunks(held.memory_no, changed, windows, MODEL)
    assert found(storage, "before") == []
    assert found(storage, "after") == ["plum"]
    assert near(storage, NORTH if embedded_again else EAST)[0] == ("plum", 1.0)
    assert all(finding.ok for finding in storage.examine())


@covers(MemoryRows.move_history, MemoryRows.remove_text)
def test_history_moves_and_rows_go_alone_or_with_earlier_texts(storage: Storage) -> None:
    present, before = draft("plum present", EAST), draft("plum before", NORTH)
    transactions.write(storage, [present, draft("plum kept", NORTH)], MODEL)
    memory_id = present.memory.memory_id
    with storage.writing("space") as writer:
        rows = writer.memories
        [held] = rows.held([memory_id], "space")
        earlier = put_earlier(rows, before, present)
        rows.move_history(held.memory_no, earlier)
        counts = {each.memory_no: each.history for each in rows.texts(memory_id, "space")}
        assert counts == {held.memory_no: 0, earlier: 1}
        rows.move_history(earlier, held.memory_no)
        rows.remove_text(earlier)
        assert [each.memory_no for each in rows.texts(memory_id, "space")] == [held.memory_no]
        again = put_earlier(rows, before, present)
        rows.remove_text(held.memory_no, every_text=True)
        assert rows.texts(memory_id, "space") == []
        assert rows.held([memory_id], "space") == []
        assert again != held.memory_no
    assert found(storage, "plum") == ["plum kept"]
    assert near(storage, EAST) == [("plum kept", 0.0)]
    assert all(finding.ok for finding in storage.examine())


@pytest.mark.parametrize("name", ["title = ?, kind", "content", "no_such_column"])
def test_a_change_of_an_unknown_field_is_refused(storage: Storage, name: str) -> None:
    made = draft("a text")
    transactions.write(storage, [made], None)
    with storage.writing("space") as writer:
        (held,) = writer.memories.held([made.memory.memory_id], "space")
        with pytest.raises(ValueError, match="no column"):
            writer.memories.change([MemoryChange(held.memory_no, {name: "x"})])
        assert writer.memories.memory(held.memory_no).content == "a text"
