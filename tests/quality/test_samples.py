"""A sample of a retrieval set can still be answered, and is the same each time."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def sets() -> dict[str, Any]:
    path = Path(__file__).parents[2] / "benchmarks" / "quality" / "sets.py"
    # Dataclasses look their module up, and the one that `runpy` makes goes when it is done.
    return runpy.run_path(str(path), run_name=__name__)


def make_set(sets: dict[str, Any], group: str | None) -> Any:
    documents = [sets["Document"](f"d{each}", None, f"text {each}", group) for each in range(20)]
    questions = [
        sets["Question"](f"q{each}", f"question {each}", group, None, {f"d{each}": 1.0})
        for each in range(10)
    ]
    return sets["RetrievalSet"]("letters", documents, questions)


def test_a_sample_holds_what_answers_its_questions_and_no_more_than_asked_for(
    sets: dict[str, Any],
) -> None:
    few = sets["sample_set"](make_set(sets, None), 8, 4)
    names = {each.name for each in few.documents}
    assert len(few.questions) == 4
    assert len(names) == 8
    assert all(set(each.gains) <= names for each in few.questions)
    assert sets["sample_set"](make_set(sets, None), 8, 4) == few


def test_what_answers_is_kept_even_if_it_is_more_than_asked_for(sets: dict[str, Any]) -> None:
    few = sets["sample_set"](make_set(sets, None), 2, 4)
    assert {each.name for each in few.documents} == {
        name for each in few.questions for name in each.gains
    }


def test_conversations_stay_whole(sets: dict[str, Any]) -> None:
    few = sets["sample_set"](make_set(sets, "talk"), 3, 2)
    assert len(few.questions) == 2
    assert len(few.documents) == 20
