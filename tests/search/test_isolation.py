"""Nothing of another space or session ever shows, not even in the statistics."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from byheart.errors import NotFound
from byheart.memory.erasing import erase
from byheart.model.answers import Mode
from byheart.store import MemoryStore

ASKED: list[dict[str, Any]] = [
    *(
        {"mode": mode, "granularity": granularity}
        for mode, granularity in itertools.product(
            ("fts", "vector", "hybrid"), ("fine", "medium", "coarse")
        )
    ),
    {"raw": True},
]
OURS = "The secret recipe needs flour, butter and patience."


@pytest.fixture
def shared(store: MemoryStore) -> MemoryStore:
    """Give a store in which every text is there in every space and session."""
    for space in ("theirs", "ours", "default"):
        for session in (None, "one", "two"):
            fields = {"space": space, "session_id": session, "agent_id": "a", "tags": ["t"]}
            store.save(OURS, **fields, title=f"{space}/{session}", entities=["Recipe"])
            store.save(f"{OURS} {space} {session}", **fields, title=f"{space}/{session}")
    return store


def seen(store: MemoryStore, **where: Any) -> Iterator[set[str]]:
    for ask in ASKED:
        yield {
            hit.title for hit in store.search("secret recipe", limit=100, **ask, **where).results
        }
    yield {hit.title for hit in store.search(granularity="coarse", limit=100, **where).results}
    yield {memory.title for memory in store.list(limit=100, **where).memories}


FILTERS: list[dict[str, Any]] = [{}, {"tags": ["t"]}, {"entities": ["recipe"]}, {"agent_id": "a"}]


@pytest.mark.parametrize("more", FILTERS, ids=str)
def test_a_search_sees_its_own_space_alone(shared: MemoryStore, more: dict[str, Any]) -> None:
    for found in seen(shared, space="ours", **more):
        assert found == {"ours/None", "ours/one", "ours/two"}


@pytest.mark.parametrize("more", FILTERS, ids=str)
def test_a_search_in_a_session_sees_that_session_and_what_is_global(
    shared: MemoryStore, more: dict[str, Any]
) -> None:
    for found in seen(shared, space="ours", session_id="one", **more):
        assert found == {"ours/None", "ours/one"}
    for found in seen(shared, space="ours", session_id="one", include_global=False, **more):
        assert found == {"ours/one"}


def test_without_a_space_the_stores_own_is_meant(
    shared: MemoryStore, open_store: Callable[..., MemoryStore]
) -> None:
    for found in seen(shared):
        assert found == {"default/None", "default/one", "default/two"}
    for found in seen(open_store(space="ours")):
        assert found == {"ours/None", "ours/one", "ours/two"}


def test_a_memory_of_another_space_is_not_found_by_its_id(shared: MemoryStore) -> None:
    theirs = shared.list(space="theirs").memories[0].memory_id
    assert shared.get(theirs, space="theirs")
    for read in (
        lambda: shared.get(theirs, space="ours"),
        lambda: shared.get(theirs),
        lambda: shared.reconstruct(theirs, space="ours"),
        lambda: shared.expand(f"{theirs}#0", space="ours"),
        lambda: shared.get(f"{theirs}#0", space="ours"),
    ):
        with pytest.raises(NotFound):
            read()


def test_sessions_of_another_space_are_not_listed(shared: MemoryStore) -> None:
    shared.save("text", session_id="three", space="theirs")
    assert {each.session_id for each in shared.sessions.list(space="ours")} == {"one", "two"}
    assert {each.memory_count for each in shared.sessions.list(space="ours")} == {2}
    assert shared.sessions.list(space="nobody") == ()


def test_counts_are_those_of_the_space(shared: MemoryStore) -> None:
    shared.save("text", space="theirs")
    assert shared.search("recipe", space="ours").index.memories == 6
    assert shared.search("recipe", space="theirs").index.memories == 7
    assert shared.search("recipe", space="nobody").index.memories == 0
    assert shared.status(space="ours").sessions == 2


def test_a_memory_cannot_be_removed_through_another_space(shared: MemoryStore) -> None:
    theirs = shared.list(space="theirs").memories[0].memory_id
    assert erase(shared._storage, [theirs], "ours", tombstones=False).memories == 0
    assert shared.get(theirs, space="theirs")


@pytest.mark.parametrize(
    "ask", [{"mode": "fts"}, {"mode": "hybrid"}, {"mode": "vector"}, {"raw": True}]
)
def test_scores_in_one_space_do_not_change_when_another_is_filled(
    store: MemoryStore, ask: dict[str, Any]
) -> None:
    texts = ["rare common", "common common other", "rare rare rare", "other words here"]
    store.save_many({"content": text, "space": "ours"} for text in texts)

    def scores() -> list[tuple[str, float]]:
        query = "rare OR common" if ask.get("raw") else "rare common"
        found = store.search(query, space="ours", **ask).results
        return [(hit.chunk_content, hit.score) for hit in found]

    before = scores()
    store.save_many({"content": f"rare {n} {'rare ' * 20}", "space": "theirs"} for n in range(300))
    assert scores() == before


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_scores_do_not_change_where_the_background_is_a_sample(
    store: MemoryStore, mode: Mode
) -> None:
    """Above 512 chunks, the background of a question is measured on a part of them."""
    words = ("harbour", "ferry", "paint", "soup", "train", "keeper", "lunch")
    texts = [f"{words[n % 7]} {words[n % 5]} {n}" for n in range(600)]
    store.save_many({"content": text, "space": "ours"} for text in texts)

    def scores() -> list[tuple[str, float]]:
        found = store.search("ferry keeper", space="ours", mode=mode, limit=50).results
        return [(hit.chunk_content, hit.score) for hit in found]

    before = scores()
    store.save_many({"content": f"keeper {text}", "space": "theirs"} for text in texts)
    assert scores() == before


def test_scores_in_one_session_do_not_change_when_another_is_filled(store: MemoryStore) -> None:
    where = {"session_id": "ours", "include_global": False}
    store.save("rare common", session_id="ours")
    store.save("common words", session_id="ours")
    before = [hit.score for hit in store.search("rare common", mode="fts", **where).results]
    store.save_many({"content": f"rare {n}", "session_id": "theirs"} for n in range(200))
    assert [h.score for h in store.search("rare common", mode="fts", **where).results] == before


def test_names_of_spaces_and_sessions_are_compared_exactly(store: MemoryStore) -> None:
    for name in ("Team", "team", "team ", "te%m", "te_m", "*", "ｔｅａｍ"):
        store.save("text", space=name, title=name)
        store.save("text", session_id=name, title=name)
    for name in ("Team", "team", "team ", "te%m", "te_m", "*", "ｔｅａｍ"):
        assert [hit.title for hit in store.search("text", space=name).results] == [name]
        found = store.search("text", session_id=name, include_global=False).results
        assert [hit.title for hit in found] == [name]
