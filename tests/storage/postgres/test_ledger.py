"""The ledger in PostgreSQL keeps the promises of `Ledger`, and never delays or fails a caller."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import psycopg
import pytest

from byheart.contracts import Count, Ledger, Tally
from byheart.errors import StoreUnreachable
from byheart.model import BenchFigures, BenchRun
from byheart.storage.postgres import ledger as ledger_module
from byheart.storage.postgres.ledger import PostgresLedger
from tests.contracts.test_ledger import (
    SEARCHES,
    slow,
    test_a_reset_clears_a_space_and_the_whole_store_but_no_other_space,
    test_cleared_queries_do_not_come_back_from_other_processes,
    test_counts_add_up_by_space_and_the_last_value_stays,
    test_the_slowest_queries_and_the_latest_runs_of_a_space_are_kept,
)
from tests.postgres_stores import schema_script

__all__ = [
    "test_a_reset_clears_a_space_and_the_whole_store_but_no_other_space",
    "test_cleared_queries_do_not_come_back_from_other_processes",
    "test_counts_add_up_by_space_and_the_last_value_stays",
    "test_the_slowest_queries_and_the_latest_runs_of_a_space_are_kept",
]

SCHEMA = "select"  # a name that has to be quoted


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection]:
    with closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        connection.execute(f'CREATE SCHEMA "{SCHEMA}"'.encode())
        connection.execute(schema_script("0001_ledger", SCHEMA))
        connection.execute(f'SET search_path = "{SCHEMA}"'.encode())
        yield connection


def open_ledger(url: str) -> PostgresLedger:
    return PostgresLedger(lambda: psycopg.connect(url), SCHEMA)


@pytest.fixture
def ledger(postgres_url: str, connection: psycopg.Connection) -> Ledger:
    return open_ledger(postgres_url)


def test_counts_of_many_processes_with_one_slot_add_up(
    postgres_url: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module.secrets, "randbelow", lambda _: 3)
    counts = [Count("space", "query", "hybrid", n) for n in range(200)]

    added: list[bool] = []

    def add(order: list[Count]) -> None:
        own = open_ledger(postgres_url)
        for _ in range(10):
            added.append(own.add(Tally(dict.fromkeys(order, 1), {"catch_up": 1.0})))

    # Two processes that lock the same rows in another order would wait for one another for ever.
    threads = [Thread(target=add, args=(counts[:: (-1) ** n],)) for n in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert added == [True] * 60
    assert ledger.read("space").counts == dict.fromkeys(counts, 60)


def test_a_slot_keeps_one_row_of_a_count(
    postgres_url: str,
    connection: psycopg.Connection,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for slot in (3, 3, 5):
        monkeypatch.setattr(ledger_module.secrets, "randbelow", lambda _, slot=slot: slot)
        open_ledger(postgres_url).add(Tally({SEARCHES: 2}, {"catch_up": slot}))
    rows = connection.execute("SELECT slot, value FROM ledger_counts ORDER BY slot").fetchall()
    assert rows == [(3, 4.0), (5, 2.0)]
    assert ledger.read("space").counts == {SEARCHES: 6}
    assert ledger.read("space").latest == {"catch_up": 5}


def test_counts_do_not_wait_for_the_disk(
    connection: psycopg.Connection, ledger: PostgresLedger
) -> None:
    connection.execute("CREATE TABLE seen (value text)")
    connection.execute(
        f"""CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO "{SCHEMA}".seen VALUES (current_setting('synchronous_commit'));
        RETURN NULL; END $$""".encode()
    )
    for table in ("ledger_counts", "ledger_moments"):
        connection.execute(
            f"CREATE TRIGGER note AFTER INSERT ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION note()".encode()
        )
    ledger.add(Tally({SEARCHES: 1}))
    assert connection.execute("SELECT DISTINCT value FROM seen").fetchall() == [("off",)]
    connection.execute("DELETE FROM seen")
    ledger.clear_queries()
    assert connection.execute("SELECT DISTINCT value FROM seen").fetchall() == [("on",)]


@pytest.mark.parametrize("query", ["a\x00b", "half \ud800 a pair", "Grüße, 世界", ""])
def test_every_query_comes_back_as_it_was(ledger: Ledger, query: str) -> None:
    assert ledger.add(Tally(slowest={"space": [slow(query, 1)]}))
    assert [each.query for each in ledger.read("space").slowest["space"]] == [query]


def test_cleared_queries_leave_no_bytes_and_no_statistics(
    connection: psycopg.Connection, ledger: Ledger
) -> None:
    ledger.add(Tally(slowest={"space": [slow(f"secret {n}", n) for n in range(10)]}))
    connection.execute("ANALYZE ledger_slowest")
    found = connection.execute(
        "SELECT attname FROM pg_stats WHERE tablename = 'ledger_slowest' ORDER BY attname"
    ).fetchall()
    assert found
    assert ("query",) not in found
    ledger.clear_queries()
    assert connection.execute("SELECT pg_relation_size('ledger_slowest')").fetchone() == (0,)


def test_queries_are_also_cleared_without_the_right_to_truncate(
    postgres_url: str, connection: psycopg.Connection, ledger: Ledger
) -> None:
    connection.execute("DROP ROLE IF EXISTS plain")
    connection.execute("CREATE ROLE plain LOGIN")
    try:
        connection.execute(f'GRANT USAGE ON SCHEMA "{SCHEMA}" TO plain'.encode())
        connection.execute(
            f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{SCHEMA}" '
            "TO plain".encode()
        )
        ledger.add(Tally(slowest={"space": [slow("secret", 1)]}))
        open_ledger(postgres_url.replace("postgres@", "plain@")).clear_queries()
        assert ledger.read("space").slowest == {"space": []}
    finally:
        connection.execute("DROP OWNED BY plain")
        connection.execute("DROP ROLE plain")


def test_another_machine_may_have_another_clock(
    postgres_url: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = open_ledger(postgres_url)
    monkeypatch.setattr(ledger_module.socket, "gethostname", lambda: "elsewhere")
    far = open_ledger(postgres_url)
    far.clear_queries()
    here.add(Tally(slowest={"space": [slow("perhaps before", 1, datetime.now(UTC))]}))
    assert here.read("space").slowest == {"space": []}
    far.add(Tally(slowest={"space": [slow("after", 1, datetime.now(UTC))]}))
    assert [each.query for each in here.read("space").slowest["space"]] == ["after"]


def test_a_query_of_the_future_is_not_kept(ledger: Ledger) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert ledger.add(Tally({SEARCHES: 1}, slowest={"space": [slow("secret", 1, tomorrow)]}))
    assert ledger.read("space").slowest == {"space": []}


def test_the_latest_fifty_runs_are_kept(connection: psycopg.Connection, ledger: Ledger) -> None:
    figures = (BenchFigures("hybrid", 9, 0.5, 0.4, 1, 2, 3, 4.0, 5.0),)
    first = BenchRun(datetime(2026, 5, 1, tzinfo=UTC), "space", 0, "model", 1, 10, figures)
    runs = [replace(first, at=first.at + timedelta(n)) for n in range(53)]
    ledger.add(Tally(runs=tuple(runs)))
    ledger.add(Tally(runs=(runs[-1],)))
    assert ledger.read("space").runs == tuple(runs[3:])
    connection.execute("UPDATE ledger_benches SET run = '{}'")
    assert ledger.read("space").runs == ()


def test_a_lock_of_another_session_delays_nobody(
    postgres_url: str, connection: psycopg.Connection, ledger: Ledger
) -> None:
    with connection.transaction():
        connection.execute("LOCK TABLE ledger_counts, ledger_slowest")
        began = time.monotonic()
        assert not ledger.add(Tally({SEARCHES: 1}))
        assert ledger.read("space") == Tally()
        assert time.monotonic() - began < 15
    assert ledger.add(Tally({SEARCHES: 1}))


def test_a_ledger_that_cannot_be_used_never_fails_a_caller(
    postgres_url: str, connection: psycopg.Connection
) -> None:
    @contextmanager
    def unreachable() -> Iterator[psycopg.Connection]:
        raise StoreUnreachable("no server", "start it")
        yield

    connection.execute("DROP TABLE ledger_counts, ledger_slowest")
    absent = psycopg.conninfo.make_conninfo(postgres_url, dbname="absent")
    for each in (
        PostgresLedger(unreachable, SCHEMA),
        PostgresLedger(lambda: psycopg.connect(absent), SCHEMA),
        open_ledger(postgres_url),
    ):
        assert not each.add(Tally({SEARCHES: 1}))
        assert each.read("space") == Tally()
        each.reset("space")
        each.clear_queries()


def test_a_connection_that_is_reused_has_its_settings_back(
    postgres_url: str, connection: psycopg.Connection
) -> None:
    @contextmanager
    def same() -> Iterator[psycopg.Connection]:
        yield connection

    ledger = PostgresLedger(same, SCHEMA)
    assert ledger.add(Tally({SEARCHES: 1}))
    for name, value in (("synchronous_commit", "on"), ("statement_timeout", "0")):
        assert connection.execute("SELECT current_setting(%s)", (name,)).fetchone() == (value,)
