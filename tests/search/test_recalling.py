"""Recall: which memories come first, what of them fits, and what counts as used."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput, SettingsError
from byheart.model import RecallAnswer, RecallExplanation, to_wire
from byheart.search.recalling import frequency_of, recency_of, relevance_of, weighed
from byheart.search.request import Weights
from byheart.settings import load_settings
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder

PLENTY = 100_000
DAY = timedelta(days=1)


@pytest.fixture
def age(path: Path) -> Callable[..., None]:
    """Make a memory look as if it had been used so often, so long ago."""

    def change(memory_id: str, days: float, accesses: int = 0, *, accessed: bool = True) -> None:
        moment = int((datetime.now(UTC) - days * DAY).timestamp() * 1e6)
        connection = apsw.Connection(str(path))
        column = "accessed_at" if accessed else "updated_at"
        connection.execute(
            f"UPDATE memories SET {column} = ?, access_count = ? WHERE memory_id = ?",
            (moment, accesses, memory_id),
        )
        connection.close()

    return change


def ids(answer: RecallAnswer) -> list[str]:
    return [each.id for each in answer.index]


def parts(store: MemoryStore, query: str = "tea", **more: Any) -> dict[str, RecallExplanation]:
    answer = store.recall(query, explain=True, max_tokens=PLENTY, **more)
    return {each.id: each for each in answer.explanations or ()}


# --- The formulas -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "expected"),
    [(0, 1.0), (30, 0.368), (60, 0.135), (90, 0.050), (-5, 1.0), (20.794, 0.5)],
)
def test_recency_fades_by_the_days_since_the_last_use(days: float, expected: float) -> None:
    assert recency_of(timedelta(days=days)) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("accesses", "expected"),
    [(0, 0.0), (1, 0.1505), (9, 0.5), (10, 0.5207), (99, 1.0), (100, 1.0), (1000, 1.0)],
)
def test_frequency_grows_with_the_logarithm_and_ends_at_one(accesses: int, expected: float) -> None:
    assert frequency_of(accesses) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0, 0.0), (1e-6, 1e-6), (1, 0.5), (1.28, 0.5614), (6.51, 0.8668), (13.64, 0.9317)],
)
def test_keyword_relevance_is_x_over_one_plus_x(score: float, expected: float) -> None:
    assert relevance_of(score, "fts", 20) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("score", "best", "expected"),
    [(20, 20, 1.0), (5, 20, 0.25), (0.3, 0.3, 1.0), (0, 20, 0), (0, 0, 0)],
)
def test_hybrid_relevance_is_the_share_of_the_best_evidence(
    score: float, best: float, expected: float
) -> None:
    assert relevance_of(score, "hybrid", best) == expected


@pytest.mark.parametrize(("cosine", "expected"), [(1, 1), (0.3, 0.3), (0, 0), (-0.7, 0)])
def test_vector_relevance_is_the_cosine_and_never_negative(cosine: float, expected: float) -> None:
    assert relevance_of(cosine, "vector", 1) == expected


def test_the_weights_are_forty_thirty_twenty_ten() -> None:
    settings = load_settings({})
    assert settings.recall_weights == (0.4, 0.3, 0.2, 0.1) == Weights()
    only = [weighed(Weights(*map(float, row)), Weights()) for row in ("1000", "0100", "0010")]
    assert only == pytest.approx([0.4, 0.3, 0.2])
    assert weighed(Weights(1, 1, 1, 1), Weights()) == pytest.approx(1)


def test_a_score_is_made_of_the_four_parts_of_its_memory(
    store: MemoryStore, age: Callable[..., None]
) -> None:
    memory_id = store.save("green tea", importance=6).memory_id
    age(memory_id, days=30, accesses=9)
    store.save("something else")
    why = parts(store, mode="fts")[memory_id]
    [hit] = store.search("tea", mode="fts").results
    assert why.relevance == pytest.approx(hit.score / (1 + hit.score), abs=1e-6)
    assert (why.importance, why.frequency) == (0.6, 0.5)
    assert why.recency == pytest.approx(math.exp(-1), abs=1e-5)
    expected = 0.4 * why.relevance + 0.3 * 0.6 + 0.2 * why.recency + 0.1 * 0.5
    assert why.score == pytest.approx(expected, abs=2e-6)


def test_what_was_never_accessed_is_as_old_as_its_last_change(
    store: MemoryStore, age: Callable[..., None]
) -> None:
    memory_id = store.save("green tea").memory_id
    age(memory_id, days=60, accessed=False)
    assert parts(store)[memory_id].recency == pytest.approx(0.135, abs=5e-4)
    age(memory_id, days=30)
    assert parts(store)[memory_id].recency == pytest.approx(0.368, abs=5e-4)
    age(memory_id, days=-400)
    assert parts(store)[memory_id].recency == 1.0


# --- Which come first -------------------------------------------------------------------------


def test_an_important_memory_is_not_cut_off_before_it_is_weighed(store: MemoryStore) -> None:
    store.save_many({"content": f"tea tea tea {n}", "importance": 0} for n in range(250))
    vital = store.save("tea, among very many other words here", importance=10).memory_id
    assert ids(store.recall("tea", mode="fts", limit=1))[0] == vital


def test_one_long_document_does_not_keep_the_others_out(store: MemoryStore) -> None:
    sections = "\n\n".join(f"# Tea {n}\n\ntea tea tea, number {n}" for n in range(400))
    document = store.save(sections, importance=1)
    assert document.chunks >= 300
    fact = store.save("tea, said once among quite a lot of other words in a note").memory_id
    for mode in ("fts", "vector", "hybrid"):
        assert set(ids(store.recall("tea", mode=mode, max_tokens=PLENTY))) == {
            document.memory_id,
            fact,
        }


@pytest.mark.parametrize("mode", ["fts", "vector", "hybrid"])
def test_relevance_never_rises_from_rank_to_rank(store: MemoryStore, mode: str) -> None:
    store.save_many({"content": f"{'tea ' * (n % 7)} {'milk ' * (n % 3)} {n}"} for n in range(60))
    hits = store.search("tea milk", mode=mode, granularity="coarse", limit=60).results
    why = parts(store, "tea milk", mode=mode, limit=60)
    found = [why[hit.memory_id].relevance for hit in hits]
    assert found == sorted(found, reverse=True)
    assert all(0 <= each <= 1 for each in found)


def test_of_equals_the_more_relevant_comes_first_and_then_the_older(
    open_store: OpenStore,
) -> None:
    store = open_store(
        recall_relevance_weight=0, recall_recency_weight=0, recall_frequency_weight=0
    )
    texts = ["tea and milk and sugar", "tea tea tea", "tea and milk and sugar "]
    [long, tea, twin] = [store.save(text, importance=5).memory_id for text in texts]
    assert ids(store.recall("tea", mode="fts")) == [tea, long, twin]


def test_weights_change_the_order(open_store: OpenStore) -> None:
    store = open_store()
    exact = store.save("tea tea", importance=0).memory_id
    vital = store.save("some tea among many other words", importance=10).memory_id
    assert ids(store.recall("tea", mode="fts")) == [vital, exact]
    store = open_store(recall_importance_weight=0)
    assert ids(store.recall("tea", mode="fts")) == [exact, vital]


def test_weights_of_any_size_give_scores_from_zero_to_one(open_store: OpenStore) -> None:
    open_store().save("tea", importance=10)
    asked = {"as_of": "2999-01-01"}
    small = parts(open_store(), **asked)
    large = parts(
        open_store(
            recall_relevance_weight=400,
            recall_importance_weight=300,
            recall_recency_weight=200,
            recall_frequency_weight=100,
        ),
        **asked,
    )
    [(one, other)] = zip(small.values(), large.values(), strict=True)
    assert one.score == pytest.approx(other.score, abs=1e-5)


def test_weights_that_are_all_zero_or_negative_are_refused() -> None:
    names = ("relevance", "importance", "recency", "frequency")
    with pytest.raises(SettingsError, match="all four"):
        load_settings({f"recall_{name}_weight": 0 for name in names})
    with pytest.raises(SettingsError, match="recall_recency_weight"):
        load_settings({"recall_recency_weight": -1})


def test_a_superseded_memory_comes_last_and_names_its_successor(store: MemoryStore) -> None:
    old = store.save("tea tea tea is served at four", importance=10).memory_id
    new = store.save("now it is served at five, the tea", importance=1).memory_id
    store.supersede(old, new)
    answer = store.recall("tea", max_tokens=PLENTY)
    assert ids(answer) == [new, old]
    assert [each.superseded_by for each in answer.details] == [None, new]
    assert answer.total_count == 2


def test_the_same_question_gets_the_same_order(store: MemoryStore) -> None:
    store.save_many({"content": f"tea {n}", "importance": n % 3} for n in range(50))
    asked = {"as_of": "2999-01-01", "max_tokens": PLENTY}  # so that nothing counts as used
    first = ids(store.recall("tea", limit=50, **asked))
    pages = [ids(store.recall("tea", limit=7, offset=at, **asked)) for at in (21, 14)]
    assert pages == [first[21:28], first[14:21]]


def test_using_a_page_does_not_change_the_next_one(store: MemoryStore) -> None:
    store.save_many({"content": f"tea {n}", "importance": n % 3} for n in range(50))
    expected = ids(store.recall("tea", limit=50, max_tokens=PLENTY, as_of="2999-01-01"))
    for at in (0, 10, 20, 30, 40):
        page = store.recall("tea", limit=10, offset=at, max_tokens=PLENTY)
        assert len(page.details) == 10
        assert set(ids(page)) == set(expected[at : at + 10])


# --- What comes back --------------------------------------------------------------------------


def test_a_recall_lists_every_match_and_gives_them_in_full(store: MemoryStore) -> None:
    saved = store.save(
        "Anna prefers tea to coffee.\n\n" + "x" * 100,
        kind="fact",
        title="Drinks",
        summary="About Anna",
        tags=["people"],
        entities=["Anna"],
        importance=7,
        session_id="s1",
    )
    answer = store.recall("tea", session_id="s1")
    memory = store.get(saved.memory_id)
    wire = to_wire(answer)
    assert wire["index"] == [{"id": saved.memory_id, "summary": "About Anna"}]
    [detail] = wire["details"]
    assert detail.pop("score") == pytest.approx(0.4 + 0.3 * 0.7 + 0.2, abs=1e-3)
    assert detail.pop("id") == saved.memory_id
    assert detail == {name: to_wire(getattr(memory, name)) for name in detail}
    assert set(detail) >= {"kind", "title", "content", "tags", "entities"}
    assert (answer.query, answer.mode, answer.degraded) == ("tea", "hybrid", None)
    assert (answer.total_count, answer.has_more, answer.explanations) == (1, False, None)


def test_details_that_do_not_fit_are_skipped_and_the_next_are_tried(store: MemoryStore) -> None:
    large = store.save("tea " * 3000, importance=10, summary="large").memory_id
    small = store.save("tea", importance=1).memory_id
    answer = store.recall("tea", max_tokens=1000)
    assert ids(answer) == [large, small]
    assert [each.id for each in answer.details] == [small]
    assert not answer.has_more


def test_an_endless_summary_does_not_empty_the_index(store: MemoryStore) -> None:
    store.save("tea one", summary="endless " * 1000, importance=10)
    short = store.save("tea two", importance=1).memory_id
    answer = store.recall("tea", max_tokens=600)
    assert ids(answer) == [short]
    assert answer.has_more


def test_the_index_goes_on_when_details_leave_room(store: MemoryStore) -> None:
    store.save_many(
        {"content": f"tea {n} " + "leaf " * 2000, "summary": f"tea {n}"} for n in range(20)
    )
    answer = store.recall("tea", max_tokens=700)
    assert (len(answer.index), len(answer.details)) == (20, 0)
    assert 350 < answer.tokens_used <= 700


def test_has_more_says_that_there_are_further_pages(store: MemoryStore) -> None:
    store.save_many({"content": f"tea {n}"} for n in range(5))
    seen = [
        (len(answer.index), answer.total_count, answer.has_more)
        for offset in (0, 2, 4, 6)
        for answer in [store.recall("tea", limit=2, offset=offset, max_tokens=PLENTY)]
    ]
    assert seen == [(2, 5, True), (2, 5, True), (1, 5, False), (0, 5, False)]


def test_has_more_says_that_something_could_not_be_listed(store: MemoryStore) -> None:
    store.save_many({"content": f"tea {n}"} for n in range(5))
    answer = store.recall("tea", max_tokens=1)
    assert (answer.index, answer.details, answer.tokens_used) == ((), (), 0)
    assert (answer.total_count, answer.has_more) == (5, True)


def test_nothing_found_is_an_answer(store: MemoryStore) -> None:
    store.save("coffee")
    answer = store.recall("tea", mode="fts")
    assert (answer.index, answer.total_count, answer.has_more) == ((), 0, False)


class CountingHash(HashEmbedder):
    """Watch how many characters are counted."""

    seen = 0

    def token_starts(self, text: str) -> list[int]:
        self.seen += len(text)
        return super().token_starts(text)


def test_a_text_of_megabytes_is_not_counted_to_its_end_to_leave_it_out(
    open_store: OpenStore,
) -> None:
    embedder = CountingHash()
    store = open_store(embedder=embedder)
    store.save("tea " * 250_000, summary="large")
    embedder.seen = 0
    answer = store.recall("tea", mode="fts", max_tokens=500)
    assert (len(answer.index), len(answer.details)) == (1, 0)
    assert 0 < embedder.seen < 20_000


# --- Filters, modes and bad input -------------------------------------------------------------

FILTERS: list[dict[str, Any]] = [
    {"kind": "fact"},
    {"kind": ["fact", "report"]},
    {"session_id": "s1", "include_global": False},
    {"agent_id": "a"},
    {"session_iter": "v2"},
    {"task_code": "T"},
    {"tags": ["x", "y"], "match": "all"},
    {"entities": ["anna"]},
    {"path": "notes/*"},
    {"min_importance": 9},
    {"created_before": "2999-01-01", "created_after": "2000-01-01", "kind": "fact"},
    {"as_of": "2999-01-01", "kind": "fact"},
    {"include_expired": True, "kind": "fact"},
    {"space": "elsewhere"},
]


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_every_filter_of_search_holds_in_recall(store: MemoryStore, where: dict[str, Any]) -> None:
    store.save_many({"content": f"tea {n}", "session_id": "s2"} for n in range(20))
    own = {"space": where["space"]} if "space" in where else {}
    wanted = store.save(
        "tea, and much besides",
        kind="fact",
        session_id="s1",
        agent_id="a",
        session_iter=2,
        task_code="T",
        tags=["x", "y"],
        entities=["Anna"],
        path="notes/1.md",
        importance=9,
        **own,
    )
    for mode in ("fts", "vector", "hybrid"):
        answer = store.recall("tea", mode=mode, **where)
        assert (ids(answer), answer.total_count) == ([wanted.memory_id], 1)


def test_expired_memories_are_recalled_only_when_asked_for(store: MemoryStore) -> None:
    gone = store.save("tea", ttl_days=0).memory_id
    assert ids(store.recall("tea")) == []
    assert ids(store.recall("tea", include_expired=True)) == [gone]


def test_without_an_embedder_a_recall_goes_by_keyword_and_says_so(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    store = open_store(embedder=watched)
    store.save("green tea")
    watched.down = True
    answer = store.recall("tea", explain=True)
    assert answer.mode == "fts"
    assert "holiday" in (answer.degraded or "")
    [hit] = store.search("tea", mode="fts").results
    [why] = answer.explanations or ()
    assert why.relevance == pytest.approx(hit.score / (1 + hit.score), abs=1e-6)


def test_missing_vectors_are_told(open_store: OpenStore, watched: WatchedEmbedder) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    store.save("green tea")
    watched.down = False
    assert "no vectors yet" in (store.recall("tea").degraded or "")


@pytest.mark.parametrize(
    "given",
    [
        {"max_tokens": 0},
        {"max_tokens": "many"},
        {"max_tokens": 10**9},
        {"limit": 0},
        {"limit": 5000},
        {"offset": -1},
        {"mode": "psychic"},
        {"explain": "yes"},
        {"min_importance": 11},
        {"kinds": ["fact"]},
        {"granularity": "fine"},
        {"match": "some"},
    ],
    ids=str,
)
def test_bad_input_is_refused(store: MemoryStore, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        store.recall("tea", **given)
    assert next(iter(given)).rstrip("s") in refusal.value.message + refusal.value.hint


@pytest.mark.parametrize("query", ["", "  ", None, 7, "x" * 100_001])
def test_a_query_that_is_none_is_refused(store: MemoryStore, query: Any) -> None:
    with pytest.raises(InvalidInput, match="query"):
        store.recall(query)


@pytest.mark.parametrize("query", ['"', "C++ -x: *?", "東京", "(" * 50, "\ud800 tea", "🙂"])
def test_any_text_can_be_recalled(store: MemoryStore, query: str) -> None:
    store.save("tea")
    assert store.recall(query).tokens_used <= 1000


# --- What counts as used ----------------------------------------------------------------------


def test_what_comes_back_in_full_counts_as_used(store: MemoryStore) -> None:
    given = store.save("tea", importance=10).memory_id
    listed = store.save("tea " * 3000, summary="much tea").memory_id
    for count in (1, 2):
        assert [each.id for each in store.recall("tea").details] == [given]
        assert store.get(given).access_count == count
    assert store.get(given).accessed_at is not None
    assert store.get(given).access_count == 2
    assert store.get(listed).access_count == 0
    assert store.get(listed).accessed_at is None


def test_a_recall_as_of_then_counts_nothing(store: MemoryStore) -> None:
    memory_id = store.save("tea").memory_id
    assert store.recall("tea", as_of=datetime.now(UTC)).details
    assert store.get(memory_id).access_count == 0


def test_a_recall_as_of_then_gives_the_text_of_then(store: MemoryStore) -> None:
    memory_id = store.save("tea at four").memory_id
    before = datetime.now(UTC)
    store.update(memory_id, content="tea at five")
    [then] = store.recall("tea", as_of=before).details
    [now] = store.recall("tea").details
    assert (then.id, then.content) == (memory_id, "tea at four")
    assert (now.id, now.content) == (memory_id, "tea at five")


def test_recency_as_of_then_is_counted_from_then(
    store: MemoryStore, age: Callable[..., None]
) -> None:
    memory_id = store.save("tea").memory_id
    moment = datetime.now(UTC) + 60 * DAY
    assert parts(store, as_of=moment)[memory_id].recency == pytest.approx(0.135, abs=5e-4)
    age(memory_id, days=-90)
    assert parts(store, as_of=moment)[memory_id].recency == 1.0


def test_a_memory_of_another_space_is_neither_recalled_nor_counted(store: MemoryStore) -> None:
    theirs = store.save("tea", space="theirs").memory_id
    assert store.recall("tea").total_count == 0
    assert store.recall("tea", space="theirs").details
    assert store.get(theirs, space="theirs").access_count == 1


def test_a_recall_is_the_same_object_in_json(store: MemoryStore) -> None:
    store.save("tea")
    assert json.loads(json.dumps(to_wire(store.recall("tea", explain=True))))["explanations"]


def test_a_long_list_leaves_half_of_the_budget_to_what_is_given_in_full(store: MemoryStore) -> None:
    for number in range(20):
        store.save(f"tea {number} " + "and one thing more to say about it " * 3)
    answer = store.recall("tea", max_tokens=600)
    assert len(answer.index) < 20, "not all of them can be listed"
    assert answer.details
