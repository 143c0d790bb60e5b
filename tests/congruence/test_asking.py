"""The PostgreSQL store answers every question as the SQLite store does."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest

from byheart.model import FUSIONS, GRANULARITIES, MODES
from tests.congruence.conftest import EVERYTHING, Filled
from tests.congruence.made_store import SESSIONS, SPACES, make_questions
from tests.storage.postgres.generated import make_query

_QUESTIONS = 300
_PARTS = 6
_ALL = 1000


def _sample(cells: list[Any], at: int, most: int = _ALL) -> list[Any]:
    """Give each question one cell, so that together they ask for every cell; or many cells."""
    count = min(most, len(cells)) if EVERYTHING else 1
    return [cells[(at * count + each) % len(cells)] for each in range(count)]


def _mixed(*values: Any) -> list[Any]:
    """Combine all values, in an order in which neighbours differ in most of them."""
    cells = list(itertools.product(*values))
    Random(5).shuffle(cells)
    return cells


def _space(at: int) -> str:
    return SPACES[at % len(SPACES)]


@pytest.mark.parametrize("part", range(_PARTS))
def test_searches_find_the_same(filled: Filled, part: int) -> None:
    """Every question, in every mode and granularity, with every filter."""
    twins = filled.twins
    cells = _mixed(MODES, GRANULARITIES, filled.filters)
    questions = make_questions(_QUESTIONS)
    for at in range(part, len(questions), _PARTS):
        for mode, granularity, filters in _sample(cells, at):
            twins.ask(
                "search",
                questions[at],
                mode=mode,
                granularity=granularity,
                explain=at % 2 == 0,
                limit=(10, 3, 50)[at % 3],
                offset=(0, 0, 0, 4)[at % 4],
                fusion=FUSIONS[at % 5 == 0],
                space=_space(at),
                **filters,
            )


def test_raw_queries_find_the_same(filled: Filled) -> None:
    twins, chance = filled.twins, Random(7)
    count = _QUESTIONS if EVERYTHING else _QUESTIONS // 2
    cells = _mixed(GRANULARITIES, filled.filters)
    given = ("harbour*", '"the harbour"', "NEAR(tax deploy, 6)", "title: garden", "a AND (", "長期")
    queries = [*given, *(make_query(chance) for _ in range(count - len(given)))]
    for at, query in enumerate(queries):
        for granularity, filters in _sample(cells, at):
            twins.ask(
                "search",
                query,
                raw=True,
                granularity=granularity,
                space=_space(at),
                **filters,
            )


def test_recalls_are_the_same_and_count_the_same_accesses(filled: Filled) -> None:
    twins = filled.twins
    cells = _mixed(MODES, filled.filters)
    for at, question in enumerate(make_questions(_QUESTIONS)[:: 1 if EVERYTHING else 4]):
        for mode, filters in _sample(cells, at, 6):
            twins.ask(
                "recall",
                question,
                mode=mode,
                max_tokens=(1000, 200, 30)[at % 3],
                explain=at % 2 == 0,
                space=_space(at),
                **filters,
            )


def test_contexts_and_reminders_are_the_same(filled: Filled) -> None:
    twins = filled.twins
    filters = [each for each in filled.filters if "session_id" not in each]
    cells = _mixed(MODES, [each for each in filters if "include_global" not in each])
    for at, question in enumerate(make_questions(_QUESTIONS)[:: 1 if EVERYTHING else 6]):
        session = SESSIONS[at % 3]
        for mode, given in _sample(cells, at, 6):
            twins.ask(
                "context",
                session,
                (question, None)[at % 5 == 0],
                mode=mode,
                max_tokens=(2000, 500)[at % 2],
                include_task=("T1", None)[at % 2],
                space=_space(at // 3),
                **given,
            )
            twins.ask("remind", session, question, mode=mode, space=_space(at // 3), **given)
