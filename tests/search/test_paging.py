"""The order of a question is one list, however it is paged, reopened or rebuilt."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.storage.test_processes import finish, start

ASKED = list(itertools.product(("fts", "vector", "hybrid"), ("fine", "medium", "coarse")))
QUERY = "what did we decide about the database topic"

SEARCH_ELSEWHERE = """
import json, sys
from pathlib import Path
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.store import MemoryStore
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
path, query = sys.argv[1:]
store = MemoryStore(SqliteStorage(Path(path)), HashEmbedder(), load_settings({}))
print(json.dumps([
    [(hit.memory_id, hit.score) for hit in
     store.search(query, mode=mode, granularity=granularity, limit=100).results]
    for mode in ("fts", "vector", "hybrid") for granularity in ("fine", "medium", "coarse")
]))
"""


def items() -> list[dict[str, Any]]:
    """Make 500 texts, many of them alike, so that there are ties on every page."""
    return [
        {
            "content": f"# Topic {n % 20}\n\nThe database decision {n % 50} was made.\n",
            "session_id": f"s{n}",
        }
        for n in range(500)
    ]


def place(hit: Any) -> tuple[Any, ...]:
    return (hit.memory_id, getattr(hit, "chunk_id", ""), getattr(hit, "header_path", ""), hit.score)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """Save the 500 texts once."""
    path = tmp_path_factory.mktemp("filled") / "memory.db"
    with MemoryStore(SqliteStorage(path), HashEmbedder(), load_settings({}, environ={})) as store:
        store.save_many(items())
        yield store


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "granularity"), ASKED)
def test_pages_joined_are_one_list(filled: MemoryStore, mode: str, granularity: str) -> None:
    def joined(limit: int) -> list[Any]:
        found: list[Any] = []
        for offset in range(0, 500, limit):
            page = filled.search(QUERY, limit=limit, offset=offset, **ask)
            assert page.has_more == (offset + limit < 500)
            found.extend(map(place, page.results))
        return found

    ask = {"mode": mode, "granularity": granularity}
    paged = joined(6)
    assert len(paged) == len({each[:3] for each in paged}) == 500
    # Each retriever ranks three times the limit: a page larger than these begins another list.
    assert paged == joined(2 if granularity == "medium" else 33)
    whole = joined(500)
    assert paged == whole if mode != "hybrid" else sorted(paged) == sorted(whole)


def test_pages_of_a_listing_joined_are_the_whole_listing(store: MemoryStore) -> None:
    store.save_many(items()[:100])
    whole = [m.memory_id for m in store.list(limit=1000).memories]
    paged = [
        memory.memory_id
        for offset in range(0, 100, 7)
        for memory in store.list(limit=7, offset=offset).memories
    ]
    assert paged == whole
    assert len(set(whole)) == 100


def test_a_page_behind_the_last_is_empty(store: MemoryStore) -> None:
    store.save("text")
    for mode, granularity in ASKED:
        page = store.search("text", mode=mode, granularity=granularity, offset=1)
        assert (page.results, page.has_more) == ((), False)


def test_the_same_question_gets_the_same_order_in_two_processes_and_after_a_rebuild(
    open_store: Callable[..., MemoryStore], path: Path
) -> None:
    store = open_store()
    store.save_many(items())

    def order(asked: MemoryStore) -> list[list[tuple[str, float]]]:
        return [
            [
                (hit.memory_id, hit.score)
                for hit in asked.search(
                    QUERY, mode=mode, granularity=granularity, limit=100
                ).results
            ]
            for mode, granularity in ASKED
        ]

    expected = order(store)
    elsewhere = finish(start(SEARCH_ELSEWHERE, path, QUERY))
    assert [[tuple(hit) for hit in each] for each in json.loads(elsewhere)] == expected
    assert order(open_store()) == expected
    store.admin.doctor(rebuild=True)
    assert order(store) == expected
    store.admin.doctor(optimize=True)
    assert order(store) == expected
    assert order(open_store()) == expected
