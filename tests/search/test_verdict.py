"""The verdict: a word and an estimate of whether the best hit answers the question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.contracts import Candidates, Vectors
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.model.answers import LEAST_RIGHT, RELATED_FROM
from byheart.search.term_rarities import weigh_terms
from byheart.search.verdict import (
    ENOUGH_LEAD,
    MOST_UNRELATED,
    NONE_BELOW,
    Signs,
    combine,
    estimate,
    estimate_right,
    judge_rows,
    name_verdict,
    similar_enough,
    stands_out,
)
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder
from tests.search.made_candidates import NO_NEIGHBOURS, make_candidates

NOTES = (
    "We chose PostgreSQL 16 for the billing service because of logical replication.",
    "Anna's birthday is on the fourth of May; she likes orchids.",
    "The deploy script lives in tools and needs the production profile.",
    "Error E4711 means that the licence server cannot be reached.",
    "Flights to Lisbon are cheapest in February, said the travel agent.",
    "The kitchen tap drips; the plumber comes on Thursday morning.",
    "Invoices are sent on the first working day of each month.",
    "The hiking route around the lake takes five hours with breaks.",
)
UNRELATED = (
    "how do penguins survive antarctic winters",
    "capital city of Mongolia",
    "chess openings for beginners",
    "boiling point of mercury",
    "who painted the Sistine chapel",
)


class SlantedEmbedder(HashEmbedder):
    """Find everything alike: half of each vector is the same."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "slanted"

    def embed(self, texts: Sequence[str]) -> Vectors:
        slanted = super().embed(texts)
        slanted[:, 0] += 2.0
        normal: Vectors = slanted / np.linalg.norm(slanted, axis=1, keepdims=True)
        return normal


shares = st.floats(0, 1)
weights = st.floats(0, 8)
cosines = st.floats(-1, 1)
sizes = st.none() | st.integers(0, 10**6)
signs = st.builds(Signs, st.none() | shares, st.none() | weights, st.none() | cosines, sizes)


@pytest.fixture
def notes(open_store: OpenStore) -> MemoryStore:
    store = open_store()
    store.save_many({"content": text} for text in NOTES)
    return store


# --- The law ----------------------------------------------------------------------------------


@given(signs)
def test_an_estimate_is_a_probability_and_has_a_word(known: Signs) -> None:
    confidence = estimate(known)
    assert 0 <= confidence <= 1
    assert name_verdict(confidence) in ("answered", "weak", "none")


@given(shares, weights, st.none() | cosines, shares, weights, st.floats(0, 2))
def test_more_evidence_never_makes_an_answer_less_probable(
    coverage: float,
    weight: float,
    similarity: float | None,
    more_coverage: float,
    more_weight: float,
    nearer: float,
) -> None:
    less = Signs(coverage, weight, similarity)
    more = Signs(
        min(1.0, coverage + more_coverage),
        weight + more_weight,
        None if similarity is None else min(1.0, similarity + nearer),
    )
    assert estimate(more) >= estimate(less)


def test_words_that_are_the_same_and_a_meaning_that_is_near_are_an_answer() -> None:
    assert name_verdict(estimate(Signs(1.0, 3.0, 0.7))) == "answered"
    assert name_verdict(estimate(Signs(1.0, 3.0, None))) == "answered"
    assert name_verdict(estimate(Signs(None, None, 0.8))) == "answered"


def test_other_words_for_the_same_are_not_called_none() -> None:
    assert name_verdict(estimate(Signs(0.0, 0.0, 0.6))) != "none"


def test_nothing_in_common_is_none_in_every_mode() -> None:
    assert name_verdict(estimate(Signs(0.0, 0.0, 0.1))) == "none"
    assert name_verdict(estimate(Signs(0.0, 0.0, None))) == "none"
    assert name_verdict(estimate(Signs(None, None, 0.1))) == "none"


def test_the_best_of_many_chunks_must_be_better_than_the_best_of_a_few() -> None:
    said = [estimate(Signs(0.5, 1.2, 0.4, chunks)) for chunks in (3, 100, 1000, 10_000, 10**6)]
    assert said == sorted(said, reverse=True)
    # No store of more chunks was measured, so the estimate does not change further.
    assert said[0] > said[1] > said[2] > said[3] == said[4]


def test_a_paraphrase_needs_more_similarity_among_more_chunks() -> None:
    enough = [similar_enough(chunks) for chunks in (1, 3, 30, 1000, 10**6)]
    assert enough == sorted(enough)
    assert enough[-1] == similar_enough(None)
    for chunks, similarity in zip((1, 3, 30, 1000, 10**6), enough, strict=True):
        alone = Signs(None, None, similarity, chunks)
        assert estimate(alone) == pytest.approx(RELATED_FROM, abs=0.01)


def test_the_words_change_at_their_bounds() -> None:
    assert name_verdict(NONE_BELOW) == "weak"
    assert name_verdict(NONE_BELOW - 1e-9) == "none"
    assert name_verdict(RELATED_FROM) == "answered"
    assert name_verdict(RELATED_FROM - 1e-9) == "weak"
    assert name_verdict(0.9, is_distinct=False) == "weak"
    assert name_verdict(NONE_BELOW - 1e-9, is_distinct=True) == "none"


def test_a_hit_stands_out_by_a_lead_that_counts_by_the_size_of_the_store() -> None:
    for chunks in (100, 1000, 10**6):
        unit = math.log(chunks)
        assert stands_out(ENOUGH_LEAD * unit, chunks)
        assert not stands_out(ENOUGH_LEAD * unit - 1e-6, chunks)
    assert stands_out(0.5, 10)
    assert not stands_out(0.3, 10)
    assert stands_out(0.0, 1)


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100), st.integers(0, 10**6))
def test_a_longer_lead_and_rarer_words_never_make_a_hit_less_probably_right(
    lead: float, bm25: float, more: float, chunks: int
) -> None:
    right = estimate_right(lead, bm25, chunks)
    assert LEAST_RIGHT <= right <= estimate_right(lead + more, bm25, chunks) < 1
    assert right <= estimate_right(lead, bm25 + more, chunks) < 1


def test_a_hit_is_less_probably_right_among_more_chunks() -> None:
    said = [estimate_right(3.0, 6.0, chunks) for chunks in (2, 30, 1000, 10**6)]
    assert said == sorted(said, reverse=True)
    assert said[0] > 0.9
    assert said[-1] < 0.5


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_hit_that_is_hardly_related_is_no_probable_answer(related: float, right: float) -> None:
    confidence = combine(related, right)
    assert confidence <= right
    assert confidence == right or (confidence < MOST_UNRELATED and related < RELATED_FROM)


# --- In answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_a_note_in_its_own_words_is_called_answered(notes: MemoryStore, mode: str) -> None:
    for text in NOTES:
        answer = notes.search(text, mode=mode)
        assert answer.verdict == "answered"
        assert answer.confidence > MOST_UNRELATED


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
@pytest.mark.parametrize("fusion", ["evidence", "rrf"])
def test_an_unrelated_question_is_not_called_answered(
    notes: MemoryStore, mode: str, fusion: str
) -> None:
    verdicts = [notes.search(each, mode=mode, fusion=fusion).verdict for each in UNRELATED]
    assert "answered" not in verdicts


def test_a_word_that_one_of_a_few_notes_has_counts_as_rare(open_store: OpenStore) -> None:
    store = open_store()
    store.save_many({"content": text} for text in NOTES[-3:])
    answer = store.search("invoices", mode="fts", explain=True)
    assert answer.verdict == "answered"
    assert answer.grounds is not None
    assert (answer.grounds.coverage, answer.grounds.weight) == (1.0, pytest.approx(0.79, abs=0.01))


def test_among_a_few_notes_others_do_not_make_a_word_rarer(open_store: OpenStore) -> None:
    store = open_store()
    store.save_many({"content": text} for text in NOTES[:3])

    def ask() -> float:
        grounds = store.search("PostgreSQL orchids", mode="fts", explain=True).grounds
        assert grounds is not None
        return grounds.related

    before = ask()
    store.save_many({"content": text} for text in NOTES[3:])
    assert ask() == before


def test_hits_come_whatever_the_verdict(notes: MemoryStore) -> None:
    answer = notes.search(UNRELATED[0])
    assert answer.verdict == "none"
    assert answer.results


@pytest.mark.parametrize("granularity", ["fine", "medium", "coarse"])
@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_the_verdict_is_about_the_best_hit_on_every_page(
    notes: MemoryStore, mode: str, granularity: str
) -> None:
    def ask(**page: int) -> tuple[str, float]:
        answer = notes.search(
            "the billing service on Thursday", mode=mode, granularity=granularity, **page
        )
        return answer.verdict, answer.confidence

    first = ask()
    pages: list[dict[str, int]] = [
        {"limit": 1},
        {"limit": 1, "offset": 1},
        {"limit": 2, "offset": 3},
        {"offset": 500},
    ]
    assert [ask(**page) for page in pages] == [first] * len(pages)


@pytest.mark.parametrize("mode", ["hybrid", "fts"])
def test_a_hit_among_equals_is_related_but_no_sure_answer(open_store: OpenStore, mode: str) -> None:
    store = open_store()
    store.save_many({"content": text} for text in NOTES)
    question = "who pays invoices of the travel agent"
    alone = store.save("Invoices of the travel agent are paid by Anna.").memory_id
    before = store.search(question, mode=mode, explain=True)
    assert (before.verdict, before.results[0].memory_id) == ("answered", alone)
    for name in ("Bert", "Cleo"):
        store.save(f"Invoices of the travel agent are paid by {name}.")
    after = store.search(question, mode=mode, explain=True)
    assert after.verdict == "weak"
    assert after.confidence < before.confidence
    assert after.grounds is not None
    assert after.grounds.related >= RELATED_FROM
    assert after.grounds.lead == pytest.approx(0, abs=1)


@pytest.mark.parametrize("how", [{"mode": "vector"}, {"fusion": "rrf"}], ids=["vector", "rrf"])
def test_without_comparable_scores_the_verdict_is_about_being_related(
    notes: MemoryStore, how: dict[str, Any]
) -> None:
    answer = notes.search(NOTES[0], explain=True, **how)
    assert answer.grounds is not None
    assert answer.grounds.lead is None
    assert answer.confidence == answer.grounds.related


def test_words_beside_a_wall_do_not_change_the_confidence(notes: MemoryStore) -> None:
    before = notes.search("billing replication").confidence
    notes.save("billing billing replication of another tenant", space="other")
    notes.save("replication is what viruses do", space="other")
    assert notes.search("billing replication").confidence == before


def test_without_an_embedder_the_words_alone_are_judged(open_store: OpenStore) -> None:
    embedder = WatchedEmbedder()
    embedder.down = True
    store = open_store(embedder=embedder)
    store.save_many({"content": text} for text in NOTES)
    answer = store.search(NOTES[0], explain=True)
    assert answer.mode == "fts"
    assert answer.verdict == "answered"
    assert answer.grounds is not None
    assert answer.grounds.similarity is None


def test_an_empty_store_and_a_question_without_hits_are_none(store: MemoryStore) -> None:
    empty = store.search("anything")
    assert (empty.verdict, empty.confidence, empty.results) == ("none", 0.0, ())
    store.save(NOTES[0])
    missed = store.search("zebra", mode="fts")
    assert (missed.verdict, missed.confidence) == ("none", 0.0)


def test_what_a_raw_query_matches_is_what_it_asked_for(notes: MemoryStore) -> None:
    matched = notes.search("billing AND replication", raw=True)
    assert (matched.verdict, matched.confidence) == ("answered", 1.0)
    assert notes.search("billing AND orchids", raw=True).verdict == "none"


def test_a_listing_is_answered_by_whatever_there_is(notes: MemoryStore) -> None:
    listed = notes.search(granularity="coarse")
    assert (listed.verdict, listed.confidence) == ("answered", 1.0)
    none = notes.search(granularity="coarse", session_id="nobody", include_global=False)
    assert (none.verdict, none.confidence) == ("none", 0.0)


def test_explain_shows_what_the_verdict_goes_by(notes: MemoryStore) -> None:
    assert notes.search("E4711").grounds is None
    grounds: Any = notes.search("E4711", explain=True).grounds
    assert grounds.coverage == 1.0
    assert grounds.weight > 0
    assert grounds.chunks == len(NOTES)
    by_vector: Any = notes.search("E4711", explain=True, mode="vector").grounds
    assert by_vector.coverage is None
    assert by_vector.similarity == grounds.similarity


def test_recall_gives_the_verdict_of_the_same_search(notes: MemoryStore) -> None:
    for question in ("PostgreSQL replication", UNRELATED[1]):
        found, recalled = notes.search(question), notes.recall(question)
        assert (recalled.verdict, recalled.confidence) == (found.verdict, found.confidence)


def test_a_model_that_finds_everything_alike_is_not_believed(open_store: OpenStore) -> None:
    store = open_store(embedder=SlantedEmbedder())
    store.save_many({"content": text} for text in NOTES)
    best = store.search(UNRELATED[0], mode="vector").results[0]
    assert best.similarity is not None
    assert best.similarity > 0.7
    assert store.search(UNRELATED[0], mode="vector").verdict != "answered"
    assert store.search(NOTES[0], mode="vector").verdict == "answered"


def test_a_turn_is_judged_by_the_turns_beside_it_that_are_candidates() -> None:
    # Turn 3 is asked about; turns 4 and 9 are beside it, and 9 is no candidate.
    asked = make_candidates([4], {3: 0.1, 4: 0.7, 5: 0.0}, neighbours={3: (4, 0, 0, 0)})
    [alone] = judge_first(asked, beside=False)
    [together] = judge_first(asked, beside=True)
    assert alone < NONE_BELOW < together
    beyond = replace(asked, neighbours=np.array([(9, 2, 0, 0), NO_NEIGHBOURS, NO_NEIGHBOURS]))
    assert judge_first(beyond, beside=True) == [alone]


def judge_first(found: Candidates, *, beside: bool) -> list[float]:
    """Judge the first row, with the turns beside it or alone."""
    return judge_rows(np.array([0]), found, 0.0, weigh_terms(found), beside=np.array([beside]))
