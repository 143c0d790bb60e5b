"""`byheart bench`."""

from __future__ import annotations

import apsw

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import Run


def test_bench_shows_figures_and_says_in_one_line_that_all_is_well(run: Run, report: str) -> None:
    first = run("bench", "--questions", "5").out
    assert "RECALL@10" in first
    assert "no run before" in first
    assert first.splitlines()[-1] == "Nothing is wrong."
    assert "compared with" in run("bench", "--questions", "5", "--k", "3").out


def test_bench_as_json_is_what_the_library_answers(
    run: Run, library: byheart.MemoryStore, report: str
) -> None:
    answer = run("bench", "--questions", "4", "--seed", "2", "--json").json
    expected = to_wire(library.admin.bench(questions=4, seed=2))
    assert set(answer) == set(expected)
    assert expected["before"] == answer["run"]
    for theirs, ours in zip(answer["run"]["figures"], expected["run"]["figures"], strict=True):
        del theirs["p50_ms"], theirs["p95_ms"], ours["p50_ms"], ours["p95_ms"]
        assert theirs == ours


def test_bench_fails_where_something_is_wrong(
    run: Run, library: byheart.MemoryStore, report: str
) -> None:
    location = library.status().store
    library.close()
    connection = apsw.Connection(location)
    connection.execute("DELETE FROM vectors")
    connection.close()
    done = run("bench", "--questions", "3")
    assert done.code == 1
    assert "Wrong: vectors accounted for" in done.out
    assert "byheart doctor --fix" in done.out
    assert "Traceback" not in done.out + done.err
