"""`hook` as an agent calls it: whatever happens, it exits with 0 and says nothing wrong."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest

import byheart
from tests.forked_program import start_program, start_script
from tests.interfaces.cli.conftest import Run
from tests.waiting import PATIENCE_SECONDS


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
    assert [turn.content for turn in library.sessions.transcript("s1").turns] == [
        "where is the deploy key?"
    ]


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


OUTPUT = {"tool_name": "Bash", "tool_response": "an output to keep", "tool_use_id": "t1"}


def test_each_event_has_the_time_that_its_own_setting_gives_it(
    process: Run, home: Path, library: byheart.MemoryStore
) -> None:
    library.save("The deploy key of the shop is in the vault")
    asked = event(prompt="where is the deploy key?", session_id="s2")
    no_waiting = {"BYHEART_HOOK_TIMEOUT_SECONDS": "0"}
    process("hook", "PostToolUse", stdin=event(**OUTPUT), **no_waiting)
    assert [turn.content for turn in library.sessions.transcript("s1").turns] == [
        "an output to keep"
    ]
    assert process("hook", "UserPromptSubmit", stdin=asked, **no_waiting).out == ""
    no_capture = {"BYHEART_HOOK_CAPTURE_SECONDS": "0"}
    process("hook", "PostToolUse", stdin=event(**OUTPUT, session_id="s3"), **no_capture)
    assert library.sessions.transcript("s3").total == 0
    assert "in the vault" in process("hook", "UserPromptSubmit", stdin=asked, **no_capture).out


def test_an_event_that_never_comes_is_not_waited_for(home: Path) -> None:
    pipe = subprocess.PIPE
    limits = {"BYHEART_HOOK_CAPTURE_SECONDS": "0.3"}
    running = start_program(
        "hook", "Stop", stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **limits}
    )
    assert running.stdin is not None
    running.stdin.write(b'{"session_id": ')
    running.stdin.flush()
    code = running.wait(30)
    out, err = running.communicate()
    assert (code, out, err) == (0, b"", b"")
    assert "no event came within 0.3 s" in journal(home)


# Stands for any library whose loading takes for ever and lets nobody else have a turn.
STUCK = """
import ctypes, sys

class Stuck:
    def find_spec(self, name, path=None, target=None):
        if name == "byheart.interfaces.hooks.captures":
            ctypes.PyDLL(None).sleep(3600)

sys.modules.pop("byheart.interfaces.hooks.captures", None)
sys.meta_path.insert(0, Stuck())
from byheart.interfaces.cli import main
main()
"""


def test_what_cannot_be_interrupted_is_ended_from_outside_and_the_exit_code_is_0(
    home: Path,
) -> None:
    pipe = subprocess.PIPE
    limits = {"BYHEART_HOOK_CAPTURE_SECONDS": "0.5"}
    running = start_script(
        *(STUCK, "hook", "PostToolUse"),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, **limits},
    )
    out, err = running.communicate(event(**OUTPUT), timeout=PATIENCE_SECONDS)
    assert (running.returncode, out, err) == (0, b"", b"")
    assert "stopped from outside, not done within 0.5 s" in journal(home)


def test_an_event_without_a_name_is_known_by_what_it_says_of_itself(
    process: Run, library: byheart.MemoryStore
) -> None:
    ran = process("hook", stdin=event(**OUTPUT, hook_event_name="PostToolUse"))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert library.sessions.transcript("s1").total == 1


def test_a_person_is_told_what_it_is_for(run: Run, terminal: Run) -> None:
    assert "SessionStart" in run("hook", "--help").out
    shown = terminal("hook", "Stop")
    assert shown.code == 2
    assert "this is for agents" in shown.out


def test_a_prompt_is_not_lost_when_the_time_is_up(
    process: Run, home: Path, library: byheart.MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_HOOK_TIMEOUT_SECONDS", "25")
    monkeypatch.setenv("BYHEART_BUSY_TIMEOUT_SECONDS", "0.2")
    holder = apsw.Connection(str(library.location))
    holder.execute("BEGIN IMMEDIATE")  # the prompt cannot be stored while this lasts
    ran = process("hook", "UserPromptSubmit", stdin=event(prompt="what is never lost?"))
    assert (ran.code, ran.out) == (0, "")
    holder.execute("ROLLBACK")
    [spooled] = (home / "state" / "byheart" / "spool").iterdir()
    assert "what is never lost?" in spooled.read_text()
    process("hook", "Stop", stdin=event())
    turns = library.sessions.transcript("s1").turns
    assert [each.content for each in turns] == ["what is never lost?"]
    assert not spooled.exists()
