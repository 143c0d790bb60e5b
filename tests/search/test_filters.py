"""Filters one by one, in every mode and granularity, and that they never starve."""

import itertools
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from byheart.contracts import Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput
from byheart.memory.erasing import erase
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

ASKED = [
    {"mode": mode, "granularity": granularity}
    for mode, granularity in itertools.product(
        ("fts", "vector", "hybrid"), ("fine", "medium", "coarse")
    )
]

MEMORIES: dict[str, dict[str, Any]] = {
    "global": {},
    "s1": {"session_id": "s1"},
    "s2": {"session_id": "s2"},
    "fact": {"kind": "fact"},
    "report": {"kind": "report"},
    "agent": {"agent_id": "a"},
    "iter": {"session_iter": "v3"},
    "task": {"task_code": "T1"},
    "red": {"tags": ["red"]},
    "red-blue": {"tags": ["red", "blue"]},
    "Red": {"tags": ["Red"]},
    "alice": {"entities": ["Alice"]},
    "alice-bob": {"entities": ["ALICE", "Bob"]},
    "src": {"path": "src/app/main.py"},
    "docs": {"path": "docs/guide.md"},
    "low": {"importance": 1},
    "high": {"importance": 9},
    "expired": {"expires_at": "2020-01-01"},
    "later": {"expires_at": "2099-01-01"},
    "wiki": {"source": "wiki"},
    "one": {"metadata": {"n": 1, "team": "core"}},
    "true": {"metadata": {"n": True, "team": "core"}},
    "text": {"metadata": {"n": "1", 'odd "key" $.[0]': 'a "quoted" text'}},
    "null": {"metadata": {"n": None}},
    "half": {"metadata": {"n": 0.5, "deep": {"n": 1}, "list": [1]}},
}
LIVE = set(MEMORIES) - {"expired"}


@pytest.fixture(scope="module")
def filled(shared_store: MemoryStore) -> MemoryStore:
    for title, fields in MEMORIES.items():
        given = {"importance": 5, "entities": [], **fields}
        shared_store.save(f"common words of {title}", title=title, **given)
    return shared_store


def everywhere(store: MemoryStore, **where: Any) -> set[str]:
    """Ask in every mode and granularity, and list too: all must agree."""
    answers = [
        {hit.title for hit in store.search("common words", limit=50, **ask, **where).results}
        for ask in ASKED
    ]
    answers.append(
        {hit.title for hit in store.search(granularity="coarse", limit=50, **where).results}
    )
    answers.append({memory.title for memory in store.list(limit=50, **where).memories})
    answers.append(
        {hit.title for hit in store.search("common", raw=True, limit=50, **where).results}
    )
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({}, LIVE),
        ({"kind": "fact"}, {"fact"}),
        ({"kind": ["fact", "report"]}, {"fact", "report"}),
        ({"kind": "unheard-of"}, set()),
        ({"session_id": "s1"}, LIVE - {"s2"}),
        ({"session_id": "s1", "include_global": False}, {"s1"}),
        ({"session_id": "unheard-of"}, LIVE - {"s1", "s2"}),
        ({"session_id": "unheard-of", "include_global": False}, set()),
        ({"include_global": False}, LIVE),
        ({"agent_id": "a"}, {"agent"}),
        ({"agent_id": "b"}, set()),
        ({"session_iter": 3}, {"iter"}),
        ({"session_iter": "v3"}, {"iter"}),
        ({"session_iter": 1}, set()),
        ({"task_code": "T1"}, {"task"}),
        ({"tags": ["red"]}, {"red", "red-blue"}),
        ({"tags": ["red", "blue"]}, {"red", "red-blue"}),
        ({"tags": ["red", "blue"], "match": "all"}, {"red-blue"}),
        ({"tags": ["red", "red"], "match": "all"}, {"red", "red-blue"}),
        ({"tags": ["green"]}, set()),
        ({"entities": ["alice"]}, {"alice", "alice-bob"}),
        ({"entities": ["Alice", "BOB"]}, {"alice", "alice-bob"}),
        ({"entities": ["Alice", "BOB"], "match": "all"}, {"alice-bob"}),
        ({"entities": ["Carol"]}, set()),
        ({"path": "src/*"}, {"src"}),
        ({"path": "*.md"}, {"docs"}),
        ({"path": "*"}, {"src", "docs"}),
        ({"path": "docs/guide.md"}, {"docs"}),
        ({"path": "SRC/*"}, set()),
        ({"min_importance": 9}, {"high"}),
        ({"min_importance": 5}, LIVE - {"low"}),
        ({"min_importance": 0}, LIVE),
        ({"include_expired": True}, LIVE | {"expired"}),
        ({"kind": "note", "tags": ["red"], "min_importance": 5}, {"red", "red-blue"}),
        ({"tags": ["red"], "entities": ["Alice"]}, set()),
        ({"created_after": "2099-01-01"}, set()),
        ({"created_before": "2020-01-01"}, set()),
        ({"as_of": "2019-01-01"}, set()),
        ({"as_of": "2098-01-01"}, LIVE),
        ({"as_of": "2100-01-01"}, LIVE - {"later"}),
        ({"as_of": "2100-01-01", "include_expired": True}, LIVE | {"expired"}),
        ({"space": "another"}, set()),
        ({"scope": "global"}, LIVE - {"s1", "s2"}),
        ({"scope": "session"}, {"s1", "s2"}),
        ({"scope": "global", "session_id": "s1"}, LIVE - {"s1", "s2"}),
        ({"scope": "session", "session_id": "s1"}, {"s1"}),
        ({"scope": "global", "session_id": "s1", "include_global": False}, set()),
        ({"source_label": "wiki"}, {"wiki"}),
        ({"source_label": ["wiki", "mail"]}, {"wiki"}),
        ({"source_label": "mail"}, set()),
        ({"metadata": {}}, LIVE),
        ({"metadata": {"n": 1}}, {"one"}),
        ({"metadata": {"n": 1.0}}, {"one"}),
        ({"metadata": {"n": 0.5}}, {"half"}),
        ({"metadata": {"n": True}}, {"true"}),
        ({"metadata": {"n": "1"}}, {"text"}),
        ({"metadata": {"n": None}}, {"null"}),
        ({"metadata": {"missing": None}}, set()),
        ({"metadata": {"team": "core"}}, {"one", "true"}),
        ({"metadata": {"team": "core", "n": 1}}, {"one"}),
        ({"metadata": {"team": "core", "missing": 1}}, set()),
        ({"metadata": {'odd "key" $.[0]': 'a "quoted" text'}}, {"text"}),
        ({"metadata": {"deep": 1}}, set()),
        ({"metadata": {"list": 1}}, set()),
        ({"metadata": {"team": "CORE"}}, set()),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_filter_lets_through_exactly_what_it_says(
    filled: MemoryStore, where: dict[str, Any], found: set[str]
) -> None:
    assert everywhere(filled, **where) == found


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"metadata": {"n": [1]}}, "cannot compare the metadata key 'n'"),
        ({"metadata": {"n": {"a": 1}}}, "cannot compare the metadata key 'n'"),
        ({"metadata": {"n": 2**63}}, "too large"),
        ({"metadata": {"n": 1e300}}, "too large"),
        ({"metadata": {"n": float("nan")}}, "cannot be written as JSON"),
        ({"metadata": "n=1"}, "must be an object"),
        ({"metadata": {str(number): number for number in range(101)}}, "101 keys"),
        ({"scope": "everything"}, "scope 'everything' is not known"),
        ({"source_label": 5}, "source_label must be a list of texts"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    filled: MemoryStore, where: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        filled.list(**where)


def test_metadata_numbers_are_compared_exactly(store: MemoryStore) -> None:
    for title, number in (("a", 2**60), ("b", 2**60 + 1)):
        store.save(f"common words {title}", title=title, metadata={"n": number})
    assert everywhere(store, metadata={"n": 2**60 + 1}) == {"b"}


def test_a_filter_by_metadata_chooses_what_is_forgotten(store: MemoryStore) -> None:
    gone = store.save("An old plan.", metadata={"draft": True}).memory_id
    store.save("A new plan.", metadata={"draft": False})
    assert store.forget(metadata={"draft": True}, dry_run=False).memory_ids == (gone,)
    assert [each.content for each in store.list().memories] == ["A new plan."]


def test_created_after_includes_its_moment_and_created_before_excludes_it(
    store: MemoryStore,
) -> None:
    moments = []
    for title in "abc":
        moments.append(store.save(f"common words {title}", title=title).created_at)
        time.sleep(0.002)
    middle = moments[1]
    assert everywhere(store, created_after=middle) == {"b", "c"}
    assert everywhere(store, created_before=middle) == {"a"}
    assert everywhere(store, created_after=middle, created_before=moments[2]) == {"b"}
    assert everywhere(store, created_after=middle.isoformat()) == {"b", "c"}
    assert everywhere(store, created_before=middle + timedelta(microseconds=1)) == {"a", "b"}


def test_as_of_shows_what_was_there_then(store: MemoryStore) -> None:
    first = store.save("common words early", title="early", ttl_days=1)
    time.sleep(0.002)
    store.save("common words late", title="late")
    assert everywhere(store, as_of=first.created_at) == {"early"}
    tomorrow = datetime.now(UTC) + timedelta(days=2)
    assert everywhere(store, as_of=tomorrow) == {"late"}


def test_a_path_may_hold_characters_that_sql_patterns_use(store: MemoryStore) -> None:
    for path in ("a_b/x%.py", "aXb/xyz.py", "[a]/q.py"):
        store.save(f"common words {path}", title=path, path=path, entities=[])
    assert everywhere(store, path="a_b/x%.py") == {"a_b/x%.py"}
    assert everywhere(store, path="a?b/*") == {"a_b/x%.py", "aXb/xyz.py"}
    assert everywhere(store, path="[[]a]/*") == {"[a]/q.py"}
    for itself in ("[a]/q.py", "[a]", "[a]/"):
        assert everywhere(store, path=itself) == {"[a]/q.py"}


# --- Filters never starve ---------------------------------------------------------------------

NEAR, NEEDLES, PER_MEMORY = 20_000, 12, 100


class CrowdedEmbedder(EstimatedTokens):
    """Put the crowd right beside the query and the needles further off, each a little different."""

    name, dimensions, window_tokens = "crowded", 64, 10_000

    def __init__(self) -> None:
        self._chance = np.random.default_rng(7)
        self._query = self._unit(self._chance.standard_normal(64))
        self._noise = self._chance.standard_normal((4096, 64))
        self._made = 0

    def _unit(self, vector: Any) -> Any:
        return vector / np.linalg.norm(vector)

    def embed(self, texts: Sequence[str]) -> Vectors:
        made = []
        for text in texts:
            self._made += 1
            weight = 0.4 if "needle" in text else 0.05
            made.append(self._unit(self._query + weight * self._noise[self._made % 4096]))
        return np.array(made, np.float32)

    def embed_query(self, text: str) -> Vectors:
        return np.array(self._query, np.float32)


def save_crowd(store: MemoryStore, memories: int) -> None:
    """Save chunks that all have the query's words more often than any needle has."""
    crowd = (
        "".join(f"## Straw {n} {m}\n\nstraw straw straw hay\n\n" for m in range(PER_MEMORY))
        for n in range(memories)
    )
    store.save_many(
        {"content": text, "kind": "report", "entities": [], "importance": 5} for text in crowd
    )


@pytest.fixture
def crowded(open_store: Callable[..., MemoryStore]) -> MemoryStore:
    store = open_store(embedder=CrowdedEmbedder(), chunk_tokens=32)
    save_crowd(store, memories=NEAR // PER_MEMORY)
    for number in range(NEEDLES):
        store.save(
            f"needle {number}, with one straw among many other words that make it longer",
            kind="fact",
            session_id="n",
            agent_id="n",
            session_iter=7,
            task_code="n",
            tags=["n"],
            entities=["N"],
            path=f"n/{number}.md",
            importance=9,
        )
    return store


NARROW = [
    {"kind": "fact"},
    {"session_id": "n", "include_global": False},
    {"agent_id": "n"},
    {"session_iter": 7},
    {"task_code": "n"},
    {"tags": ["n"]},
    {"entities": ["n"]},
    {"path": "n/*"},
    {"min_importance": 8},
    {"kind": "fact", "tags": ["n"], "path": "n/*"},
]


@pytest.mark.slow
def test_all_12_that_match_come_back_though_20_000_chunks_are_nearer(crowded: MemoryStore) -> None:
    assert crowded.status().index.chunks == NEAR + NEEDLES
    for mode in ("fts", "vector", "hybrid"):  # the crowd is there, and nearer than every needle
        nearest = crowded.search("straw", mode=mode, limit=1000).results
        assert [hit.kind for hit in nearest] == ["report"] * 1000
    asked: list[dict[str, Any]] = [*ASKED, {"raw": True}]
    for where, ask in itertools.product(NARROW, asked):
        answer = crowded.search("straw", limit=NEEDLES, **ask, **where)
        assert len({hit.memory_id for hit in answer.results}) == NEEDLES, (where, ask)
        assert all(hit.kind == "fact" for hit in answer.results)
        assert not answer.has_more
        assert answer.degraded is None


@pytest.mark.slow
def test_paging_to_the_end_of_many_thousands_shows_every_chunk_exactly_once(
    open_store: Callable[..., MemoryStore],
) -> None:
    # More than are compared one by one, so that vectors are chosen by their signs first.
    store = open_store(embedder=CrowdedEmbedder(), chunk_tokens=32)
    save_crowd(store, memories=50)
    for mode in ("fts", "vector", "hybrid"):
        seen: list[str] = []
        for offset in range(0, 7000, 1000):
            page = store.search("straw", mode=mode, limit=1000, offset=offset)
            seen.extend(hit.chunk_id for hit in page.results)
            if not page.has_more:
                break
        assert len(seen) == len(set(seen)) == 50 * PER_MEMORY


def test_a_limit_of_100_is_filled_like_any_other(store: MemoryStore) -> None:
    store.save_many({"content": f"common words {n}", "kind": "fact"} for n in range(120))
    for ask in ASKED:
        assert store.search("common words", kind="fact", limit=100, **ask).total_results == 100


def test_deleted_chunks_take_no_place_among_the_hits(
    open_store: Callable[..., MemoryStore], path: Any
) -> None:
    store = open_store()
    gone = store.save_many({"content": f"common words {n}"} for n in range(300))
    kept = store.save("other text with common inside")
    storage = SqliteStorage(path)
    assert (
        erase(storage, [each.memory_id for each in gone], "default", tombstones=False).memories
        == 300
    )
    storage.close()
    for ask in ASKED:
        found = store.search("common words", limit=10, **ask)
        assert [hit.memory_id for hit in found.results] == [kept.memory_id]
        assert not found.has_more


def test_of_thousands_of_vectors_the_nearest_are_those_of_brute_force(
    open_store: Callable[..., MemoryStore],
) -> None:
    words = [f"w{number}" for number in range(300)]
    chance = random.Random(3)
    texts = [
        " ".join(chance.sample(words, 12)) for _ in range(4500)
    ]  # more than are compared one by one
    embedder = HashEmbedder()
    store = open_store(embedder=embedder)
    store.save_many({"content": text, "entities": []} for text in texts)
    vectors = embedder.embed(texts)
    found = 0
    for text in texts[:40]:
        query = " ".join(text.split()[:6])
        cosines = vectors @ embedder.embed_query(query)
        nearest = {texts[at] for at in np.argsort(-cosines)[:10]}
        hits = store.search(query, mode="vector").results
        found += len(nearest & {hit.chunk_content for hit in hits})
    assert found >= 0.97 * 400
