"""`copy` on the command line."""

from __future__ import annotations

from pathlib import Path

import byheart
from tests.interfaces.cli.conftest import Run
from tests.postgres_stores import postgres_store_url


def test_a_store_is_copied_to_a_database_and_back(run: Run, home: Path, report: str) -> None:
    source = home / "source.db"
    run("backup", str(source))
    with postgres_store_url() as url:
        ran = run("copy", str(source), url)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("copied 1 memory of 1 space to postgresql://")
        assert ran.out.endswith("searches: all the same\n")
        answer = run("copy", url, "back.db", "--json").json
    assert (answer["memories"], answer["resumed"]) == (1, False)
    assert answer["kinds"] == {"report": 1}
    with byheart.open("back.db") as store, byheart.open(source) as first:
        assert store.get(report) == first.get(report)


def test_a_target_that_is_not_empty_is_refused_with_what_to_do(
    run: Run, home: Path, report: str
) -> None:
    run("backup", str(home / "source.db"))
    run("--db", "other.db", "save", "I was here first.")
    ran = run("copy", "source.db", "other.db")
    assert (ran.code, ran.out) == (2, "")
    assert "other.db is not empty" in ran.err
    assert "copy to a new file, to an empty database, or" in ran.err
    assert report


def test_a_source_that_is_missing_is_not_created(run: Run, home: Path) -> None:
    ran = run("copy", "missing.db", "target.db")
    assert ran.code != 0
    assert "there is no store at missing.db" in ran.err
    assert not (home / "missing.db").exists()
    assert not (home / "target.db").exists()


def test_the_stores_are_named_by_arguments_alone(run: Run) -> None:
    for flags in (("--db", "a.db"), ("--space", "work")):
        ran = run("copy", "a.db", "b.db", *flags)
        assert ran.code == 2
        assert "no --db or --space" in ran.err
