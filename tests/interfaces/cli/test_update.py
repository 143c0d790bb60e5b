"""`byheart update`, `history`, `supersede` and `restore`, through the real command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run


@pytest.fixture
def anna(library: byheart.MemoryStore) -> str:
    """Save a fact about Anna, and give its id."""
    return library.save(
        "Anna prefers tea.", kind="fact", title="Drinks", tags=["people"], ttl_days=30
    ).memory_id


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        (["Anna", "prefers coffee."], "content", "Anna prefers coffee."),
        (["--kind", "self"], "kind", "self"),
        (["--title", "Beverages"], "title", "Beverages"),
        (["--summary", "Short"], "summary", "Short"),
        (["--source", "chat"], "source", "chat"),
        (["-s", "s2"], "session_id", "s2"),
        (["-a", "coder"], "agent_id", "coder"),
        (["--session-iter", "v3"], "session_iter", 3),
        (["--task-code", "T-1"], "task_code", "T-1"),
        (["--path", "a/b.md"], "path", "a/b.md"),
        (["-t", "a,b"], "tags", ("a", "b")),
        (["-e", "Anna"], "entities", ("Anna",)),
        (["-i", "8"], "importance", 8.0),
        (["--metadata", '{"a": 1}'], "metadata", {"a": 1}),
        (["--clear", "ttl-days"], "expires_at", None),
        (["--clear", "title,tags"], "title", None),
        (["--clear", "title", "--clear", "tags"], "tags", ()),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_update_changes_what_is_given(
    run: Run, library: byheart.MemoryStore, anna: str, flags: list[str], name: str, value: Any
) -> None:
    ran = run("update", anna, *flags, "--json")
    assert (ran.code, ran.err) == (0, "")
    memory = library.get(anna)
    assert getattr(memory, name) == value
    assert ran.json["status"] == "updated"
    assert ran.json["version"] == memory.version == 2
    assert set(ran.json) == set(to_wire(library.save("another")))


def test_update_takes_the_text_from_a_file_or_a_pipe(
    run: Run, library: byheart.MemoryStore, anna: str, home: Path
) -> None:
    (home / "new.md").write_bytes("Zeile eins\r\nZeile zwei 🍵\r\n".encode())
    assert run("update", anna, "--file", "new.md").code == 0
    assert library.reconstruct(anna) == "Zeile eins\r\nZeile zwei 🍵\r\n"
    assert run("update", anna, "-", stdin="from a pipe").code == 0
    assert library.reconstruct(anna) == "from a pipe"


def test_update_says_what_it_did(run: Run, anna: str) -> None:
    assert run("update", anna, "--title", "New").out == f"✓  updated  {anna}  (version 2)\n"
    assert (
        run("update", anna, "--title", "New").out
        == f"✓  nothing to change in  {anna}  (version 2)\n"
    )


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ([], 2, "nothing to change"),
        (["new", "--file", "x"], 2, "give one of them"),
        (["--file", "nowhere.md"], 2, "nowhere.md"),
        (["--importance", "11"], 2, "importance"),
        (["--metadata", "{"], 2, "not JSON"),
        (["--clear", "content"], 2, "content"),
        (["--clear", "colour"], 2, "colour"),
        (["   "], 2, "blank"),
        (["new", "--expected-version", "7"], 1, "version 1"),
        (["new", "--expected-version", "0"], 2, "expected_version"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_update_refuses_with_a_reason(
    run: Run, library: byheart.MemoryStore, anna: str, flags: list[str], code: int, said: str
) -> None:
    before = library.get(anna)
    ran = run("update", anna, *flags)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert library.get(anna) == before


@pytest.mark.parametrize("verb", ["update", "history", "supersede", "restore", "forget"])
@pytest.mark.parametrize("name", ["mem_nothing", "mem@1", "a#b", "--", "mem#0"])
def test_an_unknown_id_is_an_error_without_a_traceback(run: Run, verb: str, name: str) -> None:
    more = {"update": ["--title", "x"], "supersede": ["--undo"]}.get(verb, [])
    ran = run(verb, *more, name, "--json")
    assert ran.code in (1, 2)
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_history_as_json_is_what_the_library_answers(
    run: Run, library: byheart.MemoryStore, anna: str
) -> None:
    run("update", anna, "Anna prefers coffee.", "--who", "ben")
    run("forget", anna, "--reason", "wrong", "--who", "cleo")
    run("restore", anna)
    told = run("history", anna, "--json").json
    assert told == to_wire(library.history(anna))
    assert [each["who"] for each in told] == ["manual", "ben", "cleo", "manual"]
    assert told[1]["changes"]["content"] == {
        "from": "Anna prefers tea.",
        "to": "Anna prefers coffee.",
    }


def test_history_is_one_line_each_with_what_changed_below(run: Run, anna: str) -> None:
    run("update", anna, "Anna prefers\ncoffee.\x1b[31m", "--clear", "title", "-t", "a,b")
    lines = run("history", anna).out.splitlines()
    assert "create  by manual  (version 1)" in lines[0]
    assert "update  by manual  (version 2)" in lines[1]
    below = "\n".join(lines[2:])
    assert "content:  Anna prefers tea.  →  Anna prefers coffee." in below
    assert "title:  Drinks  →  nothing" in below
    assert "tags:  people  →  a, b" in below
    assert "\x1b" not in below


def test_an_earlier_text_is_fetched_by_its_version(run: Run, anna: str) -> None:
    run("update", anna, "Anna prefers coffee.")
    assert run("get", f"{anna}@1", "--json").json["content"] == "Anna prefers tea."
    assert run("get", anna, "--json").json["content"] == "Anna prefers coffee."


def test_a_search_as_of_then_shows_the_text_of_then(
    run: Run, library: byheart.MemoryStore, anna: str
) -> None:
    then = to_wire(library.get(anna).created_at)
    run("update", anna, "Anna prefers coffee.")
    for granularity in ("fine", "medium", "coarse"):
        ran = run("search", "anna", "--as-of", then, "--granularity", granularity, "--json")
        [hit] = ran.json["results"]
        assert (hit["memory_id"], hit["version"]) == (anna, 1)
        assert hit["replaced_at"] is not None
        assert "tea" in run("search", "anna", "--as-of", then, "--granularity", granularity).out
    assert "coffee" in run("search", "anna").out
    assert "prefers tea" not in run("search", "anna").out


def test_supersede_and_undo(run: Run, library: byheart.MemoryStore, anna: str) -> None:
    new = library.save("Anna prefers coffee.").memory_id
    ran = run("supersede", anna, new, "--reason", "she said so")
    assert (ran.code, ran.out) == (0, f"✓  {anna}  is superseded by {new}\n")
    assert run("get", anna, "--json").json["superseded_by"] == new
    order = [hit["memory_id"] for hit in run("search", "anna tea", "--json").json["results"]]
    assert order == [new, anna]
    assert new in run("search", "anna tea").out
    assert "superseded" in run("search", "anna tea").out
    assert run("supersede", new, anna).code == 1
    assert run("supersede", anna, "--undo", "--json").json["superseded_by"] is None
    assert library.get(anna).superseded_by is None


@pytest.mark.parametrize("flags", [[], ["mem_x", "--undo"]])
def test_supersede_needs_the_new_one_or_undo(run: Run, anna: str, flags: list[str]) -> None:
    ran = run("supersede", anna, *flags)
    assert (ran.code, ran.out) == (2, "")
    assert "--undo" in ran.err


def test_what_save_proposes_to_supersede_can_be_typed(
    run: Run, library: byheart.MemoryStore
) -> None:
    first = run("save", "Anna prefers green tea to coffee in the morning, every day").out.strip()
    ran = run("save", "Anna prefers green tea to coffee in the morning, every day!")
    [line] = [line for line in ran.err.splitlines() if "byheart supersede" in line]
    command = line.partition("byheart ")[2].split()
    assert run(*command).code == 0, command
    assert library.get(first).superseded_by == ran.out.strip()


def test_restore_prints_the_id_in_a_pipe_and_the_memory_as_json(
    run: Run, library: byheart.MemoryStore, anna: str
) -> None:
    run("forget", anna)
    listed = run("list", "--forgotten", "--json").json
    assert [each["memory_id"] for each in listed["memories"]] == [anna]
    assert anna in run("list", "--forgotten").out
    told = run("get", anna)
    assert (told.code, told.out) == (1, "")
    assert f"byheart restore {anna}" in told.err
    assert run("restore", anna).out == f"{anna}\n"
    assert run("restore", anna, "--json").json == to_wire(library.get(anna))


def test_restore_is_refused_when_the_text_was_saved_again(run: Run, anna: str) -> None:
    run("forget", anna)
    again = run("save", "Anna prefers tea.", "--kind", "fact").out.strip()
    ran = run("restore", anna)
    assert (ran.code, ran.out) == (1, "")
    assert again in ran.err


def test_verbs_stay_in_their_space(run: Run, anna: str) -> None:
    for arguments in (
        ["update", anna, "--title", "x"],
        ["history", anna],
        ["supersede", anna, "--undo"],
        ["forget", anna],
    ):
        assert run(*arguments, "--space", "other").code == 1
