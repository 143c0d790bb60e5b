"""Repair a SQLite store: its keywords, its indexes, rows that belong to nothing, its files."""

from __future__ import annotations

import contextlib

import apsw

from byheart.storage.sql.connection import Connection
from byheart.storage.sql.repairs import add_missing_words as insert_missing_words
from byheart.storage.sql.repairs import insert_all_words
from byheart.storage.sql.row_checks import missing_words
from byheart.storage.sqlite import files
from byheart.storage.sqlite.database import Database
from byheart.system.private_files import make_private

# `schema/0008_emoji.sql` writes this row.
_WORDS_OUTDATED = "words_outdated"
# Rows that belong to another row, and mean nothing without it.
BELONGINGS = {
    "tags": ("memory_no", "memories"),
    "memory_entities": ("memory_no", "memories"),
    "history": ("memory_no", "memories"),
    "vectors": ("chunk_no", "chunks"),
    "pending_vectors": ("chunk_no", "chunks"),
    "emitted": ("chunk_no", "chunks"),
    "entity_aliases": ("entity_no", "entities"),
    "receipt_memories": ("receipt_id", "receipts"),
}
_WITHOUT_ENTITY = "entity_no NOT IN (SELECT entity_no FROM entities)"


def rebuild_outdated_words(connection: Connection) -> None:
    """Rebuild the keyword entries if a schema change has recorded that they are outdated."""
    if connection.get("SELECT 1 FROM store WHERE key = ?", (_WORDS_OUTDATED,)):
        rebuild_words(connection)


def rebuild_words(connection: Connection) -> None:
    """Rebuild the keyword entries from the chunks."""
    connection.run("DELETE FROM store WHERE key = ?", (_WORDS_OUTDATED,))
    connection.run("INSERT INTO chunk_words (chunk_words) VALUES ('delete-all')")
    insert_all_words(connection)


def add_missing_words(connection: Connection) -> None:
    """Add missing keyword entries of chunks, and remove entries without a chunk."""
    insert_missing_words(connection, missing_words("rowid"))
    connection.run(
        "DELETE FROM chunk_words WHERE rowid IN "
        "(SELECT id FROM chunk_words_docsize WHERE id NOT IN (SELECT chunk_no FROM chunks))"
    )


def rebuild_indexes(connection: Connection) -> None:
    """Rebuild SQLite's own indexes, if SQLite can still read them well enough to replace them."""
    with contextlib.suppress(apsw.CorruptError):  # the next check reports what is left
        connection.run("REINDEX")


def drop_belongings_of_nothing(connection: Connection) -> None:
    """Remove tags, entities, history and vectors of memories and chunks that no longer exist."""
    for table, (column, owner) in BELONGINGS.items():
        connection.run(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {column} FROM {owner})")
    connection.run(f"DELETE FROM memory_entities WHERE {_WITHOUT_ENTITY}")


def remove_leftovers(database: Database) -> None:
    """Remove files that were left behind half-written."""
    files.remove_leftovers(database.path)


def accept_present_state(database: Database) -> None:
    """Accept missing changes as lost: from now on the present store counts as complete."""
    with database.reading() as connection:
        database.change_mark.accept(connection)


def make_files_private(database: Database) -> None:
    """Remove the permissions of all users but the owner from the store's files."""
    for path in files.all_of(database.path):
        with contextlib.suppress(OSError):  # the next check reports what is left
            make_private(path)


def empty_log(database: Database) -> None:
    """Write the log into the database and truncate it, if nobody reads from it."""
    with database.maintaining() as connection:
        connection.set_busy_timeout(1000)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
