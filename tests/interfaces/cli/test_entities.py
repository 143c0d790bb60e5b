"""`entities` on the command line."""

from __future__ import annotations

import pytest

import byheart
from tests.interfaces.cli.conftest import Run


@pytest.fixture(autouse=True)
def _saved(library: byheart.MemoryStore) -> None:
    library.save("one", entities=["Postgres", "Redis"])
    library.save("two", entities=["PG"])


@pytest.mark.parametrize("verb", [(), ("list",)])
def test_entities_are_listed_with_or_without_the_verb(run: Run, verb: tuple[str, ...]) -> None:
    ran = run("entities", *verb)
    assert ran.code == 0
    lines = [line.split()[:2] for line in ran.out.splitlines()]
    assert lines == [["ENTITY", "MEMORIES"], ["PG", "1"], ["Postgres", "1"], ["Redis", "1"]]
    assert run("entities", *verb, "--prefix", "re", "--json").json["total"] == 1


def test_the_next_page_is_named(run: Run) -> None:
    ran = run("entities", "--limit", "2")
    assert "2 of 3; more: byheart entities --offset 2" in ran.err
    assert len(run("entities", "--offset", "2").out.splitlines()) == 2
    assert run("entities", "--offset", "3").out == "No more entities.\n"
    assert run("entities", "--space", "empty").out == "No entities here.\n"


def test_json_is_the_page_of_the_library(run: Run, library: byheart.MemoryStore) -> None:
    assert run("entities", "--json").json == byheart.to_wire(library.entities.list())


def test_an_entity_is_renamed(run: Run) -> None:
    ran = run("entities", "rename", "PG", "PostgreSQL")
    assert (ran.code, ran.out) == (0, "✓  PostgreSQL  1 memory  also PG\n")
    assert run("list", "--entities", "pg", "--json").json["total"] == 1


def test_renaming_to_another_entity_hints_at_merge(run: Run) -> None:
    ran = run("entities", "rename", "PG", "Postgres")
    assert ran.code == 1
    assert "error: Postgres is another entity already; nothing was changed" in ran.err
    assert "hint: make one of the two: byheart entities merge PG --into Postgres" in ran.err


def test_entities_are_merged(run: Run) -> None:
    answer = run("entities", "merge", "PG", "Postgres", "--into", "PostgreSQL", "--json").json
    assert (answer["name"], answer["memories"]) == ("PostgreSQL", 2)
    assert answer["aliases"] == ["PG", "Postgres"]


def test_an_unknown_entity_is_named(run: Run) -> None:
    ran = run("entities", "merge", "Nobody", "--into", "PG")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no entity Nobody" in ran.err


def test_a_merge_wants_to_know_into_what(run: Run) -> None:
    assert run("entities", "merge", "PG").code == 2
