"""`byheart save --jsonl`: many texts, kept batch by batch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import byheart
from tests.forked_program import start_program
from tests.interfaces.cli.conftest import Run
from tests.waiting import PATIENCE_SECONDS


def write_lines(path: Path, *items: Any) -> None:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))


def test_each_line_is_a_memory(run: Run, home: Path, library: byheart.MemoryStore) -> None:
    write_lines(home / "facts.jsonl", {"content": "one", "kind": "fact"}, {"content": "two"})
    assert run("save", "--jsonl", "facts.jsonl").out == "saved 2 memories\n"
    assert {each.content: each.kind for each in library.list().memories} == {
        "one": "fact",
        "two": "note",
    }


def test_lines_can_come_from_stdin_with_blank_ones_and_a_byte_order_mark_among_them(
    run: Run, library: byheart.MemoryStore
) -> None:
    ran = run("save", "--jsonl", "-", stdin='\ufeff{"content": "one"}\n\n{"content": "two"}')
    assert ran.out == "saved 2 memories\n"
    assert library.list().total == 2


def test_flags_hold_for_lines_that_do_not_say_otherwise(
    run: Run, home: Path, library: byheart.MemoryStore
) -> None:
    write_lines(home / "f.jsonl", {"content": "one", "kind": "fact"}, {"content": "two"})
    run("save", "--jsonl", "f.jsonl", "--kind", "report", "--session-id", "s1", "--tags", "a,b")
    found = {each.content: each for each in library.list().memories}
    assert (found["one"].kind, found["two"].kind) == ("fact", "report")
    assert found["one"].tags == found["two"].tags == ("a", "b")


def test_as_json_each_line_has_its_result(run: Run, home: Path) -> None:
    write_lines(home / "f.jsonl", {"content": "one"}, {"content": "one"})
    answer = run("save", "--jsonl", "f.jsonl", "--json").json
    assert [each["memory_id"] for each in answer] == [answer[0]["memory_id"]] * 2


def test_running_it_again_does_nothing_twice(
    run: Run, home: Path, library: byheart.MemoryStore
) -> None:
    write_lines(home / "f.jsonl", {"content": "one"}, {"content": "two"})
    run("save", "--jsonl", "f.jsonl")
    assert run("save", "--jsonl", "f.jsonl").out == "saved 0 memories, 2 were there already\n"
    assert library.list().total == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{not json}", "f.jsonl line 3 is not JSON"),
        (b'{"content": ', "f.jsonl line 3 is not JSON: Expecting value at its end, column 12"),
        (b'"text"', "f.jsonl line 3 is not an object"),
        (b'{"content": "caf\xe9"}', "f.jsonl line 3 is not UTF-8 text"),
        (b'{"content": " "}', "f.jsonl line 3: content is blank"),
        (b'{"content": "x", "importance": 11}', "f.jsonl line 3: importance 11"),
        (b'{"content": "x", "knd": "fact"}', "f.jsonl line 3: unknown field 'knd'"),
        (b'{"kind": "fact"}', "f.jsonl line 3: content is missing"),
    ],
)
def test_a_bad_line_is_named_and_what_came_before_it_is_kept(
    run: Run, home: Path, library: byheart.MemoryStore, line: bytes, reason: str
) -> None:
    (home / "f.jsonl").write_bytes(b'{"content": "one"}\n\n' + line + b'\n{"content": "four"}\n')
    ran = run("save", "--jsonl", "f.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {reason}")
    assert "1 memory before it kept: correct it, then run the same command again" in ran.err
    assert [each.content for each in library.list().memories] == ["one"]


def test_a_missing_file_is_named(run: Run) -> None:
    ran = run("save", "--jsonl", "missing.jsonl")
    assert ran.code == 2
    assert "missing.jsonl cannot be read" in ran.err


def test_ctrl_c_keeps_what_is_saved_and_running_it_again_goes_on(
    run: Run, home: Path, library: byheart.MemoryStore
) -> None:
    lines = [json.dumps({"content": f"fact number {number}"}) + "\n" for number in range(600)]
    running = start_program(
        *("save", "--jsonl", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    assert running.stdin is not None
    running.stdin.write("".join(lines).encode())
    running.stdin.flush()
    # It keeps the full batches and waits for the rest of the last one, which never comes.
    # Quick batches grow, so the number of full ones depends on the machine.
    deadline, before, kept = time.monotonic() + 20, -1, 0
    while (not kept or kept != before) and time.monotonic() < deadline:
        time.sleep(1)
        before, kept = kept, library.status().index.memories
    assert 64 <= kept < 600
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert (running.returncode, out) == (130, b"")
    assert err.decode() == (
        f"\ninterrupted: {kept} memories kept; run the same command again to go on\n"
    )
    assert library.list().total == kept
    ran = run("save", "--jsonl", "-", stdin="".join(lines))
    assert ran.out == f"saved {600 - kept} memories, {kept} were there already\n"
    assert library.list().total == 600
    assert all(finding.ok for finding in library.admin.doctor())


@pytest.mark.parametrize("delay_seconds", [0, 0.05, 0.4])
def test_ctrl_c_at_any_moment_ends_quietly_with_a_sound_store(
    home: Path, delay_seconds: float
) -> None:
    with (home / "f.jsonl").open("w") as file:
        for number in range(20_000):
            file.write(json.dumps({"content": f"fact number {number} " * 20}) + "\n")
    running = start_program(
        *("save", "--jsonl", "f.jsonl", "--db", "new.db"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    deadline = time.monotonic() + 20
    while not (home / "new.db").exists() and time.monotonic() < deadline:
        time.sleep(0.01)  # Python itself must be up to answer a signal
    time.sleep(delay_seconds)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert (running.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    with byheart.open("new.db") as store:
        assert all(finding.ok for finding in store.admin.doctor())


def test_on_a_terminal_a_bar_shows_the_rate_and_the_time_left(terminal: Run, home: Path) -> None:
    write_lines(home / "f.jsonl", *({"content": f"fact {number}"} for number in range(600)))
    ran = terminal("save", "--jsonl", "f.jsonl", COLUMNS="100")
    assert ran.code == 0
    assert "memories" in ran.out
    assert "chunks/s" in ran.out
    assert " left" in ran.out
    assert "saved 600 memories" in ran.out
