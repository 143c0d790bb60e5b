"""`dedupe`, `merge`, and what `save` says about near-duplicates."""

from __future__ import annotations

import pytest

import byheart
from tests.interfaces.cli.conftest import Run

FIRST = "the quick brown fox jumps over the lazy dog"
SECOND = "the quick brown fox jumps over the very lazy dog"


@pytest.fixture
def doubled(library: byheart.MemoryStore) -> tuple[str, str]:
    return (
        library.save(FIRST, importance=9).memory_id,
        library.save(SECOND, importance=1).memory_id,
    )


def test_a_save_says_what_is_almost_the_same_and_prints_only_the_id(run: Run) -> None:
    old = run("save", FIRST).out.strip()
    ran = run("save", SECOND)
    new = ran.out.strip()
    assert ran.out == f"{new}\n"
    assert f"): {old}  {FIRST}" in ran.err
    assert ran.err.startswith("almost the same (0.9")
    assert f"byheart supersede {old} {new}" in ran.err
    assert f"byheart forget {new}" in ran.err


def save_ports(library: byheart.MemoryStore, ports: range) -> None:
    for port in ports:
        library.save(f"The API listens on port {port}.", kind="fact")


def test_a_save_that_contradicts_one_memory_offers_to_replace_it(
    run: Run, library: byheart.MemoryStore
) -> None:
    save_ports(library, range(8080, 8081))
    [old] = library.list().memories
    ran = run("save", "The API listens on port 9000.", "--kind", "fact")
    assert f"contradicts {old.memory_id}: The API listens on port 8080." in ran.err
    assert f"byheart supersede {old.memory_id} {ran.out.strip()}" in ran.err


def test_a_save_that_contradicts_many_shows_three_and_replaces_none(
    run: Run, library: byheart.MemoryStore
) -> None:
    save_ports(library, range(8080, 8086))
    ran = run("save", "The API listens on port 9000.", "--kind", "fact")
    lines = ran.err.splitlines()
    assert sum(line.startswith("contradicts mem_") for line in lines) == 3
    assert "and 3 more" in lines
    assert "supersede" not in ran.err
    assert lines[-1] == f"if it is not needed: byheart forget {ran.out.strip()}"


def test_saves_about_two_numbered_subjects_do_not_contradict_each_other(run: Run) -> None:
    run("save", "Worker 1 reports item number 2 about topic 12")
    ran = run("save", "Worker 6 reports item number 2 about topic 62")
    assert "contradicts" not in ran.err
    assert "contradiction" not in run("review").out
    assert "differ" not in run("search", "what does a worker report?").err


def test_in_json_the_answer_names_them_itself(run: Run) -> None:
    old = run("save", FIRST).out.strip()
    ran = run("save", SECOND, "--json")
    assert ran.json["similar"][0]["memory_id"] == old
    assert ran.err == ""


def test_merges_are_only_proposed(run: Run, doubled: tuple[str, str]) -> None:
    keep, other = doubled
    ran = run("dedupe", "--threshold", "0.9")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == f"keep  {keep}  (the most important)"
    assert ran.out.splitlines()[2].startswith(f"merge  {other}  similarity 0.9")
    assert "nothing was changed: add --apply" in ran.err
    assert run("list", "--json").json["total"] == 2


def test_applied_they_are_merged(run: Run, doubled: tuple[str, str]) -> None:
    keep, other = doubled
    ran = run("dedupe", "--threshold", "0.9", "--apply")
    assert f"kept  {keep}" in ran.out
    assert "to undo: byheart restore ID" in ran.err
    assert run("list", "--json").json["total"] == 1
    assert run("restore", other).code == 0
    assert run("list", "--json").json["total"] == 2


def test_json_is_the_answer_of_the_library(
    run: Run, library: byheart.MemoryStore, doubled: tuple[str, str]
) -> None:
    wanted = byheart.to_wire(library.admin.dedupe(threshold=0.9))
    assert run("dedupe", "--threshold", "0.9", "--json").json == wanted


def test_what_differs_in_particulars_is_counted(run: Run, library: byheart.MemoryStore) -> None:
    library.save(f"{FIRST} 1")
    library.save(f"{FIRST} 2")
    ran = run("dedupe", "--threshold", "0.8")
    assert ran.out == "Nothing is stored twice at a similarity of 0.8.\n"
    assert '1 pair left out: as near, but with another name, number or "not"' in ran.err


def test_nothing_to_merge_is_said(run: Run) -> None:
    ran = run("dedupe")
    assert (ran.code, ran.out) == (0, "Nothing is stored twice at a similarity of 0.95.\n")


def test_a_threshold_out_of_bounds_is_refused(run: Run) -> None:
    ran = run("dedupe", "--threshold", "0.1")
    assert ran.code == 2
    assert "give a number from 0.8 to 1" in ran.err


def test_one_is_kept_for_others(run: Run, doubled: tuple[str, str]) -> None:
    keep, other = doubled
    ran = run("merge", keep, other, "--reason", "the same")
    assert (ran.code, ran.out) == (0, f"✓  merged 1 memory into  {keep}\n")
    assert run("merge", keep, other).code == 1
    assert run("merge", keep, keep).code == 2


def test_a_save_like_several_memories_offers_to_replace_none(run: Run) -> None:
    run("save", FIRST)
    run("save", SECOND)
    ran = run("save", f"{FIRST}!")
    assert ran.err.count("almost the same") == 2
    assert "supersede" not in ran.err
