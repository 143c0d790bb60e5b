"""Count the round trips that each verb waits for, so that they cannot grow unnoticed."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import byheart
from byheart.store import MemoryStore
from tests.postgres_stores import postgres_store_url
from tests.round_trips import counting_round_trips

# So many answers of the server does each call wait for; that to a commit is one of them.
LIMITS = {
    "a save": 4,
    "a save of the same text": 2,
    "a save beside a similar text": 5,
    "an update of a field": 5,
    "an update of the text": 5,
    "a logged turn": 4,
    "a search": 2,
    "a search by tag": 3,
    "a search for memories": 3,
    "a get": 1,
    "a recall": 5,
}
_DOCS = Path(__file__).parents[3] / "docs" / "postgres.md"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    """Give a store of which everything that happens only once has happened."""
    with (
        postgres_store_url() as url,
        byheart.open(url, embedding_provider="hash", cache_dir=tmp_path) as store,
    ):
        for number in range(3):
            store.save(f"Anna{number} likes green tea number {number} in the morning.")
            store.search("who likes tea")
            store.recall("who likes tea")
        yield store


def test_no_verb_waits_for_more_round_trips_than_allowed(store: MemoryStore) -> None:
    chance, numbers = random.Random(7), itertools.count(1)

    def text() -> str:
        return " ".join("".join(chance.choices("abcdefghijkl", k=6)) for _ in range(9)) + "."

    first = text()
    known = store.save(first).memory_id
    calls: dict[str, Callable[[], object]] = {
        "a save": lambda: store.save(text()),
        "a save of the same text": lambda: store.save(first),
        "a save beside a similar text": lambda: store.save(f"{first} {next(numbers)}"),
        "an update of a field": lambda: store.update(known, importance=next(numbers) / 100),
        "an update of the text": lambda: store.update(known, content=text()),
        "a logged turn": lambda: store.log("s", "user", text()),
        "a search": lambda: store.search(f"who drinks {next(numbers)}"),
        "a search by tag": lambda: store.search(f"who eats {next(numbers)}", tags=["food"]),
        "a search for memories": lambda: store.search(
            f"who sees {next(numbers)}", granularity="coarse"
        ),
        "a get": lambda: store.get(known),
        "a recall": lambda: store.recall(f"who walks {next(numbers)}"),
    }
    assert calls.keys() == LIMITS.keys()
    found = {}
    with counting_round_trips() as trips:
        for name, call in calls.items():
            counts = []
            # The thread that writes notes may hold a connection, so that a call waits once more.
            for _ in range(3):
                store.search("who likes tea")  # brings the index up to date
                counts.append(trips.count(call))
            found[name] = min(counts)
    assert found == LIMITS


def test_a_recall_of_memories_that_nearly_fit_reads_several_at_once(store: MemoryStore) -> None:
    chance = random.Random(3)
    for number in range(60):
        words = " ".join(chance.choices(("milk", "sugar", "water"), k=chance.randint(40, 60)))
        store.save(f"Bert{number} drinks coffee with {words}.")
    with counting_round_trips() as trips:

        def count(budget: int) -> int:
            store.search("who drinks coffee")  # brings the index up to date
            return trips.count(partial(store.recall, "who drinks coffee", max_tokens=budget))

        counts = [min(count(budget) for _ in range(3)) for budget in range(700, 900, 20)]
    # Without reading ahead, there are up to 11 of them.
    assert max(counts) <= LIMITS["a recall"] + 2


def test_the_documented_round_trips_are_the_limits() -> None:
    section = _DOCS.read_text(encoding="utf-8").split("## Round trips")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (\d+) \|", section, re.MULTILINE)
    assert {name: int(trips) for name, trips in rows} == LIMITS
