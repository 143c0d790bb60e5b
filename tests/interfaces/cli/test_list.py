"""`byheart list` and `byheart sessions`: tables, and the library's answer as JSON."""

from __future__ import annotations

from typing import Any

import pytest

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run


@pytest.fixture
def stocked(library: byheart.MemoryStore, report: str) -> byheart.MemoryStore:
    """Give a store in which each filter lets something through and holds something back."""
    library.save("Anna likes tea", kind="fact", tags=["a", "b"], entities=["Anna"])
    library.save("A note", tags=["a"], agent_id="coder", session_iter=2, importance=9)
    library.save("A task", session_id="s2", agent_id="coder", task_code="T-7", path="notes/x.md")
    library.save("An expired note", ttl_days=0)
    return library


@pytest.mark.parametrize(
    ("flags", "parameters"),
    [
        ([], {}),
        (["--limit", "1", "--offset", "1"], {"limit": 1, "offset": 1}),
        (["-k", "fact,report"], {"kind": ["fact", "report"]}),
        (["-s", "s2"], {"session_id": "s2"}),
        (["-s", "s2", "--no-include-global"], {"session_id": "s2", "include_global": False}),
        (["-a", "coder"], {"agent_id": "coder"}),
        (["--session-iter", "2"], {"session_iter": 2}),
        (["--task-code", "T-7"], {"task_code": "T-7"}),
        (["-t", "a", "-t", "b"], {"tags": ["a", "b"]}),
        (["-t", "a,b", "--match", "all"], {"tags": ["a", "b"], "match": "all"}),
        (["-e", "anna"], {"entities": ["anna"]}),
        (["--path", "notes/*"], {"path": "notes/*"}),
        (["--min-importance", "8"], {"min_importance": 8}),
        (["--created-after", "2030-01-01"], {"created_after": "2030-01-01"}),
        (["--created-before", "2030-01-01"], {"created_before": "2030-01-01"}),
        (["--as-of", "2020-01-01"], {"as_of": "2020-01-01"}),
        (["--include-expired"], {"include_expired": True}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_list_as_json_is_what_the_library_answers(
    run: Run, stocked: byheart.MemoryStore, flags: list[str], parameters: dict[str, Any]
) -> None:
    assert run("list", *flags, "--json").json == to_wire(stocked.list(**parameters))


def test_list_is_a_table_without_tabs(run: Run, stocked: byheart.MemoryStore) -> None:
    heading, *rows = run("list").out.splitlines()
    assert heading.split() == ["ID", "KIND", "SESSION", "IMPORTANCE", "SAVED", "TEXT"]
    assert len(rows) == 4
    assert [row.split()[0] for row in rows] == [each.memory_id for each in stocked.list().memories]
    assert rows[-1].endswith("March")
    column = heading.index("TEXT")
    assert all(row[column - 1] == " " != row[column] for row in rows)
    assert not any("\t" in row for row in rows)


def test_list_says_how_many_more_there_are(run: Run, stocked: byheart.MemoryStore) -> None:
    assert run("list", "-n", "1").err == "1 of 4; more: byheart list --offset 1\n"
    assert run("list").err == ""


def test_list_goes_on_behind_a_memory(run: Run, stocked: byheart.MemoryStore) -> None:
    first, second, third, last = (each.memory_id for each in stocked.list().memories)
    page = run("list", "-n", "2", "--after", first)
    assert [row.split()[0] for row in page.out.splitlines()[1:]] == [second, third]
    assert page.err == f"more: byheart list … --after {third}\n"
    assert run("list", "--after", third, "--json").json == to_wire(stocked.list(after=third))
    assert run("list", "--after", last).out == "No more memories.\n"
    unknown = run("list", "--after", "mem_unknown")
    assert unknown.code == 1
    assert "there is no mem_unknown in this space" in unknown.err


def test_a_time_after_which_to_list_is_pointed_to_its_flag(
    run: Run, stocked: byheart.MemoryStore
) -> None:
    ran = run("list", "--after", "yesterday")
    assert ran.code == 2
    assert "--after takes the id of a memory, not yesterday" in ran.err
    assert "byheart list --created-after DATE" in ran.err


def test_an_empty_list_says_so(run: Run, stocked: byheart.MemoryStore) -> None:
    assert run("list", "--kind", "nothing").out == "No memories here.\n"
    assert run("list", "--offset", "99").out == "No more memories.\n"


def test_sessions_as_json_is_what_the_library_answers(
    run: Run, stocked: byheart.MemoryStore
) -> None:
    assert run("sessions", "--json").json == to_wire(stocked.sessions.list())
    assert run("sessions", "-a", "coder", "--json").json == to_wire(stocked.sessions.list("coder"))
    assert run("sessions", "-n", "1", "--offset", "1", "--json").json == to_wire(
        stocked.sessions.list(limit=1, offset=1)
    )


def test_sessions_is_a_table(run: Run, stocked: byheart.MemoryStore) -> None:
    heading, *rows = run("sessions").out.splitlines()
    assert heading.split()[:3] == ["SESSION", "AGENT", "MEMORIES"]
    assert [row.split()[:3] for row in rows] == [["s2", "coder", "1"], ["s1", "-", "1"]]


def test_without_sessions_it_says_how_to_have_one(run: Run) -> None:
    assert "--session-id" in run("sessions").out
