"""Attempts: nobody waits longer than until the deadline, and what fails is only written down."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from byheart.interfaces.hooks import journal
from byheart.interfaces.hooks.attempts import Answer, Deadline, attempt, read_within


@pytest.fixture(autouse=True)
def _journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "journal_path", lambda: tmp_path / "hooks.log")


def test_the_first_answer_counts() -> None:
    answer = Answer()
    ended = attempt("E", Deadline(60), answer, lambda: answer.say("a"), lambda: answer.say("b"))
    assert (ended, answer.text) == (True, "a")


def test_while_the_first_attempt_takes_long_the_other_answers() -> None:
    answer, never = Answer(), threading.Event()

    def quicker() -> None:
        answer.say("b")
        never.set()

    def slower() -> None:
        never.wait(60)
        answer.say("a")

    assert attempt("E", Deadline(60), answer, slower, quicker, head_start=0)
    assert answer.text == "b"


def test_what_fails_gives_way_to_the_other_and_is_written_down(tmp_path: Path) -> None:
    answer = Answer()

    def fail() -> None:
        raise ValueError("of\ntwo lines")

    assert attempt("E", Deadline(60), answer, fail, lambda: answer.say("b"))
    assert answer.text == "b"
    [line] = (tmp_path / "hooks.log").read_text().splitlines()
    assert line.endswith("E ValueError: of two lines")
    assert attempt("E", Deadline(60), Answer(), fail)


def test_what_fails_twice_alike_is_written_down_once(tmp_path: Path) -> None:
    def fail(why: str) -> None:
        raise ValueError(why)

    for first, second in (("a", "a"), ("b", "c")):
        attempt("E", Deadline(60), Answer(), partial(fail, first), partial(fail, second))
    lines = (tmp_path / "hooks.log").read_text().splitlines()
    assert [line[-1] for line in lines] == ["a", "b", "c"]


def test_a_deadline_that_has_passed_leaves_no_time() -> None:
    answer, never = Answer(), threading.Event()
    assert not attempt("E", Deadline(-1), answer, lambda: never.wait(60) and None)
    never.set()
    assert answer.text is None


def test_what_never_comes_is_not_waited_for() -> None:
    never = threading.Event()
    assert read_within(Deadline(0.01), lambda: b"late" if never.wait(60) else b"") is None
    never.set()
    assert read_within(Deadline(60), lambda: b"{}") == b"{}"


def test_the_journal_does_not_grow_for_ever_and_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hooks.log"
    path.write_text("x" * 1_000_001)
    journal.note("E", "new")
    assert path.read_text().endswith("E new\n")
    assert len(path.read_text()) < 100
    assert path.with_suffix(".log.1").exists()
    monkeypatch.setattr(journal, "journal_path", lambda: tmp_path / "hooks.log" / "x" / "y")
    journal.note("E", "nowhere to write")
    assert path.read_text().endswith("E new\n")
