"""Keep the counts of all processes in tables of the store.

The counts are not essential. A commit of counts does not wait for the disk, no statement waits long
for another process, and a ledger that cannot be read or written says so without an error.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow, tuple_row

from byheart.contracts import Count, Tally
from byheart.errors import StoreError
from byheart.model import SlowQuery
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sql.bench_runs import RUNS_KEPT, dump_run, load_runs

Connect = Callable[[], AbstractContextManager[psycopg.Connection[Any]]]

_SLOTS = 16
_SLOWEST_KEPT = 10
_LOCK_MILLISECONDS = 1000
_STATEMENT_MILLISECONDS = 5000
# The clocks of two machines may differ by this much.
_CLOCK_MICROS = 60_000_000

_FAILURES = (psycopg.Error, StoreError, OSError)

_ADD_MOMENTS = """
    INSERT INTO {schema}.ledger_moments (space, name, at)
    SELECT space, 'since', %s FROM unnest(%s::text[]) AS given (space)
    ON CONFLICT DO NOTHING"""
_ADD_COUNTS = """
    INSERT INTO {schema}.ledger_counts AS kept (space, name, kind, bucket, slot, value)
    SELECT space, name, kind, bucket, %s, value
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::integer[], %s::double precision[])
        AS given (space, name, kind, bucket, value)
    ON CONFLICT (space, name, kind, bucket, slot) DO UPDATE SET value = kept.value + excluded.value
    """
_ADD_LATEST = """
    INSERT INTO {schema}.ledger_latest (kind, slot, value, written)
    SELECT kind, %s, value, clock_timestamp()
    FROM unnest(%s::text[], %s::double precision[]) AS given (kind, value)
    ON CONFLICT (kind, slot) DO UPDATE SET value = excluded.value, written = excluded.written"""
# A query from before the clearing must not come back. A query with a time in the future must not
# either: the clock was set back, and its real time is unknown.
_ADD_SLOWEST = """
    INSERT INTO {schema}.ledger_slowest (space, kind, elapsed_ms, at, query)
    SELECT given.*
    FROM unnest(%s::text[], %s::text[], %s::double precision[], %s::bigint[], %s::bytea[])
        AS given (space, kind, elapsed_ms, at, query)
    WHERE given.at <= %s AND given.at > coalesce((
        SELECT at + CASE WHEN host = %s THEN 0 ELSE %s END
        FROM {schema}.ledger_moments WHERE space = '' AND name = 'cleared'), 0)"""
_TRIM_SLOWEST = """
    DELETE FROM {schema}.ledger_slowest WHERE ctid IN (
        SELECT ctid FROM {schema}.ledger_slowest WHERE ctid IN (
            SELECT ctid FROM (
                SELECT ctid, row_number() OVER (
                    PARTITION BY space, kind ORDER BY elapsed_ms DESC, at) AS place
                FROM {schema}.ledger_slowest WHERE space = ANY (%s)) AS placed
            WHERE place > %s)
        FOR UPDATE SKIP LOCKED)"""
_ADD_RUN = """
    INSERT INTO {schema}.ledger_benches (space, at, run) VALUES (%s, %s, %s)
    ON CONFLICT (space, at) DO UPDATE SET run = excluded.run"""
_TRIM_RUNS = """
    DELETE FROM {schema}.ledger_benches WHERE space = %s AND at NOT IN (
        SELECT at FROM {schema}.ledger_benches WHERE space = %s ORDER BY at DESC LIMIT %s)"""
_MARK_CLEARED = """
    INSERT INTO {schema}.ledger_moments (space, name, at, host) VALUES ('', 'cleared', %s, %s)
    ON CONFLICT (space, name) DO UPDATE SET at = excluded.at, host = excluded.host"""


def _compose(text: str, schema: str) -> sql.Composed:
    return sql.SQL(text).format(schema=sql.Identifier(schema))


class PostgresLedger:
    """Keep the counts of every process that has a store open, in the schema of the store."""

    def __init__(self, connect: Connect, schema: str) -> None:
        self._connect = connect
        self._schema = schema
        self._slot = secrets.randbelow(_SLOTS)
        self._host = socket.gethostname()

    def add(self, tally: Tally) -> bool:
        """Add the counts and runs of one process; say whether they could be written."""
        try:
            with self._transaction() as run:
                self._add(run, tally)
        except _FAILURES:
            return False
        return True

    def _add(self, run: _Run, tally: Tally) -> None:
        spaces = sorted({count.space for count in tally.counts} | set(tally.slowest))
        now = now_micros()
        if spaces:
            run(_ADD_MOMENTS, now, spaces)
        if tally.counts:
            # Processes that share a slot lock its rows in the same order.
            counts = sorted(tally.counts)
            columns = [list(column) for column in zip(*counts, strict=True)]
            run(_ADD_COUNTS, self._slot, *columns, [float(tally.counts[each]) for each in counts])
        if tally.latest:
            kinds = sorted(tally.latest)
            run(_ADD_LATEST, self._slot, kinds, [float(tally.latest[kind]) for kind in kinds])
        slowest = [
            (space, each.kind, each.elapsed_ms, to_micros(each.at), _encode(each.query))
            for space, queries in tally.slowest.items()
            for each in queries
        ]
        if slowest:
            columns = [list(column) for column in zip(*slowest, strict=True)]
            run(_ADD_SLOWEST, *columns, now, self._host, _CLOCK_MICROS)
            run(_TRIM_SLOWEST, sorted(tally.slowest), _SLOWEST_KEPT)
        for each in tally.runs:
            run(_ADD_RUN, each.space, to_micros(each.at), dump_run(each))
            run(_TRIM_RUNS, each.space, each.space, RUNS_KEPT)

    def read(self, space: str) -> Tally:
        """Give the counts of a space and of the whole store, and the runs of the space."""
        with contextlib.suppress(*_FAILURES), self._transaction() as run:
            return self._read(run, space)
        return Tally()

    def _read(self, run: _Run, space: str) -> Tally:
        since = run(
            "SELECT min(at) FROM {schema}.ledger_moments WHERE name = 'since' AND space = ANY (%s)",
            ["", space],
        )
        counts = run(
            "SELECT space, name, kind, bucket, sum(value) FROM {schema}.ledger_counts "
            "WHERE space = ANY (%s) GROUP BY space, name, kind, bucket",
            ["", space],
        )
        slowest = run(
            "SELECT kind, query, elapsed_ms, at FROM {schema}.ledger_slowest WHERE space = %s",
            space,
        )
        latest = run(
            "SELECT DISTINCT ON (kind) kind, value FROM {schema}.ledger_latest "
            "ORDER BY kind, written DESC"
        )
        runs = run("SELECT run FROM {schema}.ledger_benches WHERE space = %s ORDER BY at", space)
        began = since[0][0]
        return Tally(
            {Count(*row[:4]): row[4] for row in counts},
            dict(latest),
            {
                space: [
                    SlowQuery(kind, _decode(query), elapsed_ms, from_micros(at))
                    for kind, query, elapsed_ms, at in slowest
                ]
            },
            None if began is None else from_micros(began),
            load_runs(row[0] for row in runs),
        )

    def reset(self, space: str) -> None:
        """Reset the counts of a space and of the whole store."""
        spaces = ["", space]
        with contextlib.suppress(*_FAILURES), self._transaction() as run:
            run("DELETE FROM {schema}.ledger_counts WHERE space = ANY (%s)", spaces)
            run("DELETE FROM {schema}.ledger_slowest WHERE space = %s", space)
            run("DELETE FROM {schema}.ledger_latest")
            run(
                "UPDATE {schema}.ledger_moments SET at = %s "
                "WHERE name = 'since' AND space = ANY (%s)",
                now_micros(),
                spaces,
            )

    def clear_queries(self) -> None:
        """Remove the text of every query, also of past queries that other processes add later."""
        # TRUNCATE also removes the bytes, but a role may lack the right to it.
        for remove in ("TRUNCATE", "DELETE FROM"):
            with contextlib.suppress(*_FAILURES), self._transaction(durable=True) as run:
                run(remove + " {schema}.ledger_slowest")
                run(_MARK_CLEARED, now_micros(), self._host)
                return

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[_Run]:
        with self._connect() as connection, connection.transaction():
            run = _Run(connection, self._schema)
            run(
                "SELECT set_config('synchronous_commit', %s, true), "
                "set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
                "on" if durable else "off",
                str(_LOCK_MILLISECONDS),
                str(_STATEMENT_MILLISECONDS),
            )
            yield run


class _Run:
    """Run statements in the transaction of a connection."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def __call__(self, statement: str, *values: object) -> list[TupleRow]:
        """Run a statement, and give its rows."""
        with self._connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(_compose(statement, self._schema), values)
            return cursor.fetchall() if cursor.description else []


def _encode(query: str) -> bytes:
    return query.encode("utf-8", "surrogatepass")


def _decode(query: bytes) -> str:
    return bytes(query).decode("utf-8", "surrogatepass")
