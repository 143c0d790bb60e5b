"""What every `Storage` promises, run on each implementation."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from byheart.contracts import (
    Bookmarks,
    Count,
    Draft,
    Listing,
    MemoryChange,
    Question,
    Reader,
    Removed,
    Storage,
    Tally,
    TextSummary,
    Writer,
)
from byheart.embedding import stored_vectors
from byheart.errors import Conflict
from byheart.language.terms import query_terms
from byheart.memory import notes, transactions
from byheart.memory.erasing import erase
from byheart.memory.erasing import remove as remove_rows
from byheart.model import Filter
from byheart.storage.sql.backend import Backend
from tests.contracts.conftest import OpenStorage
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft, found, key_of, near, vectors_of


def test_an_empty_storage_holds_nothing(storage: Storage) -> None:
    assert stored_vectors.read(storage).in_use() is None
    assert stored_vectors.waiting(storage, 10) == []
    assert found(storage, "anything") == []
    with storage.searching("space") as reader:
        assert reader.memories(Listing(Filter(space="space"))) == []
        assert reader.sessions("space", None, 10, 0) == ([], 0)
        assert reader.index.state("space").memories == 0
    assert all(finding.ok for finding in storage.examine())


def test_a_text_already_there_is_left_as_it_is(storage: Storage) -> None:
    first, again = draft("same", EAST, title="first"), draft("same", EAST, title="again")
    transactions.write(storage, [first], MODEL)
    [result] = transactions.write(storage, [again], MODEL)
    assert (result.status, result.memory_id) == ("unchanged", first.memory.memory_id)
    with storage.searching("space") as reader:
        assert reader.count(Listing(Filter(space="space"))) == 1


def test_a_write_is_all_or_nothing(storage: Storage) -> None:
    good, bad = draft("good", EAST), draft("bad", EAST)
    bad = Draft(bad.memory, bad.chunks, bad.windows * 2, (), "tester")  # more windows than chunks
    with pytest.raises(ValueError):
        transactions.write(storage, [good, bad], MODEL)
    with storage.searching("space") as reader:
        assert reader.count(Listing(Filter(space="space"))) == 0
    assert transactions.known(storage, [key_of(good)]) == {}
    assert found(storage, "good") == []
    assert all(finding.ok for finding in storage.examine())


def test_removing_leaves_nothing_behind(storage: Storage) -> None:
    gone, kept = draft("apple one", EAST, entities=("Ann",)), draft("apple two", NORTH)
    transactions.write(storage, [gone, kept], MODEL)
    assert (
        erase(storage, [gone.memory.memory_id, "unheard-of"], "space", tombstones=False).memories
        == 1
    )
    assert found(storage, "apple") == ["apple two"]
    assert [content for content, _ in near(storage, EAST)] == ["apple two"]
    assert transactions.known(storage, [key_of(gone)]) == {}
    assert vectors_of(storage, MODEL, [gone.windows[0][0].text_hash]) == {}
    assert all(finding.ok for finding in storage.examine())


def test_removing_from_another_space_removes_nothing(storage: Storage) -> None:
    made = draft("apple", EAST)
    transactions.write(storage, [made], MODEL)
    assert erase(storage, [made.memory.memory_id], "other", tombstones=False).memories == 0
    assert found(storage, "apple") == ["apple"]


def test_what_one_writes_another_reads_at_once(open_storage: OpenStorage) -> None:
    one, other = open_storage(), open_storage()
    for number in range(5):
        made = draft(f"apple {number}", EAST)
        transactions.write(one, [made], MODEL)
        assert len(found(other, "apple")) == number + 1
    erase(one, [made.memory.memory_id], "space", tombstones=False)
    assert len(found(other, "apple")) == 4


@covers(Storage.examine)
def test_everything_derived_can_be_made_anew_and_compacted(storage: Storage) -> None:
    transactions.write(storage, [draft(f"apple {n}", EAST) for n in range(5)], MODEL)
    transactions.write(storage, [draft("apple pending")], None)
    before = (
        found(storage, "apple"),
        near(storage, EAST),
        len(stored_vectors.waiting(storage, 10)),
    )
    for change in (storage.rebuild, storage.optimize, storage.refresh):
        change()
        assert (
            found(storage, "apple"),
            near(storage, EAST),
            len(stored_vectors.waiting(storage, 10)),
        ) == before
        assert all(finding.ok for finding in storage.examine())


@covers(Storage.location, Storage.writable, Storage.status)
def test_the_storage_names_itself_and_counts(open_storage: OpenStorage) -> None:
    storage = open_storage()
    transactions.write(
        storage, [draft("one", EAST, session_id="s"), draft("two", EAST, space="b")], MODEL
    )
    status = storage.status("space")
    assert status.store == storage.location
    assert storage.location
    assert storage.location == open_storage().location
    assert storage.writable
    assert (status.index.memories, status.vectors, status.spaces, status.sessions) == (1, 1, 2, 1)


@contextmanager
def changing(storage: Storage, memory_id: str) -> Iterator[None]:
    """Change a memory in a transaction that goes on."""
    with storage.writing("space") as writer:
        [held] = writer.memories.held([memory_id], "space")
        writer.memories.change([MemoryChange(held.memory_no, {"importance": 6.0})])
        assert writer.memories.memory(held.memory_no).importance == 6.0
        yield


def _accesses(reader: Reader, memory_id: str) -> int:
    memory = reader.memory(memory_id, "space")
    assert memory is not None
    return memory.access_count


@covers(Storage.note, Storage.settle, Reader.summaries, Reader.emitted, Writer.forget_emissions)
def test_notes_are_written_now_or_when_others_have_finished(open_storage: OpenStorage) -> None:
    storage, other = open_storage(), open_storage()
    made = draft("given", EAST)
    transactions.write(storage, [made], MODEL)
    memory_id = made.memory.memory_id
    storage.note(notes.accesses([memory_id, memory_id], "space"))
    storage.settle()
    with changing(other, memory_id):
        storage.note(notes.accesses([memory_id], "space"))
        storage.note(notes.emissions([f"{memory_id}#0"], "space", "s"))
        storage.settle()
        with open_storage().searching("space") as reader:
            [summary] = reader.summaries(reader.index.candidates(_given(), 9).memory_nos.tolist())
            assert summary == TextSummary(memory_id, memory_id, made.memory.summary, False, None)
            assert _accesses(reader, memory_id) == 2
            assert reader.emitted("space", "s") == []
    storage.settle()
    with other.searching("space") as reader:
        assert _accesses(reader, memory_id) == 3
        assert reader.emitted("space", "s") == [(memory_id, "given")]
        assert reader.emitted("space", "t") == []
    with other.writing("space") as writer:
        writer.forget_emissions("space", "s")
    with storage.reading() as reader:
        assert reader.emitted("space", "s") == []


def test_a_passage_is_noted_alone_and_with_its_memory(storage: Storage) -> None:
    made = draft("given", EAST)
    transactions.write(storage, [made], MODEL)
    memory_id = made.memory.memory_id
    storage.note(notes.emissions([memory_id, f"{memory_id}#0"], "space", "s"))
    storage.settle()
    with storage.reading("space") as reader:
        assert reader.emitted("space", "s") == [(made.memory.memory_id, "given")]


@covers(Storage.is_remote)
def test_a_process_reads_its_own_accesses_and_other_processes_read_them_soon(
    open_storage: OpenStorage,
) -> None:
    storage, other = open_storage(), open_storage()
    made = draft("given", EAST)
    transactions.write(storage, [made], MODEL)
    memory_id = made.memory.memory_id

    def count(reading: Storage) -> int:
        with reading.reading("space") as reader:
            memory = reader.memory(memory_id, "space")
        assert memory is not None
        return memory.access_count

    for number in (1, 2, 3):
        storage.note(notes.accesses([memory_id], "space"))
        assert count(storage) == number
    storage.note(notes.accesses([memory_id], "space"))
    assert storage.is_remote or count(other) == 4
    deadline = time.monotonic() + 30
    while count(other) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert count(other) == 4


def test_any_number_of_notes_is_written_at_once(storage: Storage) -> None:
    made = draft("given", EAST)
    transactions.write(storage, [made], MODEL)
    passages = [f"mem_gone#{number}" for number in range(70_000)]
    storage.note(notes.emissions([*passages, f"{made.memory.memory_id}#0"], "space", "s"))
    storage.settle()
    with storage.reading("space") as reader:
        assert reader.emitted("space", "s") == [(made.memory.memory_id, "given")]


def test_the_oldest_given_passages_are_let_go_only_when_many_more_are_recorded(
    storage: Storage,
) -> None:
    made = [draft(f"short text {n}") for n in range(130)]
    transactions.write(storage, made, None)

    def give(some: list[Draft]) -> int:
        storage.note(notes.emissions([each.memory.memory_id for each in some], "space", "s"))
        storage.settle()
        with storage.reading() as reader:
            return len(reader.emitted("space", "s"))

    assert [give(made[n : n + 10]) for n in range(0, 130, 10)] == [*range(10, 130, 10), 96]
    assert give(made[-10:]) == 96, "recorded already"


def _given() -> Question:
    return Question(Filter("space"), query_terms("given"), None)


def test_a_client_id_names_one_turn_of_a_session(storage: Storage) -> None:
    said = {"session_id": "s", "role": "user", "client_id": "a"}
    [made] = transactions.write(storage, [draft("one", **said)], None)
    again = draft("other words", kind="file", session_id="s", role="user", client_id="a")
    elsewhere = draft("one", session_id="t", role="user", client_id="a")
    with pytest.raises(Conflict, match="another text"):
        transactions.write(storage, [elsewhere, again], None)
    assert not transactions.known(storage, [key_of(elsewhere)]), "refused as a whole"
    same, other = transactions.write(storage, [draft("one", **said), elsewhere], None)
    assert (same.status, same.memory_id) == ("unchanged", made.memory_id)
    assert other.status == "created"
    transactions.forget(storage, [made.memory_id], "space", "tester", None)
    [hidden] = transactions.write(storage, [draft("one", **said)], None)
    assert hidden.memory_id == made.memory_id
    assert transactions.restore(storage, made.memory_id, "space", "tester")


@covers(Storage.bookmarks, Bookmarks.find, Bookmarks.put)
def test_a_bookmark_is_kept_for_each_file_and_space(open_storage: OpenStorage) -> None:
    storage, other = open_storage(), open_storage()
    storage.bookmarks.put("/a", "space", "1")
    storage.bookmarks.put("/a", "other", "2")
    storage.bookmarks.put("/a", "space", "3")
    asked = [("/a", "space"), ("/a", "other"), ("/b", "space")]
    assert [other.bookmarks.find(*each) for each in asked] == ["3", "2", None]


@covers(Storage.reading, Storage.erase, Storage.trouble)
def test_an_erasure_calls_back_in_a_transaction_and_counts(storage: Storage) -> None:
    made = [draft("a plainly visible text", EAST), draft("another one", NORTH)]
    transactions.write(storage, made, MODEL)
    asked: list[str] = []

    def remove(writer: Writer, memory_ids: Sequence[str]) -> Removed:
        asked.extend(memory_ids)
        return remove_rows(writer, memory_ids, "space", tombstones=False)

    removal = storage.erase([made[0].memory.memory_id], "space", remove)
    assert asked == [made[0].memory.memory_id]
    assert (removal.memories, removal.chunks, removal.traces) == (1, 1, ())
    with storage.reading() as reader:
        assert reader.ids(Listing(Filter("space"))) == [made[1].memory.memory_id]
    assert storage.trouble() is None


@covers(Storage.back_up)
def test_a_copy_of_the_store_has_its_texts(storage: Storage, tmp_path: Path) -> None:
    transactions.write(storage, [draft("a plainly visible text")], None)
    copied = storage.back_up(tmp_path / "copy")
    assert copied == (tmp_path / "copy").exists()
    if copied:
        assert b"a plainly visible text" in (tmp_path / "copy").read_bytes()
    assert found(storage, "visible") == ["a plainly visible text"]


@covers(Storage.inventory, Storage.ledger)
def test_the_contents_of_a_space_are_counted_by_kind(storage: Storage) -> None:
    made = [draft("one", EAST), draft("two", kind="file"), draft("far", EAST, space="other")]
    transactions.write(storage, made, MODEL)
    inventory = storage.inventory("space")
    assert (inventory.kinds, inventory.vectors) == ({"file": 1, "note": 1}, 1)
    assert (inventory.index.memories, inventory.index.pending_vectors) == (2, 1)
    assert inventory.index.model == MODEL.name
    assert inventory.sizes.total_bytes > 0
    count = Count("space", "query", "hybrid")
    assert storage.ledger is not None
    assert storage.ledger.add(Tally({count: 2}))
    assert storage.ledger.read("space").counts == {count: 2}


@covers(Storage.report_work, Storage.inspect)
def test_work_on_the_index_is_reported_and_the_index_inspected(storage: Storage) -> None:
    done: list[tuple[str, float]] = []
    storage.report_work(lambda name, seconds: done.append((name, seconds)))
    transactions.write(storage, [draft("one", EAST)], MODEL)
    assert found(storage, "one") == ["one"]
    reported = [*done]
    assert found(storage, "one") == ["one"]
    assert done == reported
    assert done
    assert all(name and seconds > 0 for name, seconds in done)
    findings = storage.inspect()
    assert 0 < len(findings) < len(storage.examine())
    assert all(each.ok for each in findings)


@covers(Storage.close)
def test_closing_writes_the_notes_that_were_waiting(open_storage: OpenStorage) -> None:
    storage, other = open_storage(), open_storage()
    made = draft("given", EAST)
    transactions.write(storage, [made], MODEL)
    with changing(other, made.memory.memory_id):
        storage.note(notes.accesses([made.memory.memory_id], "space"))
    storage.close()
    with other.reading() as reader:
        memory = reader.memory(made.memory.memory_id, "space")
    assert memory is not None
    assert memory.access_count == 1


@covers(Storage.rebuild, Storage.optimize, Storage.refresh)
def test_lost_derived_data_is_made_again(storage: Storage, backend: Backend) -> None:
    done: list[str] = []
    storage.report_work(lambda name, _: done.append(name))
    transactions.write(storage, [draft("one", EAST), draft("two")], MODEL)
    storage.refresh()
    reported = [*done]
    assert reported
    assert found(storage, "two") == ["two"]
    assert done == reported, "the search found the index up to date"
    with backend.writing("space") as connection:
        assert connection.count("DELETE FROM pending_vectors") == 1
    storage.rebuild()
    assert [each.chunk.content for each in stored_vectors.waiting(storage, 9)] == ["two"]
    path = backend.index_path(backend.index_scope("space"))
    path.unlink()
    storage.optimize()
    assert path.exists()
    assert found(storage, "two") == ["two"]
