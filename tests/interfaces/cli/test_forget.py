"""`byheart forget` and `cleanup`, through the real command line."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run


@pytest.fixture
def ids(library: byheart.MemoryStore) -> dict[str, str]:
    """Save memories that filters tell apart."""
    return {
        "mine": library.save("mine", session_id="s1", agent_id="a1").memory_id,
        "fact": library.save("fact", session_id="s1", kind="fact").memory_id,
        "global": library.save("global", tags=["t"]).memory_id,
    }


def age(path: Path, days: int) -> None:
    apsw.Connection(str(path)).execute(
        "UPDATE memories SET created_at = created_at - ?1, updated_at = updated_at - ?1",
        (days * 86_400 * 1_000_000,),
    )


def test_forget_by_id_is_done_at_once(
    run: Run, library: byheart.MemoryStore, ids: dict[str, str]
) -> None:
    ran = run("forget", ids["mine"], ids["fact"], "--reason", "wrong")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("✓  forgot 2 memories")
    assert [each.memory_id for each in library.list().memories] == [ids["global"]]
    assert library.history(ids["mine"])[-1].reason == "wrong"
    again = run("forget", ids["mine"], "--json")
    assert (again.code, again.json["count"], again.json["memory_ids"]) == (0, 0, [])


def test_forget_as_json_is_what_the_library_answers(
    run: Run, library: byheart.MemoryStore, ids: dict[str, str]
) -> None:
    for flags, parameters in (
        (["--session-id", "s1"], {"session_id": "s1"}),
        (["--kind", "fact", "--kind", "note"], {"kind": ["fact", "note"]}),
        (["-t", "t", "--match", "all"], {"tags": ["t"], "match": "all"}),
        (["--older-than", "0"], {"older_than": 0}),
        (["--hard", "--agent-id", "a1"], {"hard": True, "agent_id": "a1"}),
    ):
        told = run("forget", *flags, "--dry-run", "--json")
        assert (told.code, told.json) == (0, to_wire(library.forget(**parameters)))
    assert library.list().total == 3


def test_forget_by_filter_counts_first_and_needs_a_yes(
    run: Run, library: byheart.MemoryStore, ids: dict[str, str]
) -> None:
    asked = run("forget", "--session-id", "s1")
    assert asked.code == 0
    assert asked.out.startswith("✓  would forget 2 memories")
    assert "--yes" in asked.err
    assert library.list().total == 3
    done = run("forget", "--session-id", "s1", "--yes")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("✓  forgot 2 memories")
    assert [each.memory_id for each in library.list().memories] == [ids["global"]]


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--match", "all"],
        ["--include-expired"],
        ["--older-than", "soon"],
        ["--older-than", "-3d"],
        ["mem_x", "--kind", "note"],
        ["--kind", "No Slug"],
        ["--as-of", "2020-01-01"],
    ],
    ids=" ".join,
)
def test_forget_refuses_what_is_not_meant(
    run: Run, library: byheart.MemoryStore, ids: dict[str, str], flags: list[str]
) -> None:
    ran = run("forget", *flags, "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert library.list().total == 3


def test_forget_hard_tells_what_it_removed_and_what_it_checked(
    process: Run, run: Run, library: byheart.MemoryStore, home: Path
) -> None:
    text = "The xylographers of Quokkaville print at night on thin paper."
    memory_id = library.save(text, title="Xylographers").memory_id
    library.update(memory_id, content=text.upper(), title="Quokkaville")
    library.close()
    ran = process("forget", memory_id, "--hard")
    assert (ran.code, ran.err) == (0, "")
    assert "removed  2 texts, 2 chunks" in ran.out
    assert "nothing found" in ran.out
    for file in home.glob("memory.db*"):
        contents = file.read_bytes().lower()
        assert b"xylographers" not in contents, file
        assert b"quokkaville" not in contents, file
    assert run("get", memory_id).code == 1
    assert run("restore", memory_id).code == 1


def test_forget_hard_fails_when_a_file_still_holds_the_text(
    run: Run, library: byheart.MemoryStore, home: Path
) -> None:
    text = "The xylographers of Quokkaville print at night on thin paper."
    memory_id = library.save(text).memory_id
    (home / "memory.db.copy").write_text(text)
    ran = run("forget", memory_id, "--hard")
    assert ran.code == 1
    assert "memory.db.copy" in ran.out
    assert "nothing found" not in ran.out


def test_forget_in_a_terminal_asks_before_it_removes_for_good(
    terminal: Run, run: Run, library: byheart.MemoryStore, ids: dict[str, str]
) -> None:
    library.close()
    shown = terminal("forget", "--hard", ids["mine"], "--yes")
    assert shown.code == 0
    assert "forgot 1 memory" in shown.out
    assert "\x1b[" in shown.out
    assert run("get", ids["mine"]).code == 1


def test_cleanup_counts_first_and_needs_a_yes(
    run: Run, library: byheart.MemoryStore, ids: dict[str, str], home: Path
) -> None:
    assert run("cleanup", "--json").json == to_wire(library.admin.cleanup())
    age(home / "memory.db", 100)
    fresh = library.save("fresh").memory_id
    expired = library.save("expired", ttl_days=0).memory_id
    counted = run("cleanup")
    assert counted.code == 0
    assert "would forget 4 memories" in counted.out
    assert "1 of them had expired" in counted.out
    assert "--yes" in counted.err
    assert run("cleanup", "--days-old", "101", "--json").json["count"] == 1, (
        "what has expired alone"
    )
    assert run("cleanup", "--kind", "fact", "--json").json["count"] == 1
    assert library.list(include_expired=True).total == 5
    done = run("cleanup", "--yes", "--who", "cron")
    assert (done.code, done.err) == (0, "")
    assert "forgot 4 memories" in done.out
    assert [each.memory_id for each in library.list(include_expired=True).memories] == [fresh]
    assert library.history(ids["mine"])[-1].who == "cron"
    assert run("get", expired).code == 1


def test_cleanup_for_good_fails_when_a_file_still_holds_the_text(
    run: Run, library: byheart.MemoryStore, home: Path
) -> None:
    text = "The xylographers of Quokkaville print at night on thin paper."
    library.save(text)
    age(home / "memory.db", 100)
    (home / "memory.db.copy").write_text(text)
    ran = run("cleanup", "--hard", "--yes")
    assert ran.code == 1
    assert "memory.db.copy" in ran.out


@pytest.mark.parametrize("days", ["-1", "x", "nan", "1e99"])
def test_cleanup_refuses_what_is_no_age(run: Run, ids: dict[str, str], days: str) -> None:
    ran = run("cleanup", "--days-old", days, "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
