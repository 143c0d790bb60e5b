"""What every `Storage` promises, run on each implementation."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart import contracts
from byheart.chunking import split
from byheart.contracts import (
    Candidates,
    DedupKey,
    Draft,
    EmbedderSpec,
    KeyUse,
    Listing,
    MemoryChange,
    Model,
    Question,
    Section,
    Storage,
    Vectors,
    Window,
)
from byheart.embedding import stored_vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.errors import Conflict
from byheart.language.raw_query import parse_raw_query
from byheart.language.terms import query_terms
from byheart.memory import entities, expiry, notes, transactions
from byheart.memory.duplicates import find_doubles, find_similar
from byheart.memory.erasing import erase
from byheart.model import ApiKey, Filter, Heading, Memory
from byheart.model.ids import new_memory_id
from byheart.storage.sqlite import SqliteStorage

Open = Callable[[], Storage]
MODEL = Model("by-hand", 3)
EAST, NORTH, WEST = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)


def open_sqlite(folder: Path) -> Storage:
    return SqliteStorage(folder / "memory.db")


IMPLEMENTATIONS = [open_sqlite]


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda implementation: implementation.__name__)
def open_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    opened: list[Storage] = []

    def open_one() -> Storage:
        opened.append(request.param(tmp_path))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def storage(open_storage: Open) -> Storage:
    return open_storage()


def draft(content: str, *vectors: tuple[float, ...], **fields: Any) -> Draft:
    """Make a memory that is ready to be written; one vector per chunk, or none."""
    chunks = tuple(split(content, format="markdown", tokens=EstimatedTokens(), target_tokens=32))
    now = datetime.now(UTC)
    given: dict[str, Any] = {
        "memory_id": new_memory_id(),
        "space": "space",
        "kind": "note",
        "title": None,
        "summary": content[:20],
        "source": "test",
        "session_id": None,
        "agent_id": None,
        "session_iter": None,
        "task_code": None,
        "path": None,
        "tags": (),
        "entities": (),
        "importance": 5.0,
        "metadata": {},
        "format": "markdown",
        "created_at": now,
        "updated_at": now,
        **fields,
    }
    memory = Memory(
        content=content,
        content_hash=sha256(content.encode()).hexdigest(),
        chunks=len(chunks),
        **given,
    )
    assert len(vectors) in (0, len(chunks))
    windows = tuple(
        (Window(sha256(chunk.content.encode()).digest()[:16], np.array(vector, np.float32)),)
        for chunk, vector in zip(chunks, vectors, strict=False)
    ) or tuple(() for _ in chunks)
    return Draft(memory, chunks, windows, (), "tester")


def key_of(made: Draft) -> DedupKey:
    return contracts.key_of(made.memory)


def found(storage: Storage, query: str, **where: Any) -> list[str]:
    chosen = Filter(**{"space": "space", **where})
    with storage.searching() as reader:
        found = reader.index.candidates(Question(chosen, query_terms(query), None), 100)
        return [each.chunk.content for each in reader.chunks(in_order(found, "keyword_ranks"))]


def in_order(found: Candidates, ranks: str) -> list[int]:
    """List the chunks that a retriever found, best first."""
    numbers: list[int] = found.chunk_nos[np.argsort(getattr(found, ranks))].tolist()
    return numbers


def near(storage: Storage, vector: tuple[float, ...], limit: int = 100) -> list[tuple[str, float]]:
    with storage.searching() as reader:
        question = Question(Filter(space="space"), None, np.array(vector, np.float32))
        found = reader.index.candidates(question, limit)
        chunks = reader.chunks(in_order(found, "vector_ranks"))
        cosines = dict(zip(found.chunk_nos.tolist(), found.cosines.tolist(), strict=True))
        return [(each.chunk.content, round(cosines[each.chunk_no], 2)) for each in chunks]


def vectors_of(storage: Storage, model: Model, hashes: list[bytes]) -> dict[bytes, Vectors]:
    with storage.reading() as reader:
        return reader.models.vectors_of(model, hashes)


def test_an_empty_storage_holds_nothing(storage: Storage) -> None:
    assert stored_vectors.read(storage).in_use() is None
    assert stored_vectors.waiting(storage, 10) == []
    assert found(storage, "anything") == []
    with storage.searching() as reader:
        assert reader.memories(Listing(Filter(space="space"))) == []
        assert reader.sessions("space", None, 10, 0) == ([], 0)
        assert reader.index.state("space").memories == 0
    assert all(finding.ok for finding in storage.examine())


def test_what_is_written_is_read_as_it_was_written(storage: Storage) -> None:
    made = draft(
        "# Title\n\nwords\r\n",
        EAST,
        title="T",
        session_id="s",
        agent_id="a",
        session_iter=3,
        task_code="c",
        path="p/q.md",
        tags=("x", "y"),
        entities=("Ann",),
        importance=7.25,
        metadata={"k": [1, {"n": None}]},
        expires_at=datetime(2099, 1, 1, tzinfo=UTC),
    )
    [result] = transactions.write(storage, [made], MODEL)
    assert (result.status, result.memory_id) == ("created", made.memory.memory_id)
    with storage.searching() as reader:
        assert reader.memory(result.memory_id, "space") == made.memory
        chunks = [each.chunk for each in reader.chunks_of(result.memory_id, "space")]
    assert tuple(chunks) == made.chunks


def test_some_chunks_of_a_memory_are_read_without_the_others(storage: Storage) -> None:
    made = draft("\n\n".join(f"## {number}\n\nwords" for number in range(9)))
    [result] = transactions.write(storage, [made], MODEL)
    with storage.reading() as reader:
        for part in (range(9), range(3, 6), range(7, 12), range(-2, 1), range(20, 30)):
            found = reader.chunks_of(result.memory_id, "space", part)
            assert [each.chunk for each in found] == [
                each for each in made.chunks if each.index in part
            ]


def test_chunks_under_a_heading_are_found_with_those_below_it_or_without(storage: Storage) -> None:
    made = draft('Before.\n\n# A "b"\n\none\n\n## B\n\ntwo\n\n### C\n\nthree\n\n## B\n\nfour\n')
    [result] = transactions.write(storage, [made, draft("## B\n\nelsewhere\n")], MODEL)[:1]
    tops: set[tuple[Heading, ...]] = {()}
    tops |= {each.headings[:depth] for each in made.chunks for depth in range(1, 4)}
    assert len(tops) == 5, "the two of one title are two"
    with storage.reading() as reader:
        for headings in tops:
            under = [each for each in made.chunks if each.headings[: len(headings)] == headings]
            exactly = [each for each in under if each.headings == headings]
            for below, expected in ((True, under), (False, exactly)):
                found = reader.chunks_of(result.memory_id, "space", under=Section(headings, below))
                assert [each.chunk for each in found] == expected
        assert reader.chunks_of(result.memory_id, "elsewhere", under=Section((), True)) == []


def test_a_text_already_there_is_left_as_it_is(storage: Storage) -> None:
    first, again = draft("same", EAST, title="first"), draft("same", EAST, title="again")
    transactions.write(storage, [first], MODEL)
    [result] = transactions.write(storage, [again], MODEL)
    assert (result.status, result.memory_id) == ("unchanged", first.memory.memory_id)
    with storage.searching() as reader:
        assert reader.count(Listing(Filter(space="space"))) == 1


def test_known_finds_exactly_what_is_stored(storage: Storage) -> None:
    stored, missing = draft("stored", EAST, session_id="s"), draft("missing", EAST)
    transactions.write(storage, [stored], MODEL)
    elsewhere = key_of(stored)._replace(session_id=None)
    known = transactions.known(storage, [key_of(stored), key_of(missing), elsewhere])
    assert set(known) == {key_of(stored)}
    assert known[key_of(stored)].memory_id == stored.memory.memory_id


def test_a_write_is_all_or_nothing(storage: Storage) -> None:
    good, bad = draft("good", EAST), draft("bad", EAST)
    bad = Draft(bad.memory, bad.chunks, bad.windows * 2, (), "tester")  # more windows than chunks
    with pytest.raises(ValueError):
        transactions.write(storage, [good, bad], MODEL)
    with storage.searching() as reader:
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


def test_words_rank_by_relevance_and_equals_by_age(storage: Storage) -> None:
    transactions.write(
        storage,
        [
            draft("plum and other words to fill", EAST),
            draft("plum plum", EAST),
            draft("tie plum x y", EAST),
            draft("tie plum x z", EAST),
            draft("nothing", EAST),
        ],
        MODEL,
    )
    ranked = found(storage, "plum")
    assert ranked[0] == "plum plum"
    assert ranked.index("tie plum x y") < ranked.index("tie plum x z")
    assert "nothing" not in ranked


def test_vectors_rank_by_cosine(storage: Storage) -> None:
    transactions.write(storage, [draft("w", WEST), draft("n", NORTH), draft("e", EAST)], MODEL)
    assert near(storage, EAST) == [("e", 1.0), ("n", 0.0), ("w", -1.0)]
    assert near(storage, EAST, limit=1) == [("e", 1.0)]


def test_a_chunk_without_vectors_has_no_cosine(storage: Storage) -> None:
    transactions.write(storage, [draft("without"), draft("with", EAST)], MODEL)
    with storage.searching() as reader:
        question = Question(Filter("space"), ["with", "without"], np.array(EAST, np.float32))
        found = reader.index.candidates(question, 10)
        chunks = reader.chunks(found.chunk_nos.tolist())
    near = {each.chunk.content: cosine for each, cosine in zip(chunks, found.cosines, strict=True)}
    assert near["with"] == pytest.approx(1.0, abs=1e-3)
    assert math.isnan(near["without"])


def test_a_chunk_is_as_near_as_its_best_window(storage: Storage) -> None:
    made = draft("two windows", EAST)
    windows = ((made.windows[0][0], Window(b"0" * 16, np.array(WEST, np.float32))),)
    transactions.write(storage, [Draft(made.memory, made.chunks, windows, (), "t")], MODEL)
    assert near(storage, WEST) == [("two windows", 1.0)]
    assert near(storage, EAST) == [("two windows", 1.0)]


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
    assert stored_vectors.add_waiting(storage, MODEL, {waiting[0].chunk_no: [window]}) == 1
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
    assert (
        stored_vectors.add_waiting(
            storage, MODEL, {waiting.chunk_no: [made, Window(b"2" * 16, None)]}
        )
        == 0
    )
    assert stored_vectors.waiting(storage, 10) == [waiting]


def test_vectors_that_come_twice_or_too_late_are_not_added(storage: Storage) -> None:
    made = draft("text")
    transactions.write(storage, [made], None)
    [waiting] = stored_vectors.waiting(storage, 10)
    window = Window(b"1" * 16, np.array(EAST, np.float32))
    assert stored_vectors.add_waiting(storage, MODEL, {waiting.chunk_no: [window]}) == 1
    assert stored_vectors.add_waiting(storage, MODEL, {waiting.chunk_no: [window]}) == 0
    erase(storage, [made.memory.memory_id], "space", tombstones=False)
    assert stored_vectors.add_waiting(storage, MODEL, {waiting.chunk_no: [window]}) == 0
    assert all(finding.ok for finding in storage.examine())


def test_a_waiting_chunk_knows_the_chunk_before_it(storage: Storage) -> None:
    made = draft("\n\n".join(f"Paragraph {n} has some words. " * 4 for n in range(3)))
    assert len(made.chunks) > 1
    transactions.write(storage, [made], None)
    waiting = stored_vectors.waiting(storage, 10)
    assert waiting[0].before is None
    assert [each.before for each in waiting[1:]] == list(made.chunks[:-1])


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


def test_what_a_session_sees_is_counted_by_itself(storage: Storage) -> None:
    transactions.write(
        storage,
        [
            draft("ours", EAST, session_id="s1"),
            draft("theirs", NORTH, session_id="s2"),
            draft("theirs too", session_id="s2"),
            draft("everybody's"),
        ],
        MODEL,
    )
    with storage.searching() as reader:
        states = [
            reader.index.state("space"),
            reader.index.state("space", "s1"),
            reader.index.state("space", "s1", include_global=False),
            reader.index.state("space", "s2"),
            reader.index.state("space", "none"),
        ]
    assert [(each.memories, each.chunks, each.pending_vectors) for each in states] == [
        *((4, 4, 2), (2, 2, 1), (1, 1, 0), (3, 3, 2), (1, 1, 1))
    ]


def test_a_reader_keeps_its_view_while_others_write(open_storage: Open) -> None:
    one, other = open_storage(), open_storage()
    transactions.write(one, [draft("apple one", EAST)], MODEL)
    with one.searching() as reader:
        transactions.write(other, [draft("apple two", NORTH)], MODEL)
        question = Question(Filter(space="space"), query_terms("apple"), None)
        assert len(reader.index.candidates(question, 10).chunk_nos) == 1
        assert reader.count(Listing(Filter(space="space"))) == 1
        assert reader.index.state("space").memories == 1
    assert found(one, "apple") == ["apple one", "apple two"]


def test_what_one_writes_another_reads_at_once(open_storage: Open) -> None:
    one, other = open_storage(), open_storage()
    for number in range(5):
        made = draft(f"apple {number}", EAST)
        transactions.write(one, [made], MODEL)
        assert len(found(other, "apple")) == number + 1
    erase(one, [made.memory.memory_id], "space", tombstones=False)
    assert len(found(other, "apple")) == 4


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


def test_listings_are_in_order_counted_and_paged(storage: Storage) -> None:
    now = datetime.now(UTC)
    transactions.write(
        storage,
        [
            draft(f"text {n}", EAST, session_iter=n // 2, created_at=now + timedelta(seconds=n))
            for n in range(6)
        ],
        MODEL,
    )
    with storage.searching() as reader:
        listing = Listing(Filter(space="space"), "iteration", 3, 1)
        page, total = reader.memories(listing), reader.count(listing)
    assert [memory.content for memory in page] == ["text 4", "text 3", "text 2"]
    assert total == 6


def test_a_raw_query_is_ranked_and_its_terms_weighed(storage: Storage) -> None:
    transactions.write(storage, [draft("plum pie", EAST), draft("pear pie", EAST)], MODEL)
    where = Filter(space="space")
    with storage.searching() as reader:
        either, phrase = (
            Question(where, None, None, parse_raw_query(text))
            for text in ("plum OR pear", '"plum pie"')
        )
        assert len(reader.index.candidates(either, 10).chunk_nos) == 2
        [only] = reader.index.candidates(phrase, 10).chunk_nos.tolist()
        assert set(reader.index.term_shares(phrase, only)) == {"plum", "pie"}
        plum = Question(where, ["plum"], None)
        found = reader.index.candidates(plum, 10)
        [number], [score] = found.chunk_nos.tolist(), found.bm25.tolist()
        assert reader.index.term_shares(plum, number) == {"plum": pytest.approx(score)}


def test_the_storage_names_itself_and_counts(storage: Storage, tmp_path: Path) -> None:
    transactions.write(
        storage, [draft("one", EAST, session_id="s"), draft("two", EAST, space="b")], MODEL
    )
    status = storage.status("space")
    assert status.store == storage.location
    assert str(tmp_path) in storage.location
    assert storage.writable
    assert (status.index.memories, status.vectors, status.spaces, status.sessions) == (1, 1, 2, 1)


NEXT = Model("next-by-hand", 2)


def beside(storage: Storage, vector: tuple[float, float]) -> int:
    """Make vectors of the next model for all chunks that lack them."""
    with storage.reading() as reader:
        waiting = reader.models.lacking(NEXT, 100)
    window = Window(b"2" * 16, np.array(vector, np.float32))
    return stored_vectors.add_beside(storage, NEXT, {each.chunk_no: [window] for each in waiting})


def test_vectors_of_another_model_are_made_beside_and_searched_by_after_the_switch(
    open_storage: Open,
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


def test_memories_are_erased_with_their_earlier_texts_a_grace_period_after_they_expire(
    storage: Storage,
) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    made = [draft("expired", EAST, expires_at=past), draft("valid", NORTH)]
    transactions.write(storage, made, MODEL)
    assert expiry.prune(storage, "expired", timedelta(days=1), 9) == [], "marked only"
    with storage.reading() as reader:
        assert reader.expiry.unmarked("expired", datetime.now(UTC), 9) == []
        assert reader.expiry.marked_too_early(datetime.now(UTC)) == []
        time = reader.expiry.time_passed()
    assert time is not None
    assert expiry.prune(storage, "missing file", timedelta(0), 9) == []
    assert expiry.prune(storage, "expired", timedelta(0), 9) == [made[0].memory.memory_id]
    with storage.reading() as reader:
        assert reader.expiry.marked_too_early(datetime.now(UTC)) is None
        assert reader.count(Listing(Filter("space"))) == 1
    assert all(finding.ok for finding in storage.examine())


def test_entities_are_listed_renamed_and_merged_within_a_space(storage: Storage) -> None:
    transactions.write(
        storage, [draft("one", entities=("Ant", "Bee")), draft("two", entities=("ant",))], None
    )
    transactions.write(storage, [draft("far", entities=("Ant",), space="other")], None)
    with storage.reading() as reader:
        listed, total = reader.entities("space", None, 1, 0)
    assert [(each.name, each.memories) for each in listed] == [("Ant", 2)]
    assert total == 2
    assert entities.rename_stored(storage, "bee", "Wasp", "space").aliases == ("Bee",)
    merged = entities.merge_stored(storage, ["Ant"], "Wasp", "space")
    assert (merged.memories, merged.aliases) == (2, ("Ant", "Bee"))
    with storage.reading() as reader:
        both = Filter("space", entities=("ANT", "bee"), match="all")
        assert reader.count(Listing(both)) == 2
        assert reader.entities("other", None, 9, 0)[0][0].name == "Ant"


def test_api_keys_are_found_by_their_secret_or_space_until_they_are_removed(
    open_storage: Open,
) -> None:
    storage, other = open_storage(), open_storage()
    at = datetime.now(UTC)
    made = [
        ApiKey(f"tok_{n}", f"name {n}", "read", f"space {n}", None, at + timedelta(n), None, None)
        for n in range(3)
    ]
    hashes = [sha256(each.name.encode()).digest() for each in made]
    with storage.writing() as writer:
        for token, secret_hash in zip(made, hashes, strict=True):
            writer.api_keys.put(token, secret_hash)
    storage.note([KeyUse("tok_1", at)])
    storage.note([KeyUse("tok_1", at - timedelta(days=1))])
    used = replace(made[1], last_used_at=at)
    with other.reading() as reader:
        assert reader.api_keys.find() == [made[0], used, made[2]]
        assert (
            reader.api_keys.find("space 1") == reader.api_keys.find(secret_hash=hashes[1]) == [used]
        )
        assert reader.api_keys.find("space 2", hashes[1]) == []
        nearly = hashes[0][:-1] + bytes([hashes[0][-1] ^ 1])
        assert reader.api_keys.find(secret_hash=nearly) == []
    with storage.writing() as writer:
        assert writer.api_keys.remove("tok_1")
        assert not writer.api_keys.remove("tok_1")
    with other.reading() as reader:
        assert reader.api_keys.find(secret_hash=hashes[1]) == []


def test_notes_are_written_at_once_or_when_others_have_finished(open_storage: Open) -> None:
    storage, other = open_storage(), open_storage()
    made = draft("given", EAST)
    transactions.write(storage, [made], MODEL)
    memory_id = made.memory.memory_id
    storage.note(notes.accesses([memory_id, memory_id], "space"))
    with other.writing():
        storage.note(notes.accesses([memory_id], "space"))
        storage.note(notes.emissions([f"{memory_id}#0"], "space", "s"))
    with other.reading() as reader:
        [standing] = reader.standings(reader.index.candidates(_given(), 9).memory_nos.tolist())
        assert standing.access_count == 2
        assert reader.emitted("space", "s") == []
    storage.settle()
    with other.reading() as reader:
        [standing] = reader.standings(reader.index.candidates(_given(), 9).memory_nos.tolist())
        assert standing.access_count == 3
        assert reader.emitted("space", "s") == ["given"]
        assert reader.emitted("space", "t") == []
    with other.writing() as writer:
        writer.forget_emissions("space", "s")
    with storage.reading() as reader:
        assert reader.emitted("space", "s") == []


def _given() -> Question:
    return Question(Filter("space"), query_terms("given"), None)


def test_memories_that_say_almost_the_same_are_found_and_merged(storage: Storage) -> None:
    nearly = (0.98, 0.199, 0.0)
    made = [draft("one", EAST, tags=("a",)), draft("two", nearly), draft("three", NORTH)]
    transactions.write(storage, made, MODEL)
    first, second = (each.memory.memory_id for each in made[:2])
    with storage.searching() as reader:
        found = find_similar(reader, second, "space", 0.9, 5)
        assert [(each.memory_id, round(each.similarity, 2)) for each in found] == [(first, 0.98)]
        [double] = find_doubles(reader, Filter("space"), 0.9)
        assert double[:2] == (first, second)
        assert find_doubles(reader, Filter("space"), 0.99) == []
    merged = transactions.merge(storage, second, [first], "space", "tester", None)
    assert (merged.tags, merged.version) == (("a",), 2)
    with storage.searching() as reader:
        assert find_doubles(reader, Filter("space"), 0.9) == []
        assert reader.memory(first, "space") is None
    assert transactions.restore(storage, first, "space", "tester")


def test_turns_are_listed_in_order_and_no_two_are_the_same(storage: Storage) -> None:
    now = datetime.now(UTC)
    said = [
        draft("again", kind="message", session_id="s", role="user", created_at=now),
        draft("again", kind="message", session_id="s", role="user", created_at=now),
        draft("last", session_id="s", role="tool", created_at=now - timedelta(hours=1)),
    ]
    assert [each.status for each in transactions.write(storage, said, None)] == ["created"] * 3
    transactions.write(
        storage, [draft("again", kind="message", session_id="s")], None
    )  # saved, not said
    hour_ago = now - timedelta(hours=1)
    first = draft("first", session_id="s", role="tool", created_at=hour_ago)
    transactions.write(storage, [replace(first, placed_at=now - timedelta(hours=2))], None)
    where = Filter("space", session_id="s", include_global=False)
    with storage.reading() as reader:
        listed = [each.content for each in reader.memories(Listing(where, "said", 9, roles=()))]
        assert listed == ["first", "again", "again", "last"]
        last = reader.memories(Listing(where, "said last", 1, 3, roles=()))
        assert [each.content for each in last] == ["first"]
        assert reader.count(Listing(where, roles=("user",))) == 2
        assert reader.count(Listing(Filter("other", session_id="s"), roles=())) == 0
        salient = reader.salient_turns(where, (), 1)
        assert [each.summary for each in salient] == ["first"]
    assert transactions.known(storage, [key_of(said[0])]) == {}


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


def test_pins_are_listed_as_they_were_set_where_they_can_be_seen(storage: Storage) -> None:
    made = [draft("one"), draft("two", session_id="s"), draft("three", session_id="t")]
    transactions.write(storage, made, None)
    one, two, three = (each.memory.memory_id for each in made)
    for memory_id in (two, one, three):
        transactions.pin(storage, memory_id, "space", "tester", pinned=True)
    where = Filter("space", session_id="s")
    with storage.reading() as reader:
        assert [each.memory_id for each in reader.memories(Listing(where, "pinned"))] == [two, one]
    transactions.pin(storage, two, "space", "tester", pinned=False)
    transactions.forget(storage, [one], "space", "tester", None)
    with storage.reading() as reader:
        assert reader.memories(Listing(where, "pinned")) == []


def test_the_vectors_of_chunks_are_given_by_number(storage: Storage) -> None:
    transactions.write(storage, [draft("apple", EAST), draft("plum")], MODEL)
    with storage.searching() as reader:
        terms = query_terms("apple plum")
        found = reader.index.candidates(Question(Filter("space"), terms, None), 9)
        assert len(found.chunk_nos) == 2
        [vectors] = reader.index.vectors(found.chunk_nos.tolist()).values()
    assert vectors.tolist() == [list(EAST)]


@pytest.mark.parametrize("name", ["title = ?, kind", "content", "no_such_column"])
def test_a_change_of_an_unknown_field_is_refused(storage: Storage, name: str) -> None:
    made = draft("a text")
    transactions.write(storage, [made], None)
    with storage.writing() as writer:
        (held,) = writer.memories.held([made.memory.memory_id], "space")
        with pytest.raises(ValueError, match="no column"):
            writer.memories.change([MemoryChange(held.memory_no, {name: "x"})])
        assert writer.memories.memory(held.memory_no).content == "a text"
