"""Keep the counts of all processes in a small separate database, which never delays the store.

The counts are not essential. A damaged, missing or incompatible ledger starts again from zero. A
busy or unwritable ledger says so, and the caller keeps its counts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from byheart.contracts import Count, Tally
from byheart.model import BenchRun, SlowQuery
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sql.bench_runs import RUNS_KEPT, dump_run, load_runs
from byheart.system.forks import working

_VERSION = 1
_BUSY_MILLISECONDS = 1000
_SLOWEST_KEPT = 10
_SCHEMA = f"""
    CREATE TABLE counts (
        space TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, bucket INTEGER NOT NULL,
        value REAL NOT NULL, PRIMARY KEY (space, name, kind, bucket)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE latest (kind TEXT PRIMARY KEY, value REAL NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE slowest (
        space TEXT NOT NULL, kind TEXT NOT NULL, elapsed_ms REAL NOT NULL, at INTEGER NOT NULL,
        query TEXT NOT NULL
    ) STRICT;
    CREATE INDEX slowest_by_kind ON slowest (space, kind, elapsed_ms);
    CREATE TABLE moments (
        space TEXT NOT NULL, name TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (space, name)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = {_VERSION};
"""
_PRAGMAS = (
    "PRAGMA synchronous = OFF",  # a power cut loses only a few counts
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
)
_TRIM = """
    DELETE FROM slowest WHERE rowid IN (
        SELECT rowid FROM (
            SELECT rowid, row_number() OVER (
                PARTITION BY space, kind ORDER BY elapsed_ms DESC, at) AS place FROM slowest)
        WHERE place > ?)"""


_BENCHES = """
    CREATE TABLE IF NOT EXISTS benches (
        space TEXT NOT NULL, at INTEGER NOT NULL, run TEXT NOT NULL, PRIMARY KEY (space, at)
    ) STRICT, WITHOUT ROWID"""


def _keep_run(connection: apsw.Connection, run: BenchRun) -> None:
    """Keep the figures of a benchmark run, and of the latest runs before it."""
    # Create the table when it is first needed: a new schema version would lose all counts.
    connection.execute(_BENCHES)
    row = (run.space, to_micros(run.at), dump_run(run))
    connection.execute("INSERT OR REPLACE INTO benches VALUES (?, ?, ?)", row)
    connection.execute(
        "DELETE FROM benches WHERE space = ?1 AND at NOT IN (SELECT at FROM benches "
        "WHERE space = ?1 ORDER BY at DESC LIMIT ?2)",
        (run.space, RUNS_KEPT),
    )


def _read_runs(connection: apsw.Connection, space: str) -> tuple[BenchRun, ...]:
    """Give the figures of the benchmark runs that are kept, oldest first."""
    select = "SELECT run FROM benches WHERE space = ? ORDER BY at"
    with contextlib.suppress(apsw.SQLError):  # no run was kept so far
        return load_runs(row[0] for row in connection.execute(select, (space,)))
    return ()


class SqliteLedger:
    """Keep the counts of every process that has a store open, in the file beside it."""

    def __init__(self, path: Path, store: Path) -> None:
        self.path = path
        self._store = store

    def add(self, tally: Tally) -> bool:
        """Add the counts and runs of one process; say whether they could be written."""
        try:
            try:
                self._write(tally)
            except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
                self._start_anew()
                self._write(tally)
        except (apsw.Error, OSError):
            return False
        return True

    def _write(self, tally: Tally) -> None:
        spaces = {count.space for count in tally.counts} | set(tally.slowest)
        with self._connected(create=True) as connection:
            assert connection is not None
            now = now_micros()
            connection.executemany(
                "INSERT OR IGNORE INTO moments VALUES (?, 'since', ?)",
                ((space, now) for space in spaces),
            )
            connection.executemany(
                "INSERT INTO counts VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET value = value + excluded.value",
                ((*count, number) for count, number in tally.counts.items()),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO latest VALUES (?, ?)", tally.latest.items()
            )
            connection.executemany(
                # A query from before the clearing must not come back. A query with a time in the
                # future must not either: the clock was set back, and its real time is unknown.
                "INSERT INTO slowest SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?4 <= ?6 AND ?4 > "
                "ifnull((SELECT at FROM moments WHERE space = '' AND name = 'cleared'), 0)",
                (
                    (space, each.kind, each.elapsed_ms, to_micros(each.at), each.query, now)
                    for space, queries in tally.slowest.items()
                    for each in queries
                ),
            )
            connection.execute(_TRIM, (_SLOWEST_KEPT,))
            for run in tally.runs:
                _keep_run(connection, run)

    def read(self, space: str) -> Tally:
        """Give the counts of a space and of the whole store, and the runs of the space."""
        with contextlib.suppress(apsw.Error, OSError):
            return self._read(space)
        return Tally()

    def _read(self, space: str) -> Tally:
        with self._connected() as connection:
            if connection is None:
                return Tally()
            since = connection.execute(
                "SELECT min(at) FROM moments WHERE name = 'since' AND space IN ('', ?)", (space,)
            ).get
            counts = {
                Count(*row[:4]): row[4]
                for row in connection.execute(
                    "SELECT * FROM counts WHERE space IN ('', ?)", (space,)
                )
            }
            slowest = [
                SlowQuery(kind, query, elapsed_ms, from_micros(at))
                for kind, query, elapsed_ms, at in connection.execute(
                    "SELECT kind, query, elapsed_ms, at FROM slowest WHERE space = ?", (space,)
                )
            ]
            latest = {row[0]: row[1] for row in connection.execute("SELECT * FROM latest")}
            runs = _read_runs(connection, space)
        began = None if since is None else from_micros(since)
        return Tally(counts, latest, {space: slowest}, began, runs)

    def reset(self, space: str) -> None:
        """Reset the counts of a space and of the whole store."""
        with contextlib.suppress(apsw.Error, OSError), self._connected() as connection:
            if connection is not None:
                connection.execute("DELETE FROM counts WHERE space IN ('', ?)", (space,))
                connection.execute("DELETE FROM slowest WHERE space = ?", (space,))
                connection.execute("DELETE FROM latest")
                connection.execute(
                    "UPDATE moments SET at = ? WHERE name = 'since' AND space IN ('', ?)",
                    (now_micros(), space),
                )

    def clear_queries(self) -> None:
        """Remove the text of every query, also of past queries that other processes add later."""
        try:
            self._clear_queries()
        except (apsw.Error, OSError):
            # Losing all counts is better than keeping a text that has to be forgotten.
            with contextlib.suppress(apsw.Error, OSError):
                self._start_anew()
                self._clear_queries()

    def _clear_queries(self) -> None:
        with self._connected(create=True) as connection:
            assert connection is not None
            connection.execute("DELETE FROM slowest")
            connection.execute(
                "INSERT OR REPLACE INTO moments VALUES ('', 'cleared', ?)", (now_micros(),)
            )

    @contextmanager
    def _connected(self, *, create: bool = False) -> Iterator[apsw.Connection | None]:
        """Open the file for one transaction; no connection stays open."""
        with working(self.path):
            if self._exists(create):
                with self._transaction() as connection:
                    yield connection
            else:
                yield None

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(_BUSY_MILLISECONDS)
            for pragma in _PRAGMAS:
                connection.execute(pragma)
            connection.transaction_mode = "IMMEDIATE"
            with connection:
                version = connection.execute("PRAGMA user_version").get
                if version == 0:
                    connection.execute(_SCHEMA)
                elif version != _VERSION:
                    raise apsw.SQLError(f"of version {version}, not {_VERSION}")
                yield connection
        finally:
            connection.close()

    def _exists(self, create: bool) -> bool:
        if self.path.exists() or not create:
            return self.path.exists()
        # A user who may not read the store must not read its queries either.
        mode = self._store.stat().st_mode & 0o777
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
        return True

    def _start_anew(self) -> None:
        for path in (self.path, self.path.with_name(f"{self.path.name}-journal")):
            path.unlink(missing_ok=True)
