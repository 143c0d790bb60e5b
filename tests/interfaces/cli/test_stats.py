"""`byheart stats`."""

from __future__ import annotations

import pytest

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run
from tests.interfaces.cli.test_terminal import ESCAPE


def test_stats_as_json_are_what_the_library_answers(
    run: Run, library: byheart.MemoryStore, report: str
) -> None:
    library.search("index dropped")
    library.close()
    answer = run("stats", "--json").json
    with byheart.open() as store:
        expected = to_wire(store.admin.stats())
    for each in (answer, expected):  # the process that answered has worked on the index, too
        del each["sizes"], each["index_work"]
    assert answer == expected
    assert answer["queries"]["kinds"]["hybrid/fine"]["count"] == 1
    assert answer["saves"] == {"created": 1, "unchanged": 0, "updated": 0}
    assert answer["kinds"] == {"report": 1}


def test_stats_are_readable(run: Run, report: str) -> None:
    run("search", "when was the index dropped?")
    run("search", "locks", "--mode", "fts")
    run("recall", "slow service")
    out = run("stats").out
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if line)
    assert lines["memories"] == "1: 1 report"
    assert lines["vectors"].endswith("for 100 % of the chunks")
    assert lines["queries"] == "3, of which 0 (0.0%) took longer than 500 ms"
    assert lines["fts/fine"].split()[0] == lines["hybrid/fine"].split()[0] == "1"
    assert lines["recall"].split()[0] == "1"
    assert "when was the index dropped?" in out
    assert "build anew" in out


def test_stats_of_a_store_in_which_nothing_happened_are_readable(run: Run) -> None:
    out = run("stats").out
    assert "nothing is counted yet" in out
    assert "questions not used yet, texts not used yet" in out


def test_reset_shows_the_last_state_and_starts_anew(run: Run, report: str) -> None:
    run("search", "locks")
    ran = run("stats", "--reset")
    assert "queries     1," in ran.out
    assert "queries     0," in run("stats").out


def test_a_command_that_loads_everything_anew_is_no_slow_query(
    run: Run, report: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_SLOW_QUERY_MS", "0")
    run("search", "locks")
    run("search", "locks")
    queries = run("stats", "--json").json["queries"]
    assert (queries["total"]["count"], queries["total"]["slow"], queries["cold_starts"]) == (
        2,
        0,
        2,
    )
    assert queries["slowest"] == []
    shown = run("stats").out
    assert "queries     2, of which 0 (0.0%) took longer than 0 ms, besides 2 cold starts" in shown


def test_stats_fit_a_terminal(terminal: Run, run: Run, report: str) -> None:
    with byheart.open() as store:
        for _ in range(2):  # the first may be a cold start
            store.search("a rather long question about why the order query was slow in March " * 3)
    shown = ESCAPE.sub("", terminal("stats").out)
    assert "SLOWEST QUERIES" in shown
    assert "…" in shown
