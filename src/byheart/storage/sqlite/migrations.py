"""Apply numbered schema changes, each once, in a transaction, after a backup."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import apsw

from byheart.errors import Hint, StoreDamaged, StoreTooNew, StoreUnreachable, name_store
from byheart.startup.late_patterns import late_pattern
from byheart.storage.sqlite.change_mark import Change
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.files import size
from byheart.storage.sqlite.schema import steps_in_python as steps

_FILE = late_pattern(r"(\d{4})_\w+\.sql")
APPLICATION_ID = 0x42794872  # "ByHr": distinguishes a store from any other SQLite file


@cache
def known_migrations() -> tuple[tuple[int, Path], ...]:
    """List the schema changes this version knows, by number, and the file of each."""
    return tuple(
        sorted(
            (int(match.group(1)), each)
            for each in Path(steps.__file__).parent.iterdir()
            if (match := _FILE.fullmatch(each.name))
        )
    )


def migrate(database: Database, finish: Callable[[SqliteConnection], None]) -> int:
    """Migrate the store to this version's schema, refuse writes to a newer one, give its number.

    Schema changes run none of today's code: they only record which derived data is outdated.
    `finish` is called after the last one, in the same transaction, and rebuilds that data. Compare
    the store with its change mark as well.
    """
    _refuse_emptied(database)
    # Read the mark before opening the store, so that the store can only be newer.
    known = database.change_mark.read()
    database.schema_version = _bring_up(database, known, finish)
    return database.schema_version


def _refuse_emptied(database: Database) -> None:
    """Refuse an emptied file: SQLite would take it for a new store and delete its log."""
    path, mark = database.path, database.change_mark
    if not path.exists():
        mark.forget()  # it belongs to a store that was deleted
        return
    known = mark.read() if not size(path) else None
    # Another process that makes the store at this moment writes the mark last.
    if known is not None and not size(path):
        raise StoreDamaged(
            Hint(
                name_store(str(path)), f" is empty, but {known.change_no:,} changes were made to it"
            ),
            "nothing was changed; put a backup in its place. To begin anew, delete it and files "
            f"whose names begin with {path.name}-",
        )


def _bring_up(
    database: Database, known: Change | None, finish: Callable[[SqliteConnection], None]
) -> int:
    migrations = known_migrations()
    latest = migrations[-1][0]
    with database.reading() as connection:
        current = _version(connection)
        _refuse_foreign(connection, database, current, latest)
        has_log = connection.execute("PRAGMA journal_mode").get == "wal"
        if current == latest:
            database.change_mark.check(connection, known)
    if database.writable and not has_log:
        _use_write_ahead_log(database)
    if current == latest:
        return latest
    if not database.writable:
        raise StoreUnreachable(
            f"{database.path} has schema {current}, this version needs {latest}, "
            "and it cannot be written to",
            "open it once from where it can be written",
        )
    with database.writing() as connection:
        # Another process may have migrated the store meanwhile.
        current = _version(connection)
        _refuse_foreign(connection, database, current, latest)
        if 0 < current < latest:
            _back_up(database, current)
        for number, script in migrations:
            if number > current:
                _apply(connection, number, script)
        finish(connection)
    with database.reading() as connection:
        database.change_mark.check(connection, known)
    return latest


def _apply(connection: apsw.Connection, number: int, script: Path) -> None:
    for _ in connection.execute(script.read_text(encoding="utf-8")):
        pass
    if number in steps.STEPS:
        steps.STEPS[number](connection)
    if number == 1:
        import uuid

        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("INSERT INTO store VALUES ('store_id', ?)", (uuid.uuid4().hex,))
    connection.execute(f"PRAGMA user_version = {number}")


def _version(connection: apsw.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").get)


def _refuse_foreign(
    connection: apsw.Connection, database: Database, current: int, latest: int
) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if tables and connection.execute("PRAGMA application_id").get != APPLICATION_ID:
        raise StoreDamaged(
            f"{database.path} is an SQLite database, but not a Byheart store",
            "choose another file (setting db_path); this one was left as it is",
        )
    if current > latest:
        raise StoreTooNew(
            f"{database.path} was written by a newer version of Byheart "
            f"(schema {current}; this version knows {latest})",
            "upgrade with: pip install -U byheart",
        )


def _use_write_ahead_log(database: Database) -> None:
    """Enable the write-ahead log, so that readers and a writer can work at the same time.

    A copied store may have lost this setting.
    """
    with database.maintaining() as connection:
        # Switching the journal mode does not wait for other processes that do the same.
        deadline = time.monotonic() + 10
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _back_up(database: Database, version: int) -> None:
    """Copy the store while nobody can write to it."""
    from byheart.storage.sqlite.copying import copy

    copy(database, database.path.with_name(f"{database.path.name}.backup-schema-{version}"))
