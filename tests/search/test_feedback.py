"""Feedback: what helped with a question helps with questions like it, within fixed bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.model.feedback import (
    AskedQuestion,
    Feedback,
    KeptOutcome,
    read_feedback,
    write_feedback,
)
from byheart.search.feedback import (
    LEAST_GAIN,
    MOST_GAIN,
    describe_question,
    feedback_gains,
    gain_of,
    likeness,
)
from byheart.search.ranked_rows import apply_gains, keep_order
from tests.search.made_candidates import found_by_any, make_candidates

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HALF_LIFE = 90.0
PORT = describe_question("Which port does the API use?", None)
OTHER = describe_question("Who waters the plants on Fridays?", None)


def said(outcome: KeptOutcome, question: AskedQuestion = PORT, days: float = 0) -> Feedback:
    return Feedback(outcome, NOW - timedelta(days=days), question)


def gain(*entries: Feedback, question: AskedQuestion = PORT) -> float:
    return gain_of(entries, question, NOW, HALF_LIFE)


def test_used_moves_up_and_wrong_and_ignored_move_down() -> None:
    assert gain() == 1.0
    assert 1 < gain(said("echoed")) < gain(said("used")) < MOST_GAIN
    assert 1 > gain(said("ignored")) > gain(said("wrong")) > LEAST_GAIN


def test_feedback_does_not_count_for_another_question() -> None:
    assert gain(said("used"), question=OTHER) == 1.0
    assert gain(said("wrong"), question=OTHER) == 1.0


def test_feedback_counts_half_after_each_half_life() -> None:
    fresh = np.arctanh(np.log(gain(said("used"))) / np.log(MOST_GAIN))
    for halved in (1, 2, 5):
        later = gain(said("used", days=halved * HALF_LIFE))
        assert np.arctanh(np.log(later) / np.log(MOST_GAIN)) == pytest.approx(fresh / 2**halved)
    assert gain(said("used", days=-3)) == gain(said("used")), "a clock may have been wrong"


outcomes = st.lists(st.sampled_from(["used", "ignored", "wrong", "echoed"]), max_size=40)


@given(outcomes)
def test_no_feedback_leaves_the_bounds(given_outcomes: list[KeptOutcome]) -> None:
    assert LEAST_GAIN <= gain(*map(said, given_outcomes)) <= MOST_GAIN


def test_questions_are_alike_by_their_words_or_by_their_vectors() -> None:
    chance = np.random.default_rng(3)
    vector = chance.normal(size=384)
    near, far = vector + 0.3 * chance.normal(size=384), chance.normal(size=384)
    asked = describe_question("Which port does the API use?", vector)
    assert likeness(PORT, describe_question("the API uses which port", None)) == 1.0
    paraphrase = describe_question("On what number is our interface reached?", near)
    assert likeness(asked, paraphrase) > 0.8
    stranger = describe_question("On what number is our interface reached?", far)
    assert likeness(asked, stranger) < 0.3
    longer = describe_question("On what number is our interface reached?", np.tile(near, 2))
    assert likeness(asked, longer) < 0.3, "vectors of two models are not compared"


def test_what_a_memory_keeps_can_be_read_again() -> None:
    asked = describe_question("Wo läuft der Server? 服务器", np.array([0.1, -0.2, 0.3]))
    entries = (said("used", asked), said("echoed", describe_question("?!", None), 2))
    text = write_feedback(entries)
    assert read_feedback(text) == entries
    assert "Wo läuft" not in (text or ""), "the question itself is not kept"
    assert write_feedback(()) is None
    assert read_feedback(None) == ()


def test_rows_are_ordered_again_by_the_factors_and_explain_them() -> None:
    found = make_candidates({1: 8.0, 2: 7.0, 3: 1.0})
    plain = keep_order(found, found_by_any(found), "fts")
    kept = {1: write_feedback([said("used")]) or "", 2: write_feedback([said("used")]) or ""}
    gains = feedback_gains(kept, 3, PORT, NOW, HALF_LIFE)
    moved = list(apply_gains(plain, gains))
    assert [each.chunk_no for each in moved] == [2, 1, 3]
    assert [each.score for each in moved] == pytest.approx(
        [7 * moved[0].feedback, 8.0, moved[0].feedback], abs=1e-6
    )
    assert moved[0].feedback == pytest.approx(moved[2].feedback, abs=1e-6)
    assert moved[0].feedback > 1 == moved[1].feedback


def test_feedback_on_other_questions_leaves_the_order_as_it_is() -> None:
    found = make_candidates({1: 8.0, 2: 7.0})
    plain = keep_order(found, found_by_any(found), "fts")
    kept = {0: write_feedback([said("wrong", OTHER)]) or ""}
    assert apply_gains(plain, feedback_gains(kept, 2, PORT, NOW, HALF_LIFE)) is plain


def test_negative_feedback_moves_no_row_off_its_page() -> None:
    found = make_candidates({number: 30.0 - number for number in range(1, 26)})
    plain = keep_order(found, found_by_any(found), "fts")
    gains = np.ones(25)
    gains[[0, 4, 11]] = 0.1
    moved = list(apply_gains(plain, gains))
    numbers = [each.chunk_no for each in moved]
    assert numbers[:10] == [2, 3, 4, 6, 7, 8, 9, 1, 5, 10]
    assert numbers[10:20] == [11, *range(13, 20), 12, 20]
    assert numbers[20:] == [*range(21, 26)]
    assert [each.score for each in moved] == sorted((each.score for each in moved), reverse=True)
    assert moved[7].feedback == pytest.approx(20 / 29)
