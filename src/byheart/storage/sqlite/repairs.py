"""Repair a store: rebuild data derived from texts, metadata and vectors, wholly or in part."""

from __future__ import annotations

import contextlib
from typing import Any

import apsw

from byheart.index.index import Index
from byheart.storage.sql import writing
from byheart.storage.sql.index_source import SqlIndexSource
from byheart.storage.sql.rows import CHUNK, UNEMBEDDED_TYPES, to_chunk
from byheart.storage.sqlite import files
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.database import Database
from byheart.system.private_files import make_private

_BATCH = 2000
# Rows that belong to another row, and mean nothing without it.
BELONGINGS = {
    "tags": ("memory_no", "memories"),
    "memory_entities": ("memory_no", "memories"),
    "history": ("memory_no", "memories"),
    "vectors": ("chunk_no", "chunks"),
    "pending_vectors": ("chunk_no", "chunks"),
    "emitted": ("chunk_no", "chunks"),
    "entity_aliases": ("entity_no", "entities"),
}
_WITHOUT_ENTITY = "entity_no NOT IN (SELECT entity_no FROM entities)"
_UNEMBEDDED = f"""
    SELECT chunk_no FROM chunks WHERE chunk_type NOT IN {UNEMBEDDED_TYPES} AND chunk_no NOT IN (
        SELECT chunk_no FROM vectors JOIN models USING (model_no)
        WHERE name = (SELECT value FROM store WHERE key = 'model'))"""


def rebuild_words(connection: SqliteConnection) -> None:
    """Rebuild the keyword entries from the chunks."""
    connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('delete-all')")
    last = 0
    while rows := _chunk_rows(connection, "c.chunk_no > ?", last):
        last = _insert_words(connection, rows)


def add_missing_words(connection: SqliteConnection) -> None:
    """Add missing keyword entries of chunks, and remove entries without a chunk."""
    missing = "c.chunk_no > ? AND c.chunk_no NOT IN (SELECT rowid FROM chunk_words)"
    last = 0
    while rows := _chunk_rows(connection, missing, last):
        last = _insert_words(connection, rows)
    connection.execute(
        "DELETE FROM chunk_words WHERE rowid IN "
        "(SELECT id FROM chunk_words_docsize WHERE id NOT IN (SELECT chunk_no FROM chunks))"
    )


def _chunk_rows(connection: SqliteConnection, condition: str, after: int) -> list[Any]:
    return connection.execute(
        f"SELECT {CHUNK}, m.title, m.summary FROM chunks c JOIN memories m USING (memory_no) "
        f"WHERE {condition} ORDER BY c.chunk_no LIMIT {_BATCH}",
        (after,),
    ).fetchall()


def _insert_words(connection: SqliteConnection, rows: list[Any]) -> int:
    for row in rows:
        writing.insert_words(connection, row[0], to_chunk(row[1:10]), row[10], row[11])
    return int(rows[-1][0])


def rebuild_indexes(connection: SqliteConnection) -> None:
    """Rebuild SQLite's own indexes, if SQLite can still read them well enough to replace them."""
    with contextlib.suppress(apsw.CorruptError):  # the next check reports what is left
        connection.execute("REINDEX")


def rebuild_pending(connection: SqliteConnection) -> None:
    """Queue exactly the chunks that lack vectors of the store's model."""
    connection.execute("DELETE FROM pending_vectors")
    connection.execute(f"INSERT INTO pending_vectors {_UNEMBEDDED}")


def drop_ill_sized_vectors(connection: SqliteConnection) -> None:
    """Remove vectors whose length differs from their model's; they are made again later."""
    connection.execute(
        "DELETE FROM vectors WHERE (chunk_no, model_no) IN "
        "(SELECT chunk_no, model_no FROM vectors JOIN models USING (model_no) "
        " WHERE length(embedding) != 4 * dimensions)"
    )
    rebuild_pending(connection)


def drop_unused_entities(connection: SqliteConnection) -> None:
    """Remove entities that no memory names."""
    connection.execute(
        "DELETE FROM entities WHERE entity_no NOT IN (SELECT entity_no FROM memory_entities)"
    )


def drop_belongings_of_nothing(connection: SqliteConnection) -> None:
    """Remove tags, entities, history and vectors of memories and chunks that no longer exist."""
    for table, (column, owner) in BELONGINGS.items():
        connection.execute(
            f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {column} FROM {owner})"
        )
    connection.execute(f"DELETE FROM memory_entities WHERE {_WITHOUT_ENTITY}")


def begin_history(connection: SqliteConnection) -> None:
    """Add the first event to the history of memories that lack it."""
    connection.execute(
        "INSERT INTO history (memory_no, operation, at, who) "
        "SELECT memory_no, 'create', created_at, ifnull(agent_id, source) FROM memories "
        "WHERE version_of IS NULL AND memory_no NOT IN (SELECT memory_no FROM history)"
    )


def remove_leftovers(database: Database, _index: Index) -> None:
    """Remove files that were left behind half-written."""
    files.remove_leftovers(database.path)


def accept_present_state(database: Database, _index: Index) -> None:
    """Accept missing changes as lost: from now on the present store counts as complete."""
    with database.reading() as connection:
        database.change_mark.accept(connection)


def make_files_private(database: Database, _index: Index) -> None:
    """Remove the permissions of all users but the owner from the store's files."""
    for path in files.all_of(database.path):
        with contextlib.suppress(OSError):  # the next check reports what is left
            make_private(path)


def empty_log(database: Database, _index: Index) -> None:
    """Write the log into the database and truncate it, if nobody reads from it."""
    with database.maintaining() as connection:
        connection.set_busy_timeout(1000)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def rebuild_index_file(database: Database, index: Index) -> None:
    """Rebuild the search index."""
    index.discard()
    with database.reading() as connection:
        index.view(SqlIndexSource(connection))
    with contextlib.suppress(OSError):
        index.publish()
