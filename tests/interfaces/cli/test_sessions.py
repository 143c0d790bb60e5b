"""`byheart sessions …`, `resume` and `promote`: for people, in a pipe, and as JSON."""

from __future__ import annotations

import pytest

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run


@pytest.fixture
def worked(library: byheart.MemoryStore) -> byheart.MemoryStore:
    library.save("Cranes lift forty tons.", kind="fact", session_id="s1")
    library.save("All cranes are painted.", kind="report", session_id="s1", task_code="T1")
    library.save("The ferry is late.", kind="report", session_id="s1", task_code="T2")
    library.log("s1", "user", "How much does a crane lift?")
    library.sessions.summarize("s1", "A harbour with cranes.")
    return library


def test_stats_are_those_of_the_library(run: Run, worked: byheart.MemoryStore) -> None:
    assert run("sessions", "stats", "s1", "--json").json == to_wire(worked.sessions.stats("s1"))
    assert run("sessions", "stats", "--json").json == to_wire(worked.sessions.stats())
    shown = run("sessions", "stats", "s1").out
    assert "1 fact, 1 message, 2 report, 1 session_summary" in shown
    assert "5, 1 turn" in shown
    assert "There is no session s9" in run("sessions", "stats", "s9").out


def test_the_verbs_beside_the_listing_leave_it_as_it_was(
    run: Run, worked: byheart.MemoryStore
) -> None:
    listed = run("sessions", "--json").json
    assert listed == run("sessions", "list", "--json").json == to_wire(worked.sessions.list())


def test_a_session_is_resumed_for_a_task(run: Run, worked: byheart.MemoryStore) -> None:
    shown = run("resume", "s1", "--task-code", "T1").out
    assert "A harbour with cranes." in shown
    assert "All cranes are painted." in shown
    assert "ferry" not in shown
    assert run("resume", "s1", "--json").json == to_wire(worked.sessions.resume("s1"))
    unknown = run("resume", "s9")
    assert (unknown.code, "There is no session s9" in unknown.out) == (1, True)
    assert (run("resume", "s9", "--json").code, run("resume", "s1").code) == (1, 0)


def test_promoting_tells_what_is_copied(run: Run, worked: byheart.MemoryStore) -> None:
    assert "would promote 3 memories" in run("promote", "s1", "--dry-run").out
    assert worked.list(session_id="s2").total == 0
    assert len(run("promote", "s1", "--kind", "fact", "--json").json["promotions"]) == 1
    again = run("promote", "s1").out
    assert "promoted 2 memories" in again
    assert "(1 there already)" in again
    turn = worked.sessions.transcript("s1").turns[0].memory_id
    [note] = run("promote", "--memory-id", turn, "--json").json["promotions"]
    assert note["kind"] == "note"
    assert "There is no session nobodys" in run("promote", "nobodys").out
    refused = run("promote")
    assert refused.code == 2
    assert "neither a session nor a memory was named" in refused.err


def test_a_session_is_forgotten_after_a_yes_and_comes_back(
    run: Run, worked: byheart.MemoryStore
) -> None:
    counted = run("sessions", "forget", "s1")
    assert "would forget 5 memories" in counted.out
    assert "--yes" in counted.err
    assert worked.sessions.stats("s1").total_memories == 5
    assert "forgot 5 memories" in run("sessions", "forget", "s1", "--yes").out
    assert worked.sessions.stats("s1").total_memories == 0
    assert "There is no session s1" in run("sessions", "forget", "s1", "--yes").out
    assert "restored 5 memories of s1\n" in run("sessions", "restore", "s1").out
    assert "Nothing is forgotten of s1" in run("sessions", "restore", "s1").out
    gone = run("sessions", "forget", "s1", "--hard", "--yes", "--json").json
    assert gone["removal"]["memories"] == 5
    assert run("sessions", "restore", "s1", "--json").json["count"] == 0


def test_origins_are_given_and_asked_for(run: Run, library: byheart.MemoryStore) -> None:
    saved = run("save", "Written by a tool.", "--origin", "tool", "--json").json["memory_id"]
    logged = run("log", "s1", "assistant", "Brought in from elsewhere.", "--origin", "import")
    assert library.get(saved).origin == "tool"
    assert library.get(logged.out.strip()).origin == "import"
    listed = run("list", "--origin", "tool,import", "--json").json
    assert {each["memory_id"] for each in listed["memories"]} == {saved, logged.out.strip()}
    found = run("search", "written tool", "--origin", "user", "--json").json
    assert found["results"] == []
    refused = run("list", "--origin", "tol")
    assert refused.code == 2
    assert "did you mean tool" in refused.err
