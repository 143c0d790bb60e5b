"""What an `Index` promises, run on each implementation."""

import math
from dataclasses import replace

import numpy as np
import pytest

from byheart.contracts import (
    Draft,
    Index,
    Question,
    Reader,
    Storage,
    TermsPresent,
    Window,
)
from byheart.language.raw_query import parse_raw_query
from byheart.language.terms import query_terms
from byheart.memory import transactions
from byheart.memory.duplicates import find_doubles, find_similar
from byheart.model import Filter
from tests.contracts.covering import covers
from tests.contracts.drafts import (
    EAST,
    MODEL,
    NORTH,
    WEST,
    draft,
    found,
    near,
)

SIDES = (EAST, NORTH, WEST)


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


@covers(Index.candidates, Reader.chunks)
def test_vectors_rank_by_cosine(storage: Storage) -> None:
    transactions.write(storage, [draft("w", WEST), draft("n", NORTH), draft("e", EAST)], MODEL)
    assert near(storage, EAST) == [("e", 1.0), ("n", 0.0), ("w", -1.0)]
    assert near(storage, EAST, limit=1) == [("e", 1.0)]


def test_a_chunk_without_vectors_has_no_cosine(storage: Storage) -> None:
    transactions.write(storage, [draft("without"), draft("with", EAST)], MODEL)
    with storage.searching("space") as reader:
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


@covers(Index.state)
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
    with storage.searching("space") as reader:
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


@covers(Index.term_shares)
def test_a_raw_query_is_ranked_and_its_terms_weighed(storage: Storage) -> None:
    transactions.write(storage, [draft("plum pie", EAST), draft("pear pie", EAST)], MODEL)
    where = Filter(space="space")
    with storage.searching("space") as reader:
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


def test_memories_that_say_almost_the_same_are_found_and_merged(storage: Storage) -> None:
    nearly = (0.98, 0.199, 0.0)
    made = [draft("one", EAST, tags=("a",)), draft("two", nearly), draft("three", NORTH)]
    transactions.write(storage, made, MODEL)
    first, second = (each.memory.memory_id for each in made[:2])
    with storage.searching("space") as reader:
        found = find_similar(reader, second, "space", 0.9, 5)
        assert [(each.memory_id, round(each.similarity, 2)) for each in found] == [(first, 0.98)]
        [double] = find_doubles(reader, Filter("space"), 0.9)
        assert double[:2] == (first, second)
        assert find_doubles(reader, Filter("space"), 0.99) == []
    merged = transactions.merge(storage, second, [first], "space", "tester", None)
    assert (merged.tags, merged.version) == (("a",), 2)
    with storage.searching("space") as reader:
        assert find_doubles(reader, Filter("space"), 0.9) == []
        assert reader.memory(first, "space") is None
    assert transactions.restore(storage, first, "space", "tester")


@covers(Index.vectors)
def test_the_vectors_of_chunks_are_given_by_number(storage: Storage) -> None:
    transactions.write(storage, [draft("apple", EAST), draft("plum")], MODEL)
    with storage.searching("space") as reader:
        terms = query_terms("apple plum")
        found = reader.index.candidates(Question(Filter("space"), terms, None), 9)
        assert len(found.chunk_nos) == 2
        [vectors] = reader.index.vectors(found.chunk_nos.tolist()).values()
    assert vectors.tolist() == [list(EAST)]


@covers(Index.best_window)
def test_the_best_window_of_a_chunk_is_located(storage: Storage) -> None:
    made = draft("three windows", EAST)
    windows = [Window(bytes([n]) * 16, np.array(each, np.float32)) for n, each in enumerate(SIDES)]
    transactions.write(storage, [replace(made, windows=(tuple(windows),))], MODEL)
    transactions.write(storage, [draft("one window", EAST)], MODEL)
    with storage.searching("space") as reader:
        many, one = reader.index.sample(Filter("space"), 2, 0)
        if reader.chunks([many])[0].chunk.content == "one window":
            many, one = one, many
        places = [reader.index.best_window(np.array(each, np.float32), many) for each in SIDES]
        assert places == [0.0, 0.5, 1.0]
        assert reader.index.best_window(np.array(WEST, np.float32), one) == 0.0


@covers(Index.sample)
def test_a_sample_is_random_within_its_filter_and_repeats_with_its_seed(storage: Storage) -> None:
    made = [draft(f"text {n}", tags=("even",) if n % 2 == 0 else ()) for n in range(40)]
    transactions.write(storage, [*made, draft("far", space="other")], None)
    with storage.searching("space") as reader:
        sample = reader.index.sample
        assert len(set(sample(Filter("space"), 99, 1))) == 40
        assert sample(Filter("space"), 5, 1) == sample(Filter("space"), 5, 1)
        assert sample(Filter("space"), 5, 1) != sample(Filter("space"), 5, 2)
        even = reader.chunks(sample(Filter("space", tags=("even",)), 5, 1))
        assert [int(each.chunk.content[5:]) % 2 for each in even] == [0] * 5
        assert sample(Filter("nowhere"), 5, 1) == []


@covers(Index.resembling, Index.doubles)
def test_memories_that_say_almost_the_same_are_paired_within_kind_and_session(
    storage: Storage,
) -> None:
    nearly, roughly = (0.98, 0.199, 0.0), (0.8, 0.6, 0.0)
    made = [
        draft("one", EAST),
        draft("two", nearly),
        draft("three", roughly),
        draft("in a session", EAST, session_id="s"),
        draft("far", EAST, space="other"),
    ]
    transactions.write(storage, made, MODEL)
    with storage.searching("space") as reader:
        ids = [each.memory.memory_id for each in made]
        states = {**reader.states(ids, "space"), **reader.states(ids, "other")}
        one, two, three = (states[each].memory_no for each in ids[:3])
        near = reader.index.resembling(one, 0.7, 9)
        assert [(number, round(each, 1)) for number, each in near] == [(two, 1.0), (three, 0.8)]
        assert [number for number, _ in reader.index.resembling(one, 0.9, 9)] == [two]
        assert [number for number, _ in reader.index.resembling(one, 0.7, 1)] == [two]
        [pair] = reader.index.doubles(Filter("space"), 0.95)
        assert pair[:2] == (one, two)
        assert pair[2] == pytest.approx(0.98, abs=0.01)
        assert len(reader.index.doubles(Filter("space"), 0.7)) == 3
        assert reader.index.doubles(Filter("space", session_id="s", include_global=False), 0) == []


@covers(TermsPresent.__getitem__, Index.candidates)
def test_candidates_say_which_terms_each_chunk_has(storage: Storage) -> None:
    transactions.write(storage, [draft("plum pie"), draft("plum"), draft("apple")], None)
    with storage.searching("space") as reader:
        found = reader.index.candidates(Question(Filter("space"), ["pie", "plum"], None), 9)
        texts = [each.chunk.content for each in reader.chunks(found.chunk_nos.tolist())]
        present = {
            text: dict(zip(found.document_frequency, terms, strict=True))
            for text, terms in zip(
                texts, found.terms_present[np.arange(len(texts))].tolist(), strict=True
            )
        }
    assert found.document_frequency == {"pie": 1, "plum": 2}
    assert present == {
        "plum pie": {"pie": True, "plum": True},
        "plum": {"pie": False, "plum": True},
    }


@covers(Index.mean_vectors)
def test_each_memory_has_a_mean_vector_and_every_nth_is_chosen_of_many(storage: Storage) -> None:
    drafts = [
        draft("one", EAST, kind="fact"),
        draft("two", NORTH, kind="note"),
        draft("three", WEST, kind="fact"),
        draft("without a vector"),
    ]
    transactions.write(storage, drafts, MODEL)
    transactions.write(storage, [draft("elsewhere", EAST, space="other", kind="odd")], MODEL)
    with storage.searching("space") as reader:
        whole = reader.index.mean_vectors(Filter("space"), 10)
        few = reader.index.mean_vectors(Filter("space"), 2)
        none = reader.index.mean_vectors(Filter("space", kind=("odd",)), 10)
        names = [each.summary for each in reader.summaries(whole.memory_nos.tolist())]
    assert names == ["one", "two", "three"]
    assert np.allclose(whole.vectors, [EAST, NORTH, WEST], atol=1e-3)
    assert [whole.kinds[each] for each in whole.kind] == ["fact", "note", "fact"]
    assert (whole.total, few.total, none.total) == (3, 3, 0)
    assert few.memory_nos.tolist() == whole.memory_nos[:2].tolist()
    assert none.vectors.shape == (0, 3)
