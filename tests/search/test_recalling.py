"""Recall: which memories come first, what of them fits, and what counts as used."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import byheart
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput, QuerySyntaxError, SettingsError
from byheart.model import RecallAnswer, RecallExplanation, to_wire
from byheart.search import recalling
from byheart.search.recall_budget import Budget
from byheart.search.recalling import frequency_of, recency_of, relevance_of, weighed
from byheart.search.request import Weights
from byheart.settings import load_settings
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder

PLENTY = 100_000
NAMES = (
    *("Amber", "Birch", "Cedar", "Dune", "Ember", "Fjord", "Grove", "Heron", "Iris", "Juniper"),
    *("Kelp", "Lark", "Maple", "Nova", "Otter", "Pine", "Quartz", "Raven", "Sage", "Tundra"),
)
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
    assert recency_of(np.array([days])) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("accesses", "expected"),
    [(0, 0.0), (1, 0.1505), (9, 0.5), (10, 0.5207), (99, 1.0), (100, 1.0), (1000, 1.0)],
)
def test_frequency_grows_with_the_logarithm_and_ends_at_one(accesses: int, expected: float) -> None:
    assert frequency_of(np.array([accesses])) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0, 0.0), (1e-6, 1e-6), (1, 0.5), (1.28, 0.5614), (6.51, 0.8668), (13.64, 0.9317)],
)
def test_keyword_relevance_is_x_over_one_plus_x(score: float, expected: float) -> None:
    assert relevance_of(np.array([score]), "fts", 20) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("score", "best", "expected"),
    [(20, 20, 1.0), (5, 20, 0.25), (0.3, 0.3, 1.0), (0, 20, 0), (0, 0, 0)],
)
def test_hybrid_relevance_is_the_share_of_the_best_evidence(
    score: float, best: float, expected: float
) -> None:
    assert relevance_of(np.array([score]), "hybrid", best) == expected


@pytest.mark.parametrize(("cosine", "expected"), [(1, 1), (0.3, 0.3), (0, 0), (-0.7, 0)])
def test_vector_relevance_is_the_cosine_and_never_negative(cosine: float, expected: float) -> None:
    assert relevance_of(np.array([cosine]), "vector", 1) == expected


def test_the_weights_are_forty_thirty_twenty_ten() -> None:
    settings = load_settings({})
    assert settings.recall_weights == (0.4, 0.3, 0.2, 0.1) == Weights()
    parts = [np.array(column, float) for column in zip(*np.eye(4), np.ones(4), strict=True)]
    assert weighed(parts, Weights()) == pytest.approx([0.4, 0.3, 0.2, 0.1, 1])


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
    memory_id = store.save("green tea", created_at="2020-01-01").memory_id
    store.update(memory_id, tags=["drinks"])
    assert parts(store)[memory_id].recency == pytest.approx(1, abs=1e-4)
    age(memory_id, days=30)
    assert parts(store)[memory_id].recency == pytest.approx(0.368, abs=5e-4)
    age(memory_id, days=-400)
    assert parts(store)[memory_id].recency == 1.0


def test_the_recency_of_a_backdated_text_counts_from_its_own_time(store: MemoryStore) -> None:
    then = datetime.now(UTC) - 60 * DAY
    turn = store.log("s1", "user", "green tea", created_at=then).memory_id
    ahead = store.log("s1", "user", "black tea", created_at="2999-01-01").memory_id
    why = parts(store)
    assert why[turn].recency == pytest.approx(0.135, abs=5e-4)
    assert why[ahead].recency == 1.0


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


# --- Among many matches -----------------------------------------------------------------------


@pytest.fixture
def many(store: MemoryStore) -> MemoryStore:
    """Save more notes about tea than a retriever gives at first."""
    store.save_many(
        {"content": f"tea tea tea {n}", "importance": n % 2, "created_at": "2020-01-01"}
        for n in range(1500)
    )
    return store


@pytest.mark.parametrize("mode", ["fts", "vector", "hybrid"])
def test_an_important_memory_is_found_among_1500_matches(many: MemoryStore, mode: str) -> None:
    vital = many.save("green tea, said Anna", importance=10).memory_id
    answer = many.recall("tea", mode=mode)
    assert ids(answer)[0] == vital
    assert answer.total_count == 1501


def test_a_memory_that_was_used_before_is_found_among_1500_matches(
    many: MemoryStore, age: Callable[..., None]
) -> None:
    often = many.save("green tea, as Anna said", importance=0, created_at="2020-01-01").memory_id
    assert often not in ids(many.recall("tea", mode="fts", limit=1000, max_tokens=PLENTY))
    age(often, days=0, accesses=99)
    assert ids(many.recall("tea", mode="fts"))[0] == often


def test_an_important_memory_about_something_else_stays_behind_the_matches(
    many: MemoryStore,
) -> None:
    far = many.save("penguins swim", importance=10).memory_id
    last = many.recall("tea", limit=1000, offset=1000, max_tokens=PLENTY, explain=True)
    assert ids(last)[-1] == far
    *_, before, behind = last.explanations or ()
    assert behind.score > before.score


@pytest.mark.parametrize("mode", ["fts", "vector", "hybrid"])
def test_pages_reach_the_last_match_without_repeating_any(many: MemoryStore, mode: str) -> None:
    seen: list[str] = []
    while True:
        page = many.recall("tea", mode=mode, limit=250, offset=len(seen), max_tokens=PLENTY)
        assert (page.total_count, len(page.details)) == (1500, len(page.index))
        seen += ids(page)
        if not page.has_more:
            break
    assert (len(seen), len(set(seen))) == (1500, 1500)


def test_pages_cut_by_the_budget_continue_behind_the_last_entry(store: MemoryStore) -> None:
    store.save_many(
        {"content": f"tea {n} " + "leaf " * (n % 7 * 30), "summary": "tea " * (1 + n % 5 * 40)}
        for n in range(100)
    )
    expected = ids(store.recall("tea", limit=100, max_tokens=PLENTY, as_of="2999-01-01"))
    seen: list[str] = []
    while True:
        page = store.recall("tea", limit=100, offset=len(seen), max_tokens=300)
        assert set(ids(page)) == set(expected[len(seen) : len(seen) + len(page.index)])
        seen += ids(page)
        if not page.has_more:
            break
    assert len(seen) == 100


@pytest.mark.parametrize("mode", ["fts", "vector", "hybrid"])
def test_pages_of_a_store_too_large_to_weigh_whole_reach_the_end_too(
    many: MemoryStore, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vital = many.save("green tea, said Anna", importance=10).memory_id
    monkeypatch.setattr(recalling, "WHOLE", 100)
    monkeypatch.setattr(recalling, "_FIRST_OF_MANY", 30)
    asked: dict[str, Any] = {"mode": mode, "limit": 300, "max_tokens": PLENTY}
    pages = [many.recall("tea", offset=at, **asked) for at in range(0, 1800, 300)]
    seen = [each for page in pages for each in ids(page)]
    assert seen[0] == vital
    assert (len(seen), len(set(seen))) == (1501, 1501)
    assert [page.total_count for page in pages] == [1501] * 6


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
    assert (detail.pop("relative_path"), detail.pop("stale")) == (None, False)
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


def test_an_endless_summary_is_cut_in_the_text_and_does_not_empty_the_index(
    store: MemoryStore,
) -> None:
    endless = store.save("tea one " * 1000, summary="endless " * 1000, importance=10).memory_id
    short = store.save("tea two", importance=1).memory_id
    answer = store.recall("tea", max_tokens=600)
    assert ids(answer) == [endless, short]
    assert [len(each.summary) for each in answer.index] == [8000, 7]
    assert "…\n" in answer.text
    assert not answer.has_more


def test_the_index_goes_on_when_details_leave_room(store: MemoryStore) -> None:
    store.save_many(
        {"content": f"tea {n} " + "leaf " * 2000, "summary": f"tea {n}"} for n in range(20)
    )
    answer = store.recall("tea", max_tokens=150)
    assert (len(answer.index), len(answer.details)) == (20, 0)
    assert 75 < answer.tokens_used <= 150


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


def test_a_recall_takes_raw_syntax(store: MemoryStore) -> None:
    program = store.save("Anna programs in TypeScript", importance=1).memory_id
    other = store.save("The programme of the concert", title="typescript", importance=9).memory_id
    assert ids(store.recall("{content}: typescript", raw=True)) == [program]
    prefix = store.recall("program*", raw=True, max_tokens=PLENTY)
    assert ids(prefix) == [other, program]
    assert (prefix.mode, prefix.verdict, prefix.total_count) == ("fts", "answered", 2)
    assert store.get(program).access_count == 2
    assert ids(store.recall("program* NOT concert", raw=True)) == [program]
    with pytest.raises(QuerySyntaxError):
        store.recall("program AND", raw=True)
    with pytest.raises(InvalidInput, match="no meaning for vectors"):
        store.recall("program", raw=True, mode="vector")


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


@pytest.mark.parametrize("mode", ["fts", "hybrid"])
def test_an_unrelated_question_counts_no_access(store: MemoryStore, mode: str) -> None:
    facts = ["the build server is called Otto", "lunch is at noon", "the wifi password changed"]
    saved = [store.save(fact).memory_id for fact in facts]
    for _ in range(5):
        answer = store.recall("which penguins live in Chile", mode=mode)
        assert answer.verdict == "none"
    assert [store.get(each).access_count for each in saved] == [0, 0, 0]


def test_only_relevant_memories_of_an_answer_count_as_used(store: MemoryStore) -> None:
    right = store.save("the build server is called Otto").memory_id
    other = store.save("lunch is at noon, and the coffee machine is broken").memory_id
    answer = store.recall("what is the build server called")
    assert {each.id for each in answer.details} == {right, other}
    assert (store.get(right).access_count, store.get(other).access_count) == (1, 0)


@pytest.mark.model
def test_an_unrelated_question_that_seems_a_little_near_counts_no_access(
    tmp_path: Path,
) -> None:
    facts = {
        "frozen": "Deploys are frozen from Friday noon until Monday morning.",
        "server": "The build server is called minas and runs Debian 12.",
        "port": "The API listens on port 8080.",
        "office": "The office is open from eight to six on weekdays.",
    }
    with byheart.open(tmp_path / "memory.db") as store:
        saved = {name: store.save(text).memory_id for name, text in facts.items()}

        def counts() -> dict[str, int]:
            return {name: store.get(each).access_count for name, each in saved.items()}

        for _ in range(5):
            asked = store.recall("how do penguins survive the winter?")
            assert (asked.verdict, len(asked.details)) == ("weak", len(facts))
        assert counts() == dict.fromkeys(facts, 0)
        store.recall("which port does the API use?")
        assert counts() == {**dict.fromkeys(facts, 0), "port": 1}


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
    answer = store.recall("tea", max_tokens=400)
    assert len(answer.index) < 20, "not all of them can be listed"
    assert answer.details


def test_a_long_list_gets_half_of_the_budget_neither_a_third_nor_all_of_it(
    store: MemoryStore,
) -> None:
    for number in range(100):
        store.save(f"tea {number} " + "and one thing more to say about it " * 12)
    most = 2000
    answer = store.recall("tea", limit=100, max_tokens=most)
    counted = Budget(store._engine.vectorizer.tokens(), PLENTY)
    whole, also, listed = answer.text.partition("Also:\n")
    assert also
    # A memory that is given in full gives back the tokens of its line.
    line = counted.count(listed.splitlines()[0])
    assert most / 2 - line * (len(answer.details) + 1) <= counted.count(listed) <= most / 2
    assert counted.count(whole) > most / 3


@pytest.mark.model
def test_twenty_entries_and_three_details_fit_into_a_thousand_tokens(
    tmp_path: Path,
) -> None:
    with byheart.open(tmp_path / "memory.db", embedding_provider="onnx") as store:
        store.save_many(
            {
                "content": f"Service {name} is deployed to its cluster by the team of {person}. "
                + f"Its runbook has {number} steps, and each step names who does it. " * 8
            }
            for number, (name, person) in enumerate(zip(NAMES, reversed(NAMES), strict=True))
        )
        answer = store.recall("which team deploys which service", max_tokens=1000)
    assert len(answer.index) == 20
    assert len(answer.details) >= 3
    assert all(len(each.content.split()) >= 100 for each in answer.details)
    assert answer.tokens_used <= 1000


def test_the_text_says_everything_once(store: MemoryStore) -> None:
    store.save("Tea is at four.", kind="fact", title="Tea", session_id="s1")
    store.save("tea " * 3000, summary="A long text about tea")
    answer = store.recall("tea")
    [given] = answer.details
    [other] = [each for each in answer.index if each.id != given.id]
    date = f"{given.created_at:%Y-%m-%d}"
    assert answer.text == (
        f"[{given.id[4:14]}] Tea (fact, {date}, session s1)\nTea is at four.\n\n"
        f"Also:\n- {other.id[4:14]}: A long text about tea\n"
    )
