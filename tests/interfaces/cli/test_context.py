"""`byheart context`, `pin` and `unpin`: only the block goes to stdout, the rest is told."""

from __future__ import annotations

from typing import Any

import click
import pytest

from byheart.conversation.prompt.delimiting import PREAMBLE
from byheart.interfaces.cli.commands import byheart as program
from byheart.model import to_wire
from byheart.model.filters import ContextFilters
from byheart.store import MemoryStore
from tests.interfaces.cli.conftest import Run

FLAGS: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["deploy", "key"], {"query": "deploy key"}),
    (["--max-tokens", "120"], {"max_tokens": 120}),
    (["--recent", "1", "--top-k", "1"], {"recent": 1, "top_k": 1}),
    (["--mode", "fts"], {"mode": "fts"}),
    (["--no-include-global"], {"include_global": False}),
    (["--kind", "fact", "--tags", "a"], {"kind": ["fact"], "tags": ["a"]}),
    (["--as-of", "2020-01-01"], {"as_of": "2020-01-01"}),
]


@pytest.fixture
def talk(library: MemoryStore) -> MemoryStore:
    library.save("The deploy key is kept in the vault.", kind="fact", tags=["a"])
    library.save("The deploy key is renewed in spring.", kind="note")
    library.log("s1", "user", "Hello, let us deploy the service.")
    library.log("s1", "user", "Where is the deploy key?")
    return library


def lasting(wire: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wire.items() if name not in ("elapsed_ms", "receipt_id")}


@pytest.mark.parametrize(("flags", "parameters"), FLAGS, ids=lambda each: " ".join(each))
def test_every_flag_is_the_parameter_of_its_name(
    run: Run, talk: MemoryStore, flags: list[str], parameters: dict[str, Any]
) -> None:
    ran = run("context", "s1", *flags, "--json")
    assert ran.code == 0
    assert lasting(ran.json) == lasting(to_wire(talk.context("s1", **parameters)))


def test_every_filter_has_a_flag() -> None:
    command = program.get_command(click.Context(program), "context")
    assert command is not None
    names = {param.name for param in command.params}
    assert names >= {*ContextFilters.__annotations__, "include_global"}


def test_a_pipe_gets_the_block_and_nothing_else(process: Run, talk: MemoryStore) -> None:
    ran = process("context", "s1")
    assert ran.out == talk.context("s1").text
    assert ran.err == ""


def test_a_terminal_gets_the_receipt_as_well(terminal: Run, talk: MemoryStore) -> None:
    shown = terminal("context", "s1", "--max-tokens", "100").out
    assert "Where is the deploy key?" in shown
    assert "100 tokens (estimate); stable part" in shown
    assert "did not fit: allow more with --max-tokens N" in shown


def test_of_a_session_that_nobody_knows_that_is_said(run: Run, talk: MemoryStore) -> None:
    ran = run("context", "s9", "deploy key", "--no-include-global")
    assert (ran.code, ran.out) == (0, PREAMBLE)
    assert ran.err == "nothing is known of this session yet: log turns, or save memories\n"


def test_who_asks_nothing_of_a_session_without_turns_is_told_so(
    run: Run, library: MemoryStore
) -> None:
    library.save("The deploy key is in the vault.", session_id="s1")
    ran = run("context", "s1")
    assert (ran.code, ran.out) == (0, PREAMBLE)
    assert ran.err == (
        "nothing was asked, and the session 's1' has no turns, summary or pins yet: "
        "give a QUERY behind it, or log turns\n"
    )


@pytest.mark.parametrize("named", [["--session-id", "s1"], ["--session-id=s1"]])
def test_the_session_may_be_given_by_name(run: Run, talk: MemoryStore, named: list[str]) -> None:
    assert run("context", *named, "--preview").out == run("context", "s1", "--preview").out


def test_a_name_without_its_value_is_refused(run: Run) -> None:
    assert run("context", "--session-id").code == 2


def test_words_after_two_dashes_are_no_names(run: Run, talk: MemoryStore) -> None:
    asked = run("context", "s1", "--json", "--", "--session-id", "s2")
    assert asked.json["query"] == "--session-id s2"


def test_a_budget_that_is_none_is_refused(run: Run) -> None:
    ran = run("context", "s1", "--max-tokens", "0")
    assert ran.code == 2
    assert "max_tokens 0 is not allowed" in ran.err


def test_what_is_pinned_stands_in_the_context(run: Run, library: MemoryStore) -> None:
    saved = library.save("Anna prefers short answers.").memory_id
    assert run("pin", saved).out == f"{saved}\n"
    assert "<pinned " in run("context", "s1").out
    assert run("unpin", saved, "--json").json["pinned_at"] is None
    assert "<pinned " not in run("context", "s1").out
    assert run("pin", "mem_none").code == 1
