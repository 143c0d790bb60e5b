"""Tests of the rule that decides which texts of a session are messages."""

from __future__ import annotations

import pytest

from byheart.model.memories import RUNNING_SUMMARY_ID, is_message


@pytest.mark.parametrize(
    ("role", "kind", "client_id", "expected"),
    [
        ("user", "message", None, True),
        ("assistant", "decision", "turn-7", True),
        (None, "fact", None, True),
        ("tool", "message", None, False),
        ("assistant", "tool_output", None, False),
        (None, "session_summary", RUNNING_SUMMARY_ID, False),
        (None, "session_summary", None, True),
    ],
)
def test_tool_outputs_and_the_running_summary_are_no_messages(
    role: str | None, kind: str, client_id: str | None, expected: bool
) -> None:
    assert is_message(role, kind, client_id) is expected
