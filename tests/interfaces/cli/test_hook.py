"""`hook` as an agent calls it: whatever happens, it exits with 0 and says nothing wrong."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import apsw
import pytest

import byheart
from tests.interfaces.cli.conftest import Run


def event(**said: Any) -> bytes:
    return json.dumps({"session_id": "s1", "cwd": "/nowhere", **said}).encode()


@pytest.fixture(autouse=True)
def _patience(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a machine that is busy with other tests take its time."""
    for name in ("HOOK_TIMEOUT_SECONDS", "HOOK_CAPTURE_SECONDS"):
        monkeypatch.setenv(f"BYHEART_{name}", "25")


def journal(home: Path) -> str:
    return (home / "state" / "byheart" / "hooks.log").read_text()


def test_a_prompt_is_answered_in_the_form_of_claude_code(
    process: Run, home: Path, library: byheart.MemoryStore
) -> None:
    library.save("The deploy key of the shop is in the vault")
    ran = process("hook", "UserPromptSubmit", stdin=event(prompt="where is the deploy key?"))
    assert (ran.code, ran.err) == (0, "")
    said = ran.json["hookSpecificOutput"]
    assert said["hookEventName"] == "UserPromptSubmit"
    assert "in the vault" in said["additionalContext"]
    assert [turn.content for turn in library.transcript("s1").turns] == ["where is the deploy key?"]


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("UserPromptSubmit",), b"{not json"),
        (("UserPromptSubmit", "--such-an-option", "more"), b'{"prompt": "no session"}'),
        (("UserPromptSubmit",), event(prompt=["no", "text"])),
        (("Stop", "--db", "/dev/null/x/memory.db"), event()),
        (("SomethingNew",), event()),
        (("SessionStart", "--db"), event()),
    ],
)
def test_what_goes_wrong_goes_into_the_log_and_nowhere_else(
    process: Run, home: Path, arguments: tuple[str, ...], stdin: bytes
) -> None:
    ran = process("hook", *arguments, stdin=stdin)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert arguments[0] in journal(home)


def test_what_went_wrong_is_for_the_eyes_of_its_owner(process: Run, home: Path) -> None:
    process("hook", "Stop", stdin=b"{not json")
    written = home / "state" / "byheart" / "hooks.log"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_outputs_that_nobody_wants_do_nothing(process: Run, home: Path) -> None:
    ran = process("hook", "PostToolUse", stdin=event(tool_name="Read", tool_response="x"))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert not (home / "state").exists()


def test_a_store_that_is_held_by_another_delays_nobody(process: Run, home: Path) -> None:
    connection = apsw.Connection(str(home / "memory.db"))
    connection.execute("BEGIN IMMEDIATE")
    ran = process(
        "hook",
        "PostToolUse",
        stdin=event(tool_name="Bash", tool_response="an output", tool_use_id="t1"),
        BYHEART_HOOK_CAPTURE_SECONDS="1.5",
    )
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "PostToolUse" in journal(home)
    connection.execute("ROLLBACK")


def test_without_time_nothing_is_done_and_nothing_said(process: Run, home: Path) -> None:
    ran = process(
        "hook",
        "UserPromptSubmit",
        stdin=event(prompt="where is the deploy key?"),
        BYHEART_HOOK_TIMEOUT_SECONDS="0",
    )
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "not done within 0 s" in journal(home)


def test_a_person_is_told_what_it_is_for(run: Run, terminal: Run) -> None:
    assert "SessionStart" in run("hook", "--help").out
    shown = terminal("hook", "Stop")
    assert shown.code == 2
    assert "this is for agents" in shown.out
