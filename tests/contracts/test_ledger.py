"""What a `Ledger` promises, run on each implementation."""

from datetime import UTC, datetime, timedelta

import pytest

from byheart.contracts import Count, Ledger, Tally
from byheart.model import BenchFigures, BenchRun, SlowQuery
from byheart.storage.sql.backend import Backend
from tests.contracts.covering import covers

SEARCHES, SAVES = Count("space", "query", "hybrid", 3), Count("other", "save", "created")
STORE = Count("", "cache", "hits")
AT = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def ledger(backend: Backend) -> Ledger:
    assert backend.ledger is not None
    return backend.ledger


def slow(query: str, elapsed_ms: float, at: datetime = AT) -> SlowQuery:
    return SlowQuery("hybrid", query, elapsed_ms, at)


@covers(Ledger.add, Ledger.read)
def test_counts_add_up_by_space_and_the_last_value_stays(ledger: Ledger) -> None:
    assert ledger.read("space").counts == {}
    before = datetime.now(UTC)
    assert ledger.add(Tally({SEARCHES: 1, SAVES: 2, STORE: 3}, {"catch_up": 5.0}))
    assert ledger.add(Tally({SEARCHES: 10, STORE: 0.5}, {"catch_up": 4.0}))
    tally = ledger.read("space")
    assert tally.counts == {SEARCHES: 11, STORE: 3.5}
    assert tally.latest == {"catch_up": 4.0}
    assert tally.since is not None
    assert before - timedelta(seconds=1) < tally.since < datetime.now(UTC) + timedelta(seconds=1)
    assert ledger.read("other").counts == {SAVES: 2, STORE: 3.5}


@covers(Ledger.add, Ledger.read)
def test_the_slowest_queries_and_the_latest_runs_of_a_space_are_kept(ledger: Ledger) -> None:
    figures = (BenchFigures("hybrid", 9, 0.5, 0.4, 1, 2, 3, 4.0, 5.0),)
    runs = [BenchRun(AT + timedelta(n), "space", n, "model", 1, 10, figures) for n in range(2)]
    ledger.add(Tally(slowest={"space": [slow(f"query {n}", n) for n in range(15)]}))
    ledger.add(Tally(slowest={"other": [slow("far", 99)]}, runs=tuple(runs)))
    tally = ledger.read("space")
    kept = sorted(each.elapsed_ms for each in tally.slowest["space"])
    assert kept == list(range(5, 15))
    assert slow("query 14", 14) in tally.slowest["space"]
    assert tally.runs == tuple(runs)
    assert ledger.read("other").runs == ()


@covers(Ledger.reset)
def test_a_reset_clears_a_space_and_the_whole_store_but_no_other_space(ledger: Ledger) -> None:
    queries = {"space": [slow("near", 1)], "other": [slow("far", 2)]}
    ledger.add(Tally({SEARCHES: 1, SAVES: 2, STORE: 3}, {"catch_up": 5.0}, queries))
    ledger.reset("space")
    own, other = ledger.read("space"), ledger.read("other")
    assert (own.counts, own.latest, own.slowest["space"]) == ({}, {}, [])
    assert (other.counts, other.slowest["other"]) == ({SAVES: 2}, [slow("far", 2)])


@covers(Ledger.clear_queries)
def test_cleared_queries_do_not_come_back_from_other_processes(ledger: Ledger) -> None:
    ledger.add(Tally({SEARCHES: 1}, slowest={"space": [slow("secret", 1)]}))
    ledger.clear_queries()
    ledger.add(Tally(slowest={"space": [slow("secret", 2)]}))
    later = slow("later", 3, datetime.now(UTC))
    ledger.add(Tally(slowest={"space": [later]}))
    tally = ledger.read("space")
    assert [each.query for each in tally.slowest["space"]] == ["later"]
    assert tally.counts == {SEARCHES: 1}
