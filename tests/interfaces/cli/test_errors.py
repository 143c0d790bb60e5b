"""What goes wrong ends in a message, a hint and an exit code, never in a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import byheart
from byheart.errors import ByheartError
from byheart.interfaces.cli.errors import EXIT_CODES
from tests.interfaces.cli.conftest import Run


def every_error(kind: type[ByheartError] = ByheartError) -> Iterator[type[ByheartError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from every_error(each)


def test_every_error_has_an_exit_code() -> None:
    assert {kind for kind in every_error() if kind.__module__ == "byheart.errors"} == set(
        EXIT_CODES
    )


def test_only_bad_input_is_a_usage_error() -> None:
    for kind, code in EXIT_CODES.items():
        assert code == (2 if issubclass(kind, byheart.InvalidInput) else 1)


def test_an_error_is_a_message_and_a_hint_on_stderr(run: Run) -> None:
    ran = run("get", "mem_unknown")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "error: there is no mem_unknown in this space",
        "hint: look for it with: byheart search QUERY",
    ]


@pytest.mark.parametrize("arguments", [("--json", "get", "x"), ("get", "x", "--json")])
def test_with_json_an_error_is_json_on_stderr(run: Run, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert json.loads(ran.err) == {
        "error": "NotFound",
        "message": "there is no x in this space",
        "hint": "look for it with: byheart search QUERY",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x", "--limit", "0"),
        ("search", "x", "--limit", "many"),
        ("search", "x", "--mode", "magic"),
        ("search", "x", "--min-importance", "11"),
        ("search", "x", "--created-after", "some day"),
        ("search", "x", "--kind", "Not A Slug"),
        ("search", "x", "--no-such-flag"),
        ("search", "(", "--raw"),
        ("search",),
        ("get",),
        ("expand", "no-chunk-id"),
        ("save", "text", "--importance", "11"),
        ("save", "text", "--metadata", "{"),
        ("save", "text", "--ttl-days", "1", "--expires-at", "2030-01-01"),
        ("save", "text", "--file", "x"),
        ("config", "get", "no_such_key"),
        ("config", "set", "chunk_tokens", "none"),
        ("nonsense",),
    ],
)
def test_a_bad_value_is_a_usage_error(run: Run, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert "\nhint: " in ran.err


def test_a_usage_error_is_json_too(run: Run) -> None:
    ran = run("search", "--json", "--no-such-flag")
    assert ran.code == 2
    assert json.loads(ran.err)["hint"] == "see: byheart search --help"


def test_text_after_two_dashes_is_never_taken_for_a_flag(run: Run) -> None:
    assert run("save", "--", "--json").code == 0
    ran = run("get", "--", "--json")
    assert ran.err.startswith("error: there is no --json")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("serch", "search"),
        ("svae", "save"),
        ("earch", "search"),
        ("remember", "save"),
        ("ls", "list"),
    ],
)
def test_a_mistyped_command_is_met_with_the_nearest(run: Run, typed: str, meant: str) -> None:
    ran = run(typed)
    assert ran.code == 2
    assert f"did you mean {meant}?" in ran.err


@pytest.mark.parametrize("typed", ["nope", "tea", "abcd", "what"])
def test_an_unlike_word_is_not_taken_for_a_mistyped_command(run: Run, typed: str) -> None:
    ran = run(typed)
    assert (ran.code, "did you mean" in ran.err) == (2, False)


def test_an_empty_id_is_refused_by_the_name_of_its_parameter(run: Run) -> None:
    ran = run("get", "")
    assert ran.code == 2
    assert ran.err.startswith("error: memory_id is blank\n")


def test_an_unknown_receipt_is_met_with_the_list_of_receipts(run: Run) -> None:
    ran = run("receipt", "nope")
    assert ran.code == 1
    assert "hint: see which there are with: byheart receipts\n" in ran.err


def test_upgrade_is_no_command_and_says_how_to_upgrade(run: Run) -> None:
    ran = run("upgrade")
    assert ran.code == 2
    assert "uv tool upgrade byheart" in ran.err


def test_a_mistyped_flag_is_met_with_the_nearest(run: Run) -> None:
    assert "--session-id" in run("search", "x", "--sesion-id", "s1").err


def break_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the wheel came off")

    monkeypatch.setattr("byheart.store.MemoryStore.status", fail)


def test_an_unexpected_error_is_one_line_that_says_how_to_see_more(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_the_library(monkeypatch)
    ran = run("status")
    assert (ran.code, ran.out) == (1, "")
    assert "RuntimeError: the wheel came off" in ran.err
    assert "--debug" in ran.err
    assert "Traceback" not in ran.err


def test_debug_shows_the_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    break_the_library(monkeypatch)
    assert "Traceback" in run("status", "--debug").err
    assert "Traceback" in run("--debug", "status").err


def test_the_log_level_debug_shows_the_traceback(process: Run) -> None:
    assert "Traceback" in process("get", "mem_x", BYHEART_LOG_LEVEL="debug").err


def test_a_store_that_is_no_database_is_named(run: Run, home: Path) -> None:
    (home / "memory.db").write_bytes(b"not a database at all, but long enough" * 100)
    ran = run("status")
    assert ran.code == 1
    assert "memory.db" in ran.err


def test_an_empty_file_is_not_made_a_store_by_a_command_that_only_reads(
    run: Run, home: Path
) -> None:
    (home / "empty.db").touch()
    ran = run("search", "tea", "--db", str(home / "empty.db"))
    assert ran.code == 1
    assert "there is no store at" in ran.err
    assert (home / "empty.db").read_bytes() == b""
    assert run("save", "tea", "--db", str(home / "empty.db")).code == 0


def test_an_address_without_a_backend_is_refused(run: Run) -> None:
    ran = run("--db", "mysql://host/db", "status")
    assert ran.code == 1
    assert "mysql://" in ran.err


@pytest.mark.parametrize("address", ["postgresql:", "postgres:host/db"])
def test_an_address_of_a_database_without_slashes_is_no_file(
    run: Run, home: Path, address: str
) -> None:
    ran = run("--db", address, "save", "x")
    assert ran.code != 0
    assert "has // after its first colon" in ran.err
    assert list(home.glob("postgres*")) == []


def test_a_mistyped_store_is_not_made_by_a_command_that_only_reads(run: Run, home: Path) -> None:
    ran = run("list", "--db", str(home / "mistyped.db"))
    assert ran.code == 1
    assert ran.err.splitlines() == [
        f"error: there is no store at {home / 'mistyped.db'}",
        "hint: check the path, or make one with: byheart save TEXT",
    ]
    assert not (home / "mistyped.db").exists()
