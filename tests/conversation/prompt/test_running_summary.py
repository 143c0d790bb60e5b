"""The summary that is extracted from the turns of a session."""

from __future__ import annotations

from byheart.contracts import SaidTurn
from byheart.conversation.prompt.running_summary import extract_summary
from byheart.store import MemoryStore

DECIDED = "We decided to keep the retry limit at three because the provider blocks us after four."


def test_a_decision_after_the_first_sentence_is_kept(store: MemoryStore) -> None:
    store.log("s1", "user", f"The port is 8080. {DECIDED}")
    assert store.sessions.summarize("s1").content == f"- user: The port is 8080. {DECIDED}"


def test_open_points_and_numbers_are_kept_and_chatter_is_not() -> None:
    text = "We met today. It was sunny outside. The budget is 1,200 euros. Who tells Anna?"
    line = extract_summary([SaidTurn("user", "We met today.", text)])
    assert line == "- user: We met today. The budget is 1,200 euros. Who tells Anna?"


def test_what_was_told_before_is_not_told_again() -> None:
    turns = [
        SaidTurn("user", "The limit is 3.", "The limit is 3."),
        SaidTurn("assistant", "Noted, thanks.", "Noted, thanks. The limit is 3."),
    ]
    assert extract_summary(turns) == "- user: The limit is 3.\n- assistant: Noted, thanks."


def test_a_turn_with_many_numbers_stays_short() -> None:
    text = "Start. " + " ".join(f"Step {number} takes {number} minutes." for number in range(50))
    assert len(extract_summary([SaidTurn("user", "Start.", text)]).split(".")) <= 6
