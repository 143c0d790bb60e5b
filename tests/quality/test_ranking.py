"""Hybrid search finds what either retriever finds: a small set of our own, the real model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import byheart

pytestmark = pytest.mark.model

TEXTS = {
    "password": "Accounts are locked after five wrong passwords; an administrator can unlock them.",
    "backup": "Every night at two the database is copied to the second data centre.",
    "error": "ERR_4711 means that the licence file could not be read by the installer.",
    "error2": "ERR_4712 means that the licence file has run out.",
    "coffee": "The espresso machine on the third floor must be cleaned every Friday.",
    "pizza": "Anna does not eat meat, so order a margherita for her.",
    "sailing": "In August Tom crossed the bay in his small boat with two friends.",
    "guitar": "Maria has been learning to play the guitar since her birthday.",
    "doctor": "The physician told Peter to rest for a week because of his fever.",
    "rent": "The landlord wants the monthly payment for the flat on the first.",
    "python": "def parse_timestamp(text): return datetime.fromisoformat(text)",
    "retry": "class RetryPolicy: waits twice as long after every failed attempt",
    "train": "The 7:42 to Zurich leaves from platform nine on weekdays.",
    "garden": "Tomatoes need sun and a lot of water when they bear fruit.",
    "dog": "The puppy chewed on the shoes again while nobody was at home.",
    "school": "Pupils have no lessons on the last Monday before Christmas.",
    "meeting": "The weekly meeting of the design team was moved to Wednesday.",
    "budget": "For travel there are 12,000 euros left until the end of the year.",
    "printer": "If the printer on floor two jams, open the rear tray first.",
    "vpn": "From outside the office, connect through the tunnel to reach internal pages.",
}
# By its words, by its meaning, and by both.
QUESTIONS = {
    "What does ERR_4711 mean?": "error",
    "ERR_4712": "error2",
    "parse_timestamp": "python",
    "platform nine Zurich": "train",
    "printer jams on floor two": "printer",
    "Which of my friends is a vegetarian?": "pizza",
    "Who plays a musical instrument?": "guitar",
    "someone was ill and stayed in bed": "doctor",
    "an animal destroyed footwear": "dog",
    "How can I get into the company network from home?": "vpn",
    "exponential backoff": "retry",
    "growing vegetables": "garden",
    "How much money may we still spend on trips?": "budget",
    "On which day do the designers meet?": "meeting",
    "When is the database copied?": "backup",
    "What happens after too many failed logins?": "password",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[byheart.MemoryStore]:
    with byheart.open(tmp_path_factory.mktemp("quality") / "memory.db") as opened:
        opened.save_many(
            {"content": text, "metadata": {"name": name}} for name, text in TEXTS.items()
        )
        yield opened


def gain(store: byheart.MemoryStore, question: str, wanted: str, **how: str) -> float:
    found = store.search(question, granularity="coarse", **how).results
    names = [hit.metadata["name"] for hit in found]
    return 1 / math.log2(names.index(wanted) + 2) if wanted in names else 0.0


def mean_gain(store: byheart.MemoryStore, **how: str) -> float:
    return sum(gain(store, *each, **how) for each in QUESTIONS.items()) / len(QUESTIONS)


def test_hybrid_is_better_than_both_of_its_retrievers_and_than_rrf(
    store: byheart.MemoryStore,
) -> None:
    hybrid = mean_gain(store, mode="hybrid")
    assert hybrid > mean_gain(store, mode="fts") + 0.05
    assert hybrid > mean_gain(store, mode="vector")
    assert hybrid >= mean_gain(store, mode="hybrid", fusion="rrf")
    assert hybrid > 0.95


@pytest.mark.parametrize("question", [each for each in QUESTIONS if "ERR_" in each or "_" in each])
def test_codes_and_identifiers_come_first(store: byheart.MemoryStore, question: str) -> None:
    assert gain(store, question, QUESTIONS[question]) == 1.0


@pytest.mark.parametrize("mode", ["fts", "hybrid"])
def test_a_word_in_a_long_passage_is_found_among_many_short_facts(
    tmp_path: Path, mode: str
) -> None:
    likes = ("tea", "the password manager", "short answers", "dark mode", "jam on toast")
    passed = "\n".join(f"tests/test_module_{n}.py passed in 0.{n:02d}s" for n in range(60))
    log = f"```\n{passed}\nERROR quokka password marmalade not accepted\n```\n"
    with byheart.open(tmp_path / "memory.db") as store:
        store.save_many({"content": f"Person {n} likes {likes[n % 5]}."} for n in range(100))
        saved = store.save(log).memory_id
        for query in ("marmalade", "quokka password"):
            assert store.search(query, mode=mode).results[0].memory_id == saved
