"""`byheart log`, `transcript` and `summarize`: the library's answers, pleasant to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from byheart.model import to_wire
from byheart.store import MemoryStore
from tests.interfaces.cli.conftest import Run

FLAGS: list[tuple[list[str], dict[str, Any]]] = [
    (["--kind", "tool_output"], {"kind": "tool_output"}),
    (["--client-id", "a1"], {"client_id": "a1"}),
    (["--agent-id", "coder", "--title", "pytest"], {"agent_id": "coder", "title": "pytest"}),
    (["--path", "a.md", "--metadata", '{"exit": 1}'], {"path": "a.md", "metadata": {"exit": 1}}),
]


@pytest.mark.parametrize(("flags", "expected"), FLAGS, ids=lambda each: " ".join(each))
def test_every_flag_of_log_is_the_parameter_of_its_name(
    run: Run, library: MemoryStore, flags: list[str], expected: dict[str, Any]
) -> None:
    ran = run("log", "s1", "tool", "Everything", "went", "well.", *flags, "--json")
    assert ran.json["status"] == "created"
    [turn] = library.sessions.transcript("s1").turns
    assert turn.content == "Everything went well."
    assert expected.items() <= to_wire(turn).items()


def test_other_flags_of_log_reach_the_memory(run: Run, library: MemoryStore) -> None:
    flags = ["--session-iter", "v2", "--task-code", "T-7", "--tags", "a,b", "--importance", "7"]
    ran = run("log", "s1", "user", "Hello there, friend.", *flags, "--created-at", "2024-05-01")
    memory = library.get(ran.out.strip())
    assert (memory.session_iter, memory.task_code, memory.tags) == (2, "T-7", ("a", "b"))
    assert memory.importance == 7
    assert memory.created_at.year == 2024


def test_a_pipe_is_logged_as_it_is(run: Run, library: MemoryStore) -> None:
    run("log", "s1", "tool", stdin="line one\r\n\tline two\n")
    assert library.sessions.transcript("s1").turns[0].content == "line one\r\n\tline two\n"


def test_a_pipe_that_brings_nothing_is_refused(run: Run, library: MemoryStore) -> None:
    ran = run("log", "s1", "tool", stdin="")
    assert (ran.code, ran.out) == (2, "")
    assert "nothing came from stdin" in ran.err
    assert 'hint: give the text: byheart log s1 user TEXT; "" logs a turn without' in ran.err
    assert library.sessions.transcript("s1").total == 0


@pytest.mark.parametrize("text", ["", "-"])
def test_a_turn_without_words_is_logged_for_whoever_says_so(
    run: Run, library: MemoryStore, text: str
) -> None:
    assert run("log", "s1", "tool", text, stdin="").code == 0
    assert [turn.content for turn in library.sessions.transcript("s1").turns] == [""]


def test_lines_are_logged_in_order_and_a_bad_one_is_named(
    run: Run, home: Path, library: MemoryStore
) -> None:
    lines = [
        {"role": "user", "content": "First of all, hello."},
        {"role": "assistant", "content": "Hello, and welcome back.", "session_id": "s2"},
    ]
    (home / "turns.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ran = run("log", "s1", "--jsonl", "turns.jsonl")
    assert (ran.code, ran.out) == (0, "logged 2 turns\n")
    assert [library.sessions.transcript(session).total for session in ("s1", "s2")] == [1, 1]
    bad = run("log", "s1", "--jsonl", "-", stdin='{"role": "user", "content": "x"}\n{"role": 1}')
    assert bad.code == 2
    assert "stdin line 2: " in bad.err
    assert "1 turn before it kept" in bad.err
    assert "a turn without a client_id, given again, is logged twice" in bad.err


def test_the_line_whose_client_id_has_another_text_is_named(run: Run, library: MemoryStore) -> None:
    library.log("s1", "user", "Where is the deploy key?", client_id="a")
    lines = [
        '{"role": "user", "content": "A turn before it.", "client_id": "b"}',
        "",
        '{"role": "user", "content": "Another text.", "client_id": "a"}',
        '{"role": "user", "content": "A turn after it.", "client_id": "c"}',
    ]
    ran = run("log", "s1", "--jsonl", "-", stdin="\n".join(lines))
    assert ran.code != 0
    assert "stdin line 3: client_id 'a' was logged before with another text" in ran.err
    assert "1 turn before it kept" in ran.err
    assert [turn.client_id for turn in library.sessions.transcript("s1").turns] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["s1"], "say in which session, and who speaks"),
        ([], "say in which session, and who speaks"),
        (["s1", "The User", "hi"], "role 'The User' is not a lower-case slug"),
        (["s1", "user", "hi", "--jsonl", "x"], "text and --jsonl were given together"),
        (["s1", "user", "hi", "--created-at", "soon"], "created_at 'soon' is not a date"),
        (["s1", "user", "hi", "--metadata", "{"], "--metadata is not JSON"),
    ],
)
def test_what_cannot_be_logged_is_refused(run: Run, arguments: list[str], message: str) -> None:
    ran = run("log", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_client_id_of_another_text_is_refused(run: Run) -> None:
    run("log", "s1", "user", "One thing to say.", "--client-id", "a")
    ran = run("log", "s1", "user", "Another thing to say.", "--client-id", "a")
    assert ran.code == 1
    assert "was logged before with another text" in ran.err
    assert "byheart update" in ran.err


def test_a_transcript_is_readable_and_says_how_to_go_on(run: Run) -> None:
    for number in range(3):
        run("log", "s1", "user", f"This is message {number}.\n\nIt has two paragraphs.")
    ran = run("transcript", "s1", "--limit", "2")
    assert ran.out.startswith("user  2")
    assert "\n   This is message 1.\n\n   It has two paragraphs.\n" in ran.out
    assert "2 of 3; more: byheart transcript s1 --offset 2" in ran.err
    last = run("transcript", "s1", "--latest", "--limit", "1")
    assert "message 2" in last.out
    assert "more: byheart transcript s1 --latest --offset 1" in last.err
    assert run("transcript", "s1", "--offset", "9").out == "No more turns.\n"


def test_an_empty_transcript_says_of_what_there_is_none(run: Run, library: MemoryStore) -> None:
    library.save("A note that nobody said.", session_id="s1")
    library.log("s2", "user", "Run the tests, please.")
    for arguments, said in {
        ("s1",): "Nothing was said in s1.",
        ("s2", "--role", "nobody"): "Nothing was said in s2 by nobody.",
        ("s2", "--role", "a,b", "--kind", "file"): "Nothing of kind file was said in s2 by a or b.",
    }.items():
        ran = run("transcript", *arguments)
        assert (ran.code, ran.out) == (0, f"{said}\n")


def test_a_transcript_of_an_unknown_session_exits_with_1(run: Run) -> None:
    for arguments in (("s9",), ("s9", "--role", "user")):
        ran = run("transcript", *arguments)
        said = "There is no session s9. Those there are: byheart sessions\n"
        assert (ran.code, ran.out) == (1, said)
    ran = run("transcript", "s9", "--json")
    assert (ran.code, ran.json["total"]) == (1, 0)


@pytest.mark.parametrize(
    ("flags", "parameters"),
    [
        ([], {}),
        (["--role", "user,tool"], {"role": ["user", "tool"]}),
        (["--kind", "tool_output"], {"kind": "tool_output"}),
        (["--latest", "--limit", "1", "--offset", "1"], {"latest": True, "limit": 1, "offset": 1}),
    ],
)
def test_a_transcript_in_json_is_the_library_s(
    run: Run, library: MemoryStore, flags: list[str], parameters: dict[str, Any]
) -> None:
    library.log("s1", "user", "Run the tests, please.")
    library.log("s1", "tool", "3 passed in 2 s", kind="tool_output")
    ran = run("transcript", "s1", *flags, "--json")
    assert ran.json == to_wire(library.sessions.transcript("s1", **parameters))


def test_a_summary_is_set_and_made(run: Run, library: MemoryStore) -> None:
    assert run("summarize", "s1", "We", "met.").out == "We met.\n"
    library.log("s1", "user", "Where is the deploy key?")
    made = run("summarize", "s1", "--who", "coder", "--json").json
    assert made["content"] == "- user: Where is the deploy key?"
    assert (made["extracted"], made["turns"], made["version"]) == (True, 1, 2)
    ran = run("summarize", "s9")
    assert ran.code == 1
    assert "nothing was said in the session s9" in ran.err


def test_on_a_terminal_it_says_what_was_done(terminal: Run) -> None:
    assert "there is nothing to log" in terminal("log", "s1", "user").out
    assert "logged" in terminal("log", "s1", "user", "Where is the deploy key?").out
    assert "as given" in terminal("summarize", "s1", "We met.").out
    assert "user" in terminal("transcript", "s1").out
