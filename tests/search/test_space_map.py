"""The map of a space over a real store."""

from __future__ import annotations

import pytest

from byheart.errors import InvalidInput
from byheart.store import MemoryStore
from tests.conftest import OpenStore


@pytest.fixture
def store(open_store: OpenStore) -> MemoryStore:
    store = open_store()
    store.save_many(
        {
            "content": f"{word} number {at} is about {word} and {word} again.",
            "kind": "fact" if at % 2 else "note",
        }
        for word in ("harbour", "bicycle", "invoice")
        for at in range(40)
    )
    return store


def test_a_map_has_a_point_and_a_region_for_each_memory(store: MemoryStore) -> None:
    drawn = store.views.map()
    assert (len(drawn.memory_ids), drawn.total) == (120, 120)
    assert len(set(drawn.memory_ids)) == 120
    lists = (drawn.x, drawn.y, drawn.kind, drawn.region)
    assert {len(each) for each in lists} == {120}
    assert drawn.kinds == ("fact", "note") or drawn.kinds == ("note", "fact")
    for memory_id, kind in list(zip(drawn.memory_ids, drawn.kind, strict=True))[::17]:
        assert store.get(memory_id).kind == drawn.kinds[kind]
    assert sum(each.memories for each in drawn.regions) == 120
    named = {term for each in drawn.regions for term in each.terms}
    assert {"harbour", "bicycle", "invoice"} <= named
    assert all(0 <= each <= 1 for each in (*drawn.x, *drawn.y))
    assert drawn.degraded is None


def test_a_map_is_the_same_each_time_and_is_limited(store: MemoryStore) -> None:
    first, again = store.views.map(), store.views.map()
    assert (first.x, first.y, first.regions) == (again.x, again.y, again.regions)
    few = store.views.map(limit=30)
    assert (len(few.memory_ids), few.total) == (30, 120)
    facts = store.views.map(kind="fact")
    assert (facts.total, facts.kinds) == (60, ("fact",))
    with pytest.raises(InvalidInput, match="limit"):
        store.views.map(limit=20_001)


def test_an_empty_space_has_an_empty_map(store: MemoryStore) -> None:
    drawn = store.views.map(space="nothing")
    assert drawn.memory_ids == drawn.regions == ()
    assert drawn.total == 0
