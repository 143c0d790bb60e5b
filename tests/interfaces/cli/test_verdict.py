"""What the terminal says about hits that may be no answer."""

from __future__ import annotations

import pytest

from byheart.interfaces.cli.verdict import MOST_NEAREST, is_doubtful
from byheart.model.answers import LEAST_RIGHT, RELATED_FROM
from byheart.search.verdict import combine, estimate_right
from tests.interfaces.cli.conftest import Run


def test_unrelated_hits_are_offered_as_the_nearest_ones(run: Run, report: str) -> None:
    shown = run("search", "how do penguins survive antarctic winters").out
    first, *rest = shown.splitlines()
    assert first == "nothing here seems to answer this"
    assert not rest or rest[0] == "nearest, probably unrelated:"
    assert "score" not in shown
    assert len(rest) <= 1 + 2 * MOST_NEAREST
    recalled = run("recall", "how do penguins breed on ice").out.splitlines()
    assert recalled[:2] == [first, "nearest, probably unrelated:"]
    assert len(recalled) <= 2 + 2 * MOST_NEAREST
    explained = run("recall", "how do penguins breed on ice", "--explain").out
    assert "importance" in explained


def test_a_probable_answer_is_shown_without_scores_or_doubts(run: Run, report: str) -> None:
    shown = run("search", "index dropped").out
    assert shown.startswith("1.  ")
    for word in ("score", "similarity", "confidence", "answer"):
        assert word not in shown


def test_a_hit_that_is_hardly_about_the_question_is_shown_with_a_doubt(
    run: Run,
) -> None:
    for fact in (
        "The parcel for Anna is at the reception desk.",
        "The lift is repaired on Thursday.",
        "Lunch is at noon in the small kitchen.",
    ):
        run("save", fact)
    asked = ("parcel from Laila", "--mode", "fts", "--limit", "1")
    verdict = run("search", *asked, "--json").json
    assert (verdict["verdict"], verdict["confidence"] < LEAST_RIGHT) == ("weak", True)
    for verb in ("search", "recall"):
        first, second, *_ = run(verb, *asked).out.splitlines()
        assert first == "perhaps nothing here answers this"
        assert "nearest" not in second


def test_a_related_hit_is_shown_without_a_doubt_however_many_others_are_as_near() -> None:
    for chunks in (1, 3, 10, 100, 10_000):
        right = estimate_right(0.0, 0.0, chunks)
        assert not is_doubtful(combine(RELATED_FROM, right), "hybrid", "evidence")


@pytest.mark.parametrize("asked", [("--mode", "vector"), ("--fusion", "rrf")])
def test_a_confidence_without_a_lead_is_doubted_as_long_as_the_hit_is_hardly_related(
    run: Run, asked: tuple[str, ...]
) -> None:
    for fact in (
        "The parcel for Anna is at the reception desk.",
        "The lift is repaired on Thursday.",
        "Lunch is at noon in the small kitchen.",
    ):
        run("save", fact)
    answer = run("search", "Anna for piano", *asked, "--json").json
    assert answer["verdict"] == "weak"
    assert LEAST_RIGHT <= answer["confidence"] < RELATED_FROM
    assert run("search", "Anna for piano", *asked).out.startswith(
        "perhaps nothing here answers this\n"
    )


def test_explain_shows_the_grounds_of_the_verdict(run: Run, report: str) -> None:
    shown = run("search", "index dropped", "--explain").out
    assert "of the best hit: coverage" in shown
    assert "confidence" in shown
