"""Repair a PostgreSQL store: keywords, sequences, indexes and statistics of the server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg

from byheart.contracts import NUMBER_BITS
from byheart.storage.postgres.connection import LAST_GIVEN, PostgresConnection
from byheart.storage.postgres.database import Database
from byheart.storage.postgres.migrations import statistics_to_drop
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.repairs import add_missing_words as insert_missing_words
from byheart.storage.sql.repairs import (
    drop_unused_entities,
    insert_all_words,
    rebuild_pending,
)
from byheart.storage.sql.row_checks import missing_words

# The log of changes keeps this many of the latest changes of each space.
_CHANGES_KEPT = 10_000
_PAUSE_SECONDS = 0.05
_COUNT = (1 << NUMBER_BITS) - 1
_NUMBERED = {
    "memories": f"memory_no & {_COUNT}",
    "vectors": f"vector_no & {_COUNT}",
    "changes": f"change_no & {_COUNT}",
    "entities": "entity_no",
    "history": "history_no",
    "workspaces": "workspace_no",
}
_SEQUENCES = ("numbers", "chunk_numbers", "space_numbers")
_INVALID = """
    SELECT format('%I.%I', n.nspname, c.relname) FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY(?) AND NOT i.indisvalid ORDER BY 1"""


def rebuild(database: Database, spaces: Sequence[str | None]) -> None:
    """Rebuild keywords, the queue for vectors and the server's indexes."""
    rebuild_words(database, spaces)
    with database.writing(None) as connection:
        drop_unused_entities(connection)
        rebuild_pending(connection)
    # One table at a time: writers wait only for the indexes of that table.
    for schema in database.schemas:
        for table in tables_in(database, schema):
            with database.locking() as raw:
                raw.execute(f"REINDEX TABLE {table}")


def rebuild_words(database: Database, spaces: Sequence[str | None]) -> None:
    """Rebuild the keyword entries from the chunks, one space after the other."""
    for space in spaces:
        with database.writing(space) as connection:
            insert_all_words(connection)  # replaces the entries that are there and differ


def add_missing_words(connection: Connection) -> None:
    """Add missing keyword entries of chunks, and remove entries without a chunk."""
    insert_missing_words(connection, missing_words("chunk_no"))
    for _ in connection.parts():
        connection.run(
            "DELETE FROM chunk_words w WHERE NOT EXISTS "
            "(SELECT 1 FROM chunks c WHERE c.chunk_no = w.chunk_no)"
        )


def may_read_sequences(connection: PostgresConnection) -> bool:
    """Tell whether the role may read the sequences: `SELECT` on all tables is not enough."""
    each = " AND ".join(f"has_sequence_privilege('{name}', 'SELECT')" for name in _SEQUENCES)
    return bool(connection.get(f"SELECT {each}"))


def sequence_states(connection: PostgresConnection) -> list[tuple[str, int, int]]:
    """Give the highest number in use and the last one given out, for each sequence."""
    highest = chunks = 0
    for _ in connection.parts():
        for table, number in _NUMBERED.items():
            found = connection.get(f"SELECT coalesce(max({number}), 0) FROM {table}")
            highest = max(highest, found)
        last = f"SELECT coalesce(max(chunk_no & {_COUNT}), 0) FROM chunks"
        chunks = max(chunks, connection.get(last))
    spaces = connection.get("SELECT coalesce(max(space_no), 0) FROM spaces")
    return [
        (name, number, connection.get(f"SELECT {LAST_GIVEN} FROM {name}"))
        for name, number in zip(_SEQUENCES, (highest, chunks, spaces), strict=True)
    ]


def advance_sequences(database: Database) -> None:
    """Make sequences continue behind the highest number in use."""
    with database.writing(None) as connection:
        for name, highest, last in sequence_states(connection):
            if highest > last:
                connection.get(f"SELECT setval('{database.schema}.{name}', {highest})")


def invalid_indexes(connection: PostgresConnection, database: Database) -> list[str]:
    """Name the indexes that the server does not use."""
    return [row[0] for row in connection.all(_INVALID, (database.schemas,))]


def rebuild_invalid_indexes(database: Database) -> None:
    """Build the indexes again that the server does not use."""
    with database.reading(None) as connection:
        invalid = invalid_indexes(connection, database)
    for index in invalid:
        with database.locking() as raw:
            raw.execute(f"REINDEX INDEX {index}")


def drop_statistics(database: Database) -> None:
    """Make the server take no more samples of texts.

    The samples that it already has stay: ANALYZE skips such a column, and removes nothing.
    """
    with database.connected() as raw:
        statements = statistics_to_drop(raw, database.schemas)
    for statement in statements:
        with database.locking() as raw:
            raw.execute(statement)


def compact(database: Database, spaces: Sequence[str | None]) -> None:
    """Trim the log of each space, then remove dead rows and count rows for the planner.

    Plain VACUUM lets everybody go on working. VACUUM FULL would return more room to the disk, but
    locks out all readers of a table; only the owner of the server can choose the moment for that.
    """
    for space in spaces:
        _trim_log(database, space)
    for schema in database.schemas:
        vacuum(database, tables_in(database, schema), "ANALYZE")


def _trim_log(database: Database, space: str | None) -> None:
    with database.reading(space) as connection:
        first, last = connection.numbers.start, connection.numbers[-1]
        # The last change always stays: every index and index file refers to it.
        before = connection.get(
            "SELECT change_no FROM changes WHERE change_no BETWEEN ? AND ? "
            f"ORDER BY change_no DESC LIMIT 1 OFFSET {_CHANGES_KEPT}",
            (first, last),
        )
    if before is not None:
        with database.writing(space) as connection:
            connection.run("DELETE FROM changes WHERE change_no BETWEEN ? AND ?", (first, before))


def vacuum(database: Database, tables: Sequence[str], *options: str) -> str | None:
    """Remove dead rows of tables, and all entries of indexes that point to them.

    Wait for tables that others maintain for as long as for any lock. Give the reason if a table
    was not done.
    """
    # A lock has no time limit outside of a transaction: skip a table that is locked, and try again.
    chosen = ", ".join((*options, "INDEX_CLEANUP ON", "TRUNCATE", "SKIP_LOCKED"))
    deadline = time.monotonic() + database.busy_seconds
    waiting = list(tables)
    refused: list[str] = []
    while waiting:
        locked = []
        with database.connected() as raw:
            for each in waiting:
                warnings = _warnings(raw, f"VACUUM ({chosen}) {each}")
                if psycopg.errors.LockNotAvailable.sqlstate in warnings:
                    locked.append(each)
                elif warnings:  # the role may not do it: to try again is of no use
                    refused.append(each)
        waiting = locked
        if waiting and time.monotonic() > deadline:
            return f"other sessions kept {_name(waiting)} locked"
        time.sleep(_PAUSE_SECONDS if waiting else 0)
    return f"only their owner may run VACUUM on {_name(refused)}" if refused else None


def _name(tables: Sequence[str]) -> str:
    others = f" and {len(tables) - 1} other tables" if len(tables) > 1 else ""
    return f"{tables[0]}{others}"


def _warnings(raw: psycopg.Connection[Any], statement: str) -> list[str | None]:
    """Run a statement; give the codes of the server's warnings."""
    warnings: list[str | None] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warnings.append(diagnostic.sqlstate)

    raw.add_notice_handler(note)
    try:
        raw.execute(statement)
    finally:
        raw.remove_notice_handler(note)
    return warnings


def tables_in(database: Database, schema: str) -> list[str]:
    """Name the tables of a schema that hold rows."""
    with database.connected() as raw:
        rows = raw.execute(
            "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY 1",
            (schema,),
        ).fetchall()
    return [row[0] for row in rows]
