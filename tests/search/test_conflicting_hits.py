"""A search names those of its hits that contradict each other."""

from __future__ import annotations

import pytest

from byheart.store import MemoryStore


@pytest.fixture
def ports(store: MemoryStore) -> MemoryStore:
    store.save("The API listens on port 8080.", kind="fact", created_at="2026-01-01")
    store.save("The API listens on port 8081.", kind="fact", created_at="2026-02-01")
    for other in ("Tea is at four.", "Anna waters the plants.", "The lamp in the hall is broken."):
        store.save(other, kind="fact")
    return store


def test_hits_that_contradict_each_other_are_named_with_the_newer_one_first(
    ports: MemoryStore,
) -> None:
    for granularity in ("fine", "medium", "coarse"):
        [conflict] = ports.search("which port of the API?", granularity=granularity).conflicts
        assert conflict.differs == "number"
        assert conflict.says == "The API listens on port 8081."
        assert conflict.other_says == "The API listens on port 8080."
        assert ports.get(conflict.memory_id).content == conflict.says


def test_a_superseded_hit_no_longer_contradicts(ports: MemoryStore) -> None:
    [conflict] = ports.search("which port of the API?").conflicts
    ports.supersede(conflict.other_id, conflict.memory_id)
    assert ports.search("which port of the API?").conflicts == ()


def test_statements_of_different_times_do_not_contradict_each_other(store: MemoryStore) -> None:
    store.save("The API listened on port 8079.", valid_until="2024-01-01")
    store.save("The API listened on port 8080.", valid_from="2024-01-01")
    assert len(store.search("which port of the API?").results) == 2
    assert store.search("which port of the API?").conflicts == ()
    store.save("The API listened on port 8081.", valid_from="2025-01-01")
    [conflict] = store.search("which port of the API?").conflicts
    assert (conflict.says[-5:], conflict.other_says[-5:]) == ("8081.", "8080.")


def test_an_answer_about_something_else_names_no_conflict(ports: MemoryStore) -> None:
    assert ports.search("who waters the plants?").conflicts == ()
    assert ports.search("recipe for apple pie", mode="fts").conflicts == ()


def test_two_speakers_do_not_contradict_each_other(store: MemoryStore) -> None:
    store.log("s", "anna", "I have 2 cats.")
    store.log("s", "ben", "I have 3 cats.")
    assert store.search("how many cats?").conflicts == ()
    store.log("s", "ben", "I have 4 cats.")
    [conflict] = store.search("how many cats?").conflicts
    assert (conflict.says, conflict.other_says) == ("I have 4 cats.", "I have 3 cats.")


def test_long_texts_are_not_compared(store: MemoryStore) -> None:
    for port in (8080, 8081):
        store.save(f"The API listens on port {port}. " + "More is written here. " * 40)
    assert store.search("which port of the API?").conflicts == ()
