"""What the rows of models and vectors promise, run on each implementation."""

import numpy as np
import pytest

from byheart.contracts import (
    EmbedderSpec,
    KnownModel,
    Model,
    ModelReader,
    ModelRows,
    Models,
    Storage,
    VectorCounts,
    Window,
)
from byheart.embedding import stored_vectors
from byheart.memory import transactions
from byheart.memory.erasing import erase
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.storage import SqlStorage
from tests.contracts.conftest import OpenStorage
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NEXT, NORTH, draft, near, vectors_of

NOT_MADE = Window(b"9" * 16, None)


def test_the_first_model_that_brings_vectors_is_the_stores(storage: Storage) -> None:
    transactions.write(storage, [draft("without")], None)
    assert stored_vectors.read(storage).in_use() is None
    transactions.write(storage, [draft("with", EAST)], MODEL)
    assert stored_vectors.read(storage).in_use() == MODEL


def test_chunks_without_vectors_wait_for_them_oldest_first(storage: Storage) -> None:
    transactions.write(storage, [draft("first", title="T"), draft("second")], None)
    waiting = stored_vectors.waiting(storage, 10)
    assert [each.chunk.content for each in waiting] == ["first", "second"]
    assert waiting[0].title == "T"
    assert len(stored_vectors.waiting(storage, 1)) == 1
    window = Window(b"1" * 16, np.array(EAST, np.float32))
    assert stored_vectors.add_waiting(storage, MODEL, [(waiting[0], [window])]) == 1
    assert [each.chunk.content for each in stored_vectors.waiting(storage, 10)] == ["second"]
    assert near(storage, EAST) == [("first", 1.0)]


def test_waiting_chunks_are_listed_of_some_memories_and_without_some_chunks(
    storage: Storage,
) -> None:
    first, second = draft("first"), draft("second")
    transactions.write(storage, [first, second, draft("third")], None)
    waiting = stored_vectors.waiting(storage, 10)
    ids = [first.memory.memory_id, second.memory.memory_id]
    assert [each.memory_id for each in waiting[:2]] == ids
    assert stored_vectors.waiting(storage, 10, ids[1:]) == waiting[1:2]
    assert stored_vectors.waiting(storage, 10, ids) == waiting[:2]
    assert stored_vectors.waiting(storage, 1, ids) == waiting[:1]
    assert stored_vectors.waiting(storage, 10, (), [waiting[1].chunk_no]) == [
        waiting[0],
        waiting[2],
    ]
    assert stored_vectors.waiting(storage, 10, ids, [waiting[0].chunk_no]) == waiting[1:2]
    assert stored_vectors.waiting(storage, 10, ["mem_unknown"]) == []
    assert (
        stored_vectors.count_waiting(storage),
        stored_vectors.count_waiting(storage, ids[:1]),
    ) == (3, 1)


def test_a_chunk_whose_vectors_are_not_all_made_goes_on_waiting(storage: Storage) -> None:
    transactions.write(storage, [draft("text")], None)
    [waiting] = stored_vectors.waiting(storage, 10)
    made = Window(b"1" * 16, np.array(EAST, np.float32))
    windows = [made, Window(b"2" * 16, None)]
    assert stored_vectors.add_waiting(storage, MODEL, [(waiting, windows)]) == 0
    assert stored_vectors.waiting(storage, 10) == [waiting]


def test_vectors_that_come_twice_or_too_late_are_not_added(storage: Storage) -> None:
    made = draft("text")
    transactions.write(storage, [made], None)
    [waiting] = stored_vectors.waiting(storage, 10)
    window = Window(b"1" * 16, np.array(EAST, np.float32))
    assert stored_vectors.add_waiting(storage, MODEL, [(waiting, [window])]) == 1
    assert stored_vectors.add_waiting(storage, MODEL, [(waiting, [window])]) == 0
    erase(storage, [made.memory.memory_id], "space", tombstones=False)
    assert stored_vectors.add_waiting(storage, MODEL, [(waiting, [window])]) == 0
    assert all(finding.ok for finding in storage.examine())


def test_a_waiting_chunk_knows_the_chunk_before_it(storage: Storage) -> None:
    made = draft("\n\n".join(f"Paragraph {n} has some words. " * 4 for n in range(3)))
    assert len(made.chunks) > 1
    transactions.write(storage, [made], None)
    waiting = stored_vectors.waiting(storage, 10)
    assert waiting[0].before is None
    assert [each.before for each in waiting[1:]] == list(made.chunks[:-1])


@covers(ModelReader.vectors_of)
def test_vectors_of_texts_embedded_before_are_found_again(storage: Storage) -> None:
    made = draft("text", EAST)
    transactions.write(storage, [made], MODEL)
    text_hash = made.windows[0][0].text_hash
    known = vectors_of(storage, MODEL, [text_hash, b"?" * 16])
    assert list(known) == [text_hash]
    assert np.array_equal(known[text_hash], np.array(EAST, np.float32))
    assert vectors_of(storage, Model("another", 3), [text_hash]) == {}
    assert vectors_of(storage, Model(MODEL.name, 4), [text_hash]) == {}


@pytest.mark.parametrize("other", [Model("another", 3), Model("another", 2)])
def test_vectors_of_another_model_than_the_stores_are_not_mixed_in(
    storage: Storage, other: Model
) -> None:
    # Two processes with different models can both find the store without one, and both write.
    transactions.write(storage, [draft("ours", EAST)], MODEL)
    transactions.write(storage, [draft("theirs", EAST[: other.dimensions])], other)
    assert stored_vectors.read(storage).in_use() == MODEL
    assert near(storage, EAST) == [("ours", 1.0)]
    assert [each.chunk.content for each in stored_vectors.waiting(storage, 10)] == ["theirs"]
    assert all(finding.ok for finding in storage.examine())


def beside(storage: Storage, vector: tuple[float, float]) -> int:
    """Make vectors of the next model for all chunks that lack them."""
    with storage.reading() as reader:
        waiting = reader.models.lacking(NEXT, 100)
    window = Window(b"2" * 16, np.array(vector, np.float32))
    return stored_vectors.add_beside(storage, NEXT, [(each, [window]) for each in waiting])


def test_vectors_of_another_model_are_made_beside_and_searched_by_after_the_switch(
    open_storage: OpenStorage,
) -> None:
    storage, other = open_storage(), open_storage()
    transactions.write(storage, [draft("first", EAST), draft("second", NORTH)], MODEL)
    stored_vectors.begin(storage, NEXT)
    assert stored_vectors.count_lacking(storage, NEXT) == (2, 2)
    assert stored_vectors.switch(storage, NEXT, 0) is None
    assert beside(storage, (0.6, 0.8)) == 2
    assert beside(storage, (0.6, 0.8)) == 0
    assert near(other, EAST) == [("first", 1.0), ("second", 0.0)]
    assert stored_vectors.switch(storage, NEXT, 0) == 0
    assert stored_vectors.read(storage).in_use() == stored_vectors.read(other).in_use() == NEXT
    assert near(other, (0.6, 0.8)) == [("first", 1.0), ("second", 1.0)]  # type: ignore[arg-type]
    assert stored_vectors.read(storage).previous == MODEL.name
    assert stored_vectors.count_unused(storage) == 2
    assert all(finding.ok for finding in storage.examine())
    assert stored_vectors.drop_unused(storage, next_too=True) == 2
    assert stored_vectors.read(storage).previous is None
    assert all(finding.ok for finding in storage.examine())


def test_after_a_switch_exactly_the_chunks_without_vectors_wait_for_them(storage: Storage) -> None:
    transactions.write(storage, [draft("first", EAST)], MODEL)
    stored_vectors.begin(storage, NEXT)
    beside(storage, (1.0, 0.0))
    transactions.write(storage, [draft("second", NORTH)], MODEL)
    assert stored_vectors.switch(storage, NEXT, 0) is None
    assert stored_vectors.switch(storage, NEXT, 1) == 1
    assert [each.chunk.content for each in stored_vectors.waiting(storage, 10)] == ["second"]
    assert beside(storage, (0.0, 1.0)) == 1
    assert stored_vectors.waiting(storage, 10) == []
    assert near(storage, (0.0, 1.0))[0] == ("second", 1.0)  # type: ignore[arg-type]
    assert stored_vectors.switch(storage, MODEL, None) == 0
    assert near(storage, NORTH)[0] == ("second", 1.0)
    assert all(finding.ok for finding in storage.examine())


def test_how_an_embedder_is_opened_again_is_kept_with_its_model(storage: Storage) -> None:
    assert stored_vectors.read(storage).spec_of(MODEL) is None
    stored_vectors.note(storage, MODEL, EmbedderSpec("hash", "hash-3"))
    transactions.write(storage, [draft("text", EAST)], MODEL)
    assert stored_vectors.read(storage).spec_of(MODEL) == EmbedderSpec("hash", "hash-3")
    assert stored_vectors.read(storage).spec_of(NEXT) is None


@covers(ModelReader.lacking, ModelReader.count_lacking, ModelReader.any_waiting)
def test_chunks_that_wait_are_found_in_a_space_and_in_the_whole_store(backend: Backend) -> None:
    storage = SqlStorage(backend)
    spaces = [f"space {n}" for n in range(5)]  # some of them share a part
    transactions.write(storage, [draft("made", EAST, space=each) for each in spaces], MODEL)
    with storage.reading("space 0") as reader:
        assert not reader.models.any_waiting()
    transactions.write(storage, [draft("waits", space=each) for each in spaces[1:]], MODEL)
    with storage.reading() as reader:
        assert reader.models.any_waiting()
        assert reader.models.count_lacking(None) == 4
        assert sorted(each.space for each in reader.models.lacking(None, 99)) == sorted(spaces[1:])
    for space in spaces:
        with backend.reading(space) as connection:
            shares_numbers = connection.numbers.start == 0
        if shares_numbers:
            continue
        with storage.reading(space) as reader:
            own = [space] if space != "space 0" else []
            assert [each.space for each in reader.models.lacking(None, 99)] == own
            assert [each.space for each in reader.models.lacking(MODEL, 99)] == own
            assert reader.models.count_lacking(None) == len(own)
            assert reader.models.any_waiting() == bool(own)


@covers(ModelReader.read, ModelReader.lacking, ModelReader.count_lacking, ModelReader.counts)
@covers(ModelRows.write, ModelRows.add_vectors, ModelRows.drop_vectors)
def test_vectors_of_two_models_are_kept_counted_and_dropped_apart(storage: Storage) -> None:
    transactions.write(storage, [draft("one", EAST), draft("two", EAST), draft("three")], MODEL)
    window = Window(b"2" * 16, np.array((0.6, 0.8), np.float32))
    models = Models(
        (KnownModel(*MODEL), KnownModel(*NEXT, EmbedderSpec("hash", "x"))), MODEL.name, NEXT.name
    )
    with storage.writing("space") as writer:
        rows = writer.models
        rows.write(models)
        assert rows.read() == models
        lacking = rows.lacking(NEXT, 9)
        assert [each.chunk.content for each in lacking] == ["one", "two", "three"]
        numbers = [each.chunk_no for each in lacking]
        assert rows.lacking(NEXT, 9, after=numbers[0]) == lacking[1:]
        assert rows.lacking(NEXT, 1, without=numbers[:1]) == lacking[1:2]
        assert rows.lacking(NEXT, 9, of=[lacking[2].memory_id]) == lacking[2:]
        assert rows.lacking(None, 9) == rows.lacking(MODEL, 9) == lacking[2:]
        assert rows.count_lacking(None) == rows.count_lacking(MODEL) == 1
        assert rows.count_lacking(NEXT, [each.memory_id for each in lacking[:2]]) == 2
        made = {numbers[0]: [window], numbers[1]: [window, window], numbers[2]: [NOT_MADE]}
        assert rows.add_vectors(NEXT, made) == 2
        assert rows.add_vectors(NEXT, made) == 0
        assert rows.count_lacking(NEXT) == 1
        assert rows.counts() == VectorCounts(3, {MODEL.name: 2, NEXT.name: 3})
        assert rows.drop_vectors([NEXT.name], 0, 2) == [numbers[0], numbers[1]]
        assert rows.drop_vectors([NEXT.name], numbers[1], 9) == [numbers[1]]
        assert rows.drop_vectors(["unheard-of"], 0, 9) == []
        assert rows.counts() == VectorCounts(3, {MODEL.name: 2})


@covers(Storage.claim, Storage.hold)
def test_claimed_chunks_come_with_all_that_embedding_needs_until_they_have_vectors(
    storage: Storage,
) -> None:
    first, second = draft("first", title="T"), draft("second", space="other")
    transactions.write(storage, [first], None)
    transactions.write(storage, [second], None)
    waiting = storage.claim(1, 60)
    assert waiting == stored_vectors.waiting(storage, 10, [waiting[0].memory_id])
    [other] = storage.claim(9, 60, [each.chunk_no for each in waiting])
    claimed = {(each.chunk.content, each.space) for each in (*waiting, other)}
    assert claimed == {("first", "space"), ("second", "other")}
    storage.hold([each.chunk_no for each in (*waiting, other)], 0)
    window = Window(b"1" * 16, np.array(EAST, np.float32))
    assert stored_vectors.add_waiting(storage, MODEL, [(waiting[0], [window])]) == 1
    storage.hold([waiting[0].chunk_no], 60)
    assert storage.claim(9, 60) == [other]
    assert stored_vectors.add_waiting(storage, MODEL, [(other, [window])]) == 1
    assert storage.claim(9, 60) == []
