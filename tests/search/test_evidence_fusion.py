"""Evidence: what words and vectors say is added up, and turns lend some to those beside them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.contracts import Background, Candidates
from byheart.contracts import Question as IndexQuestion
from byheart.model import ChunkHit, Filter
from byheart.search import SearchRequest
from byheart.search.evidence_fusion import (
    LONGEST_EXCESS,
    MOST_DEVIATIONS,
    MOST_NEARNESS,
    MOST_WORDS,
    VECTOR_WEIGHT,
    VERBATIM,
    WORDS_OF_ONE,
    measure_agreement,
    weigh_cosines,
    weigh_nearness,
    weigh_words,
)
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.search.made_candidates import make_candidates

cosines = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


def ask(store: MemoryStore, query: str, **how: Any) -> list[ChunkHit]:
    found = store.search(query, mode="hybrid", explain=True, **how).results
    return [hit for hit in found if isinstance(hit, ChunkHit)]


def weight_of_cosines(hit: ChunkHit) -> float:
    """Read from an explanation what z^2 is multiplied by."""
    assert hit.explanation is not None
    return float(hit.explanation.fusion.split(" + ")[1].split()[0])


# --- The law ----------------------------------------------------------------------------------


@given(cosines, st.floats(-0.5, 0.9), st.floats(0.01, 0.5))
def test_a_cosine_counts_by_the_square_of_how_far_it_is_above_the_background(
    given_cosines: list[float], mean: float, deviation: float
) -> None:
    weighed = weigh_cosines(np.array(given_cosines), Background(mean, deviation, 100))
    for cosine, weight in zip(given_cosines, weighed, strict=True):
        above = min(max(0.0, (cosine - mean) / deviation), MOST_DEVIATIONS)
        assert weight == pytest.approx(VECTOR_WEIGHT * above**2)


@given(cosines)
def test_cosines_that_are_all_the_same_say_nothing(given_cosines: list[float]) -> None:
    assert not weigh_cosines(np.array(given_cosines), Background(0.4, 1e-6, 100)).any()


@pytest.fixture
def mixed(open_store: OpenStore) -> MemoryStore:
    """Give a store of 500 memories in which both retrievers have much to say and to miss."""
    chance = random.Random(5)
    words = ["apple", "pear", "plum", "quince", "cherry", "fig", "date", "lime"]
    store = open_store()
    store.save_many(
        {"content": f"{' '.join(chance.choices(words, k=9))} n{number}"} for number in range(500)
    )
    return store


def test_a_score_is_the_sum_of_what_each_retriever_alone_says(mixed: MemoryStore) -> None:
    query = "apple fig quince"
    by_words = {hit.chunk_id: hit.score for hit in mixed.search(query, 500, "fts").results}
    by_vector = {hit.chunk_id: hit.score for hit in mixed.search(query, 500, "vector").results}
    every = np.array(list(by_vector.values()))
    hits = ask(mixed, query, limit=500)
    assert len(hits) == len(by_vector) == 500
    for hit in hits:
        above = max(0.0, (by_vector[hit.chunk_id] - every.mean()) / every.std())
        expected = by_words.get(hit.chunk_id, 0.0) + weight_of_cosines(hit) * above**2
        # The background is that of a sample here: 250 chunks or more.
        assert hit.score == pytest.approx(expected, rel=0.15, abs=0.3)


def test_a_chunk_counts_in_full_for_the_retriever_that_has_not_found_it_among_its_first(
    mixed: MemoryStore,
) -> None:
    query = "apple fig quince"
    by_words = {hit.chunk_id: hit.score for hit in mixed.search(query, 500, "fts").results}
    beyond = [
        hit
        for hit in (*ask(mixed, query, limit=33), *ask(mixed, query, limit=33, offset=33))
        if hit.explanation.fts and hit.explanation.fts.rank is None
    ]
    assert beyond
    for hit in beyond:
        assert hit.explanation.fts.score == by_words[hit.chunk_id]


def test_hits_come_in_the_order_of_their_scores_and_pages_are_parts_of_it(
    mixed: MemoryStore,
) -> None:
    whole = ask(mixed, "plum date", limit=60)
    scores = [hit.score for hit in whole]
    assert scores == sorted(scores, reverse=True)
    pages = [
        hit for offset in range(0, 60, 7) for hit in ask(mixed, "plum date", limit=7, offset=offset)
    ]
    assert [hit.chunk_id for hit in pages[:60]] == [hit.chunk_id for hit in whole]


# --- A retriever that knows nothing is not heard ------------------------------------------------


def test_words_decide_where_all_vectors_are_alike(arrows: MemoryStore) -> None:
    texts = [f"east {'zebra ' * times}{'filler ' * (9 - times)}" for times in (0, 3, 1, 9)]
    arrows.save_many({"content": text} for text in texts)
    by_words = [hit.chunk_id for hit in arrows.search("zebra east", mode="fts").results]
    assert [hit.chunk_id for hit in ask(arrows, "zebra east")] == by_words


def test_words_decide_beside_thousands_of_equal_lines(arrows: MemoryStore) -> None:
    arrows.save_many(
        {"content": "heartbeat ok at 90 degrees", "session_id": f"s{number}"}
        for number in range(1200)
    )
    arrows.save("a quota is full at 3 degrees", session_id="s0")
    right = arrows.save("ERR5521 at 40 degrees", session_id="s0").memory_id
    assert ask(arrows, "ERR5521 east", limit=1)[0].memory_id == right


@pytest.mark.parametrize(
    ("question", "weight"), [("ERR_5521", "3"), ("ERR_5521 quota", "1"), ("PROJ-144", "3")]
)
def test_who_asks_for_a_name_alone_asks_by_words(
    store: MemoryStore, question: str, weight: str
) -> None:
    store.save_many({"content": f"PROJ ERR number {number}"} for number in range(50))
    right = store.save(f"Somebody wrote {question} on the wall").memory_id
    [hit] = ask(store, question, limit=1)
    assert hit.memory_id == right
    assert hit.explanation is not None
    assert hit.explanation.fusion.startswith(f"evidence({weight} bm25 + ")


def test_words_count_three_times_in_a_question_of_one_word_alone() -> None:
    background = Background(0.1, 0.1, 1000)
    assert weigh_words(9.0, background, one_word=True) == WORDS_OF_ONE
    assert weigh_words(9.0, background) == 1.0


def test_vectors_decide_where_every_text_has_the_words(arrows: MemoryStore) -> None:
    arrows.save_many({"content": f"pear at {angle} degrees"} for angle in (80, 5, 60, 120, 30))
    by_vector = [hit.chunk_id for hit in arrows.search("pear east", mode="vector").results]
    assert [hit.chunk_id for hit in ask(arrows, "pear east")] == by_vector


def test_what_both_retrievers_find_beats_what_one_of_them_finds_as_well(
    arrows: MemoryStore,
) -> None:
    arrows.save_many({"content": f"nothing at {angle} degrees"} for angle in range(90, 270, 5))
    only_near = arrows.save("nothing at 3 degrees").memory_id
    only_said = arrows.save("zebra at 180 degrees").memory_id
    both = arrows.save("zebra at 4 degrees").memory_id
    first = [hit.memory_id for hit in ask(arrows, "zebra east", limit=3)]
    assert first[0] == both
    assert set(first[1:]) == {only_near, only_said}


def test_the_background_is_that_of_the_selected_chunks_alone(arrows: MemoryStore) -> None:
    arrows.save_many(
        {"content": f"{kind} at {angle} degrees", "kind": kind}
        for kind, angles in (("near", range(10)), ("far", range(90, 180, 3)))
        for angle in angles
    )
    alone = ask(arrows, "east", kind="near", limit=1)[0]
    among_all = ask(arrows, "east", limit=1)[0]
    assert alone.chunk_id == among_all.chunk_id
    assert alone.explanation.vector.score == among_all.explanation.vector.score
    assert alone.explanation.vector.contribution != among_all.explanation.vector.contribution


# --- Turns ------------------------------------------------------------------------------------


TALK = [
    "Did anybody see the lighthouse keeper?",
    "Yes, on Tuesday, by the harbour.",
    "Good to hear.",
    "I had soup for lunch.",
    "The train was late again.",
    "My shoes are wet.",
    "We should buy more paint.",
]


def talk(store: MemoryStore, session_id: str | None = "s", **fields: Any) -> list[str]:
    saved = store.save_many({"content": text, "session_id": session_id, **fields} for text in TALK)
    return [each.memory_id for each in saved]


def share_of(store: MemoryStore, memory_id: str, **how: Any) -> float:
    [hit] = [hit for hit in ask(store, "lighthouse keeper", **how) if hit.memory_id == memory_id]
    return float(hit.explanation.neighbours)


def own_evidence(hit: ChunkHit) -> float:
    """Give what both retrievers say for a hit, without its neighbours and its form."""
    assert hit.explanation is not None
    places = (hit.explanation.fts, hit.explanation.vector)
    return sum(each.contribution for each in places if each is not None)


def test_an_answer_is_found_by_the_question_before_it(store: MemoryStore) -> None:
    ids = talk(store)
    hits = ask(store, "lighthouse keeper")
    answer, asked = hits[0], hits[1]
    assert [answer.memory_id, asked.memory_id] == [ids[1], ids[0]]
    assert answer.explanation.neighbours == pytest.approx(0.6 * own_evidence(asked), rel=0.3)


def test_the_next_turn_lends_half_of_what_the_one_before_lends(store: MemoryStore) -> None:
    ids = [store.save(text, session_id="s").memory_id for text in ("one", "zebra", "two")]
    by_id = {hit.memory_id: hit.explanation.neighbours for hit in ask(store, "zebra", limit=3)}
    own = {hit.memory_id: own_evidence(hit) for hit in ask(store, "zebra")}
    assert by_id[ids[2]] == pytest.approx(0.2 * own[ids[1]] + 0.1 * own[ids[0]], abs=1e-5)
    assert by_id[ids[0]] == pytest.approx(0.1 * own[ids[1]] + 0.05 * own[ids[2]], abs=1e-5)


def test_memories_of_no_session_are_no_neighbours(store: MemoryStore) -> None:
    ids = talk(store, session_id=None)
    assert all(share_of(store, each) == 0 for each in ids)


def test_a_turn_of_another_session_or_kind_lends_nothing_through_a_filter(
    store: MemoryStore,
) -> None:
    for text, session_id, kind in (
        ("Did anybody see the lighthouse keeper?", "other", "note"),
        ("The lighthouse keeper is away.", "s", "secret"),
    ):
        store.save(text, session_id=session_id, kind=kind)
    answer = store.save("Yes, on Tuesday, keeper.", session_id="s").memory_id
    assert share_of(store, answer) > 0
    assert share_of(store, answer, kind="note") == 0
    assert share_of(store, answer, kind="note", session_id="s") == 0


def test_turns_are_found_between_those_of_other_sessions(store: MemoryStore) -> None:
    asked = store.save("Did anybody see the lighthouse keeper?", session_id="s").memory_id
    for number in range(3):
        store.save(f"Something else {number}.", session_id="other")
    answer = store.save("Yes, on Tuesday.", session_id="s").memory_id
    assert asked != answer
    assert share_of(store, answer) > 0


def test_what_is_gone_does_not_come_between_turns(open_store: OpenStore) -> None:
    store = open_store()
    store.log("s", "user", "Who was the lighthouse keeper there?")
    parts = [f"# Part {number}\n\nSomething else entirely.\n\n" for number in range(20)]
    between = store.save("".join(parts), session_id="s")
    assert between.chunks > 8
    answer = store.log("s", "assistant", "It is Marty.").memory_id
    store.forget(between.memory_id, hard=True)
    shares = [share_of(each, answer) for each in (store, open_store())]
    assert shares[0] == shares[1] > 0


def test_what_was_said_an_hour_later_is_another_conversation(
    open_store: OpenStore, path: Path
) -> None:
    with open_store() as store:
        ids = talk(store)
    before = int((datetime.now(UTC) - timedelta(hours=2)).timestamp() * 1e6)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE memories SET created_at = ? WHERE memory_id = ?", (before, ids[0]))
    connection.close()
    assert share_of(open_store(), ids[1]) < 0.5


def test_parts_of_one_text_are_no_neighbours(store: MemoryStore) -> None:
    parts = [f"# Part {n}\n\n{'Words and more words here. ' * 60}" for n in range(4)]
    parts[1] += " lighthouse keeper"
    store.save("\n\n".join(parts), session_id="s")
    hits = ask(store, "lighthouse keeper")
    assert len(hits) > 2
    assert all(hit.explanation.neighbours == 0 for hit in hits)


def test_a_long_text_lends_and_borrows_nothing(store: MemoryStore) -> None:
    long = store.save("lighthouse keeper " + "and so on " * 60, session_id="s").memory_id
    short = store.save("lighthouse keeper", session_id="s").memory_id
    assert share_of(store, long) == share_of(store, short) == 0


def test_rrf_knows_no_neighbours(store: MemoryStore) -> None:
    talk(store)
    hits = ask(store, "lighthouse keeper", fusion="rrf")
    assert all(hit.explanation.neighbours == 0 for hit in hits)


# --- Long questions ---------------------------------------------------------------------------


def test_words_count_in_full_up_to_what_a_few_of_the_rarest_say_and_are_bounded_by_that() -> None:
    background = Background(0.1, 0.1, 1000)
    most = MOST_WORDS * math.log(1000)
    assert weigh_words(0.5 * most, background) == weigh_words(0.0, background) == 1.0
    assert weigh_words(4 * most, background) == pytest.approx(0.25)


def test_a_long_question_is_not_decided_by_its_words_alone(mixed: MemoryStore) -> None:
    long = "apple pear plum quince cherry fig date lime " * 12
    hit = ask(mixed, long, limit=1)[0]
    retriever = hit.explanation.fts
    assert 0 < retriever.contribution < 0.8 * retriever.score
    assert retriever.contribution <= MOST_WORDS * math.log(500) + 1e-6
    assert hit.explanation.fusion.startswith("evidence(0.")


# --- A model that tells little counts little ---------------------------------------------------


def words_and_cosines(
    first_by_words: float, *, highest: float = 0.4, excess: float = 0.47
) -> Candidates:
    """Make 40 chunks with words of the question, and their cosines; one chunk is the nearest."""
    keywords = {number: 10.0 - number / 10 for number in range(1, 41)}
    vector = dict.fromkeys(keywords, first_by_words) | {50: highest}
    background = Background(0.0, 0.1, 1000, 1.28, excess)
    return make_candidates(keywords=keywords, vector=vector, background=background)


def test_cosines_count_in_full_if_the_first_chunks_by_words_are_near() -> None:
    assert measure_agreement(words_and_cosines(0.2)) == 1.0
    assert weigh_nearness(words_and_cosines(0.2)) == 1.0


def test_cosines_of_a_model_that_knows_nothing_of_the_words_do_not_count() -> None:
    assert measure_agreement(words_and_cosines(0.0)) == 0.0
    assert measure_agreement(words_and_cosines(-0.2)) == 0.0


def test_agreement_counts_from_what_chance_gives() -> None:
    # Twenty chunks that are one standard error nearer, and five that are assumed to agree.
    by_chance = 20**0.5 / 20 * 0.1
    full = 12.5 - 20**0.5
    assert measure_agreement(words_and_cosines(by_chance)) == pytest.approx(2.5 / full)
    assert measure_agreement(words_and_cosines(0.05)) == pytest.approx(1.0)


def test_words_that_tell_little_do_not_judge_the_model() -> None:
    everywhere = replace(words_and_cosines(-0.2), highest_bm25=0.2)
    assert measure_agreement(everywhere) > 0.95


def test_a_few_chunks_do_not_decide_whether_a_model_agrees() -> None:
    one = make_candidates(keywords=[1], vector={1: -0.05, 2: 0.3})
    assert measure_agreement(one) > 0.6
    assert measure_agreement(make_candidates(vector={2: 0.3})) == 1.0


def test_no_cosine_says_more_than_to_be_the_best_of_all_chunks_twice_over() -> None:
    found = words_and_cosines(0.2, highest=0.9)
    highest = weigh_cosines(found.cosines, found.background).max()
    limit = MOST_NEARNESS * math.log(1000)
    assert weigh_nearness(found) * highest == pytest.approx(limit)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 3))
def test_a_long_tail_is_shortened_and_keeps_its_order(
    one: float, other: float, excess: float
) -> None:
    normal, long = (Background(0.1, 0.1, 1000, 1.28, each) for each in (0.47, excess))
    low, high = np.sort([one, other])
    weighed = weigh_cosines(np.array([low, high]), long)
    assert weighed[0] <= weighed[1]
    assert (weighed <= weigh_cosines(np.array([low, high]), normal) + 1e-9).all()
    # Below the shoulder nothing changes.
    below = np.array([0.1 + 0.128])
    assert weigh_cosines(below, long) == pytest.approx(weigh_cosines(below, normal))


def test_cosines_count_less_in_proportion_to_the_length_of_their_tail() -> None:
    assert weigh_nearness(words_and_cosines(0.2, excess=LONGEST_EXCESS)) == 1.0
    long = words_and_cosines(0.2, excess=2 * LONGEST_EXCESS)
    assert weigh_nearness(long) == pytest.approx(0.5)


def test_a_background_knows_the_length_of_its_tail(open_store: OpenStore) -> None:
    store = open_store()
    store.save_many({"content": f"fig {'plum ' * (number % 9)}n{number}"} for number in range(300))
    with store._engine.asking(SearchRequest("fig", Filter("default"))) as (_, asked):
        found = asked.reader.index.candidates(
            IndexQuestion(Filter("default"), ("fig",), asked.vector), 10
        )
        alike = asked.reader.index.candidates(
            IndexQuestion(Filter("default"), ("fig",), asked.vector), 300
        )
    shown = (alike.cosines - alike.background.mean) / alike.background.deviation
    # The sample has half of the chunks or more.
    assert found.background.shoulder == pytest.approx(np.quantile(shown, 0.9), abs=0.5)
    assert found.background.excess > 0


def test_a_question_that_a_chunk_has_word_for_word_is_decided_by_the_words(
    mixed: MemoryStore,
) -> None:
    text = "apple fig quince date n7777"
    right = mixed.save(f"{text} lime lime pear").memory_id
    hit = ask(mixed, text, limit=1)[0]
    assert hit.memory_id == right
    assert weight_of_cosines(hit) <= VERBATIM * VECTOR_WEIGHT + 0.001
    asked = ask(mixed, f"{text} unknown words of nobody here", limit=1)[0]
    assert weight_of_cosines(asked) > weight_of_cosines(hit)
