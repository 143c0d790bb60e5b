"""Verdicts in small stores: facts of everyday life, asked about in their own and in other words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.interfaces.cli.verdict import is_doubtful
from byheart.model import SearchAnswer

pytestmark = pytest.mark.model

FACTS: Any = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "quality" / "everyday_facts.json").read_text()
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[byheart.MemoryStore]:
    with byheart.open(tmp_path_factory.mktemp("quality") / "memory.db") as opened:
        yield opened


def test_a_paraphrase_is_answered_and_an_unrelated_question_is_not(
    store: byheart.MemoryStore,
) -> None:
    store.save("Deploys are frozen from Friday noon until Monday morning.", space="readme")
    store.save("The payment queue filled up: a worker lost its connection.", space="readme")
    for question in ("can I ship on Saturday?", "why did payments get stuck?"):
        assert store.search(question, space="readme").verdict == "answered"
    for question in ("recipe for apple pie", "what do penguins eat?"):
        assert store.search(question, space="readme").verdict == "none"


def name(answer: SearchAnswer) -> str:
    doubtful = answer.verdict == "weak" and is_doubtful(answer.confidence, answer.mode, "evidence")
    return "doubtful" if doubtful else answer.verdict


@pytest.mark.slow
def test_right_hits_among_ten_facts_are_called_answered_and_unrelated_ones_are_not(
    store: byheart.MemoryStore,
) -> None:
    right, wrong = [], []
    unrelated = cycle(FACTS["unrelated"])
    for theme, facts in FACTS["themes"].items():
        store.save_many({"content": fact, "space": theme} for fact, *_ in facts)
        for fact, *questions in facts:
            for question in questions:
                answer = store.search(question, space=theme, granularity="coarse", limit=1)
                if answer.results[0].content == fact:
                    right.append(name(answer))
        wrong += [name(store.search(next(unrelated), space=theme)) for _ in range(10)]
    assert right.count("answered") >= 0.9 * len(right)
    assert right.count("none") <= 0.02 * len(right)
    assert wrong.count("answered") <= 0.02 * len(wrong)
    assert wrong.count("none") >= 0.75 * len(wrong)
    # On a terminal, a doubt is shown with most of the other unrelated hits and few right ones.
    assert right.count("doubtful") <= 0.05 * len(right)
    assert wrong.count("none") + wrong.count("doubtful") >= 0.95 * len(wrong)
