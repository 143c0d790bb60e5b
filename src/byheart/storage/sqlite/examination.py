"""What the doctor looks at in a store, and how what is derived is made anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw
import numpy as np

from byheart.model import Finding
from byheart.storage.sqlite import writing
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.index import file
from byheart.storage.sqlite.index.index import Index
from byheart.storage.sqlite.rows import CHUNK, to_chunk

_LEAST_FREE_BYTES = 200_000_000
_REBUILD = "byheart doctor --rebuild"

# Each must find nothing: (name, what it means, what to do, query for a count).
_MUST_BE_EMPTY = (
    (
        "keyword index",
        "{} chunks are missing from the keyword index",
        _REBUILD,
        "SELECT count(*) FROM chunks WHERE chunk_no NOT IN (SELECT rowid FROM chunk_words)",
    ),
    (
        "keyword index leftovers",
        "{} keyword entries belong to no chunk",
        _REBUILD,
        "SELECT count(*) FROM chunk_words WHERE rowid NOT IN (SELECT chunk_no FROM chunks)",
    ),
    (
        "vectors accounted for",
        "{} chunks have neither vectors of the store's model nor a place in the queue for them",
        _REBUILD,
        """SELECT count(*) FROM chunks WHERE chunk_no NOT IN (SELECT chunk_no FROM pending_vectors)
           AND chunk_no NOT IN (SELECT chunk_no FROM vectors JOIN models USING (model_no)
               WHERE name = (SELECT value FROM store WHERE key = 'model'))""",
    ),
    (
        "vector sizes",
        "{} vectors do not have the length their model says",
        "export what you need and report it: this should not happen",
        """SELECT count(*) FROM vectors JOIN models USING (model_no)
           WHERE length(embedding) != 4 * dimensions""",
    ),
    (
        "entities in use",
        "{} entities belong to no memory",
        _REBUILD,
        "SELECT count(*) FROM entities WHERE entity_no NOT IN "
        "(SELECT entity_no FROM memory_entities)",
    ),
)


def examine(database: Database, index: Index) -> list[Finding]:
    """Check the file, the relations between its tables, and everything derived from it."""
    findings: list[Finding] = []
    with database.reading() as connection:
        findings.extend(_integrity(connection))
        if not findings[0].ok:
            return findings  # whatever else were asked of the file could not be trusted
        for check, message, hint, query in _MUST_BE_EMPTY:
            count = connection.execute(query).get
            findings.append(
                Finding(
                    check,
                    not count,
                    message.format(count) if count else "in order",
                    f"run: {hint}"
                    if count and hint.startswith("byheart")
                    else hint
                    if count
                    else "",
                )
            )
        findings.append(_texts(connection))
        findings.append(_index_file(connection, index))
    findings.append(_disk_space(database))
    return findings


def _integrity(connection: apsw.Connection) -> Iterator[Finding]:
    try:
        # Any query makes FTS5 notice what other connections wrote; its own check does not look.
        connection.execute("SELECT 1 FROM chunk_words LIMIT 1").fetchall()
        problems = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
        broken = connection.execute("SELECT count(*) FROM pragma_foreign_key_check").get
    except apsw.CorruptError as error:
        problems, broken = [str(error)], 0
    sound = problems == ["ok"]
    yield Finding(
        "database file",
        sound,
        "in order" if sound else "; ".join(problems[:5]),
        "" if sound else "restore a backup, or export what can still be read",
    )
    yield Finding(
        "foreign keys",
        not broken,
        f"{broken} rows point to rows that are gone" if broken else "in order",
        "restore a backup" if broken else "",
    )


def _texts(connection: apsw.Connection) -> Finding:
    """Hash every text again: chunks that were lost or changed show."""
    changed, hashes = 0, {}
    rows = connection.execute(
        "SELECT memory_no, content FROM chunks ORDER BY memory_no, chunk_index"
    )
    for memory_no, parts in groupby(rows, key=itemgetter(0)):
        digest = sha256()
        for _, content in parts:
            digest.update(content.encode())
        hashes[memory_no] = digest.digest()
    for memory_no, content_hash in connection.execute(
        "SELECT memory_no, content_hash FROM memories"
    ):
        changed += hashes.get(memory_no) != content_hash
    return Finding(
        "texts as saved",
        not changed,
        f"{changed} memories do not have the text that was saved" if changed else "in order",
        "restore a backup: their text has changed or is incomplete" if changed else "",
    )


def _index_file(connection: apsw.Connection, index: Index) -> Finding:
    name = "search index"
    if index.path.exists() and file.read(index.path, verify=True) is None:
        return Finding(name, False, f"{index.path} is damaged", f"run: {_REBUILD}")
    view = index.view(connection)
    if view is None:
        return Finding(name, True, "ahead of this check: another thread is writing")
    alive = view.chunks.chunk_nos[view.chunks.alive]
    stored = np.array(
        [row[0] for row in connection.execute("SELECT chunk_no FROM chunks ORDER BY chunk_no")],
        np.int64,
    )
    known = view.memories.memory_nos[view.memories.present]
    memories = np.array(
        [
            row[0]
            for row in connection.execute(
                "SELECT memory_no FROM memories WHERE forgotten_at IS NULL ORDER BY memory_no"
            )
        ],
        np.int64,
    )
    if not (np.array_equal(alive, stored) and np.array_equal(known, memories)):
        return Finding(name, False, "does not hold the store's chunks", f"run: {_REBUILD}")
    return Finding(name, True, "in order")


def _disk_space(database: Database) -> Finding:
    free = shutil.disk_usage(database.path.parent).free
    enough = free >= _LEAST_FREE_BYTES
    return Finding(
        "disk space",
        enough,
        f"{free / 1e9:.1f} GB free",
        "" if enough else "free some space: saves fail when the disk is full",
    )


def rebuild_words(connection: apsw.Connection) -> None:
    """Make the keyword entries anew from the chunks."""
    connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('delete-all')")
    last = 0
    while rows := _chunk_rows(connection, last):
        for row in rows:
            writing.insert_words(connection, row[0], to_chunk(row[1:10]), row[10], row[11])
        last = rows[-1][0]
    connection.execute(
        "DELETE FROM entities WHERE entity_no NOT IN (SELECT entity_no FROM memory_entities)"
    )


def _chunk_rows(connection: apsw.Connection, after: int) -> list[Any]:
    return connection.execute(
        f"SELECT {CHUNK}, m.title, m.summary FROM chunks c JOIN memories m USING (memory_no) "
        "WHERE c.chunk_no > ? ORDER BY c.chunk_no LIMIT 2000",
        (after,),
    ).fetchall()


def rebuild_pending(connection: apsw.Connection) -> None:
    """Queue exactly the chunks that lack vectors of the store's model."""
    connection.execute("DELETE FROM pending_vectors")
    connection.execute(
        """INSERT INTO pending_vectors SELECT chunk_no FROM chunks WHERE chunk_no NOT IN (
               SELECT chunk_no FROM vectors JOIN models USING (model_no)
               WHERE name = (SELECT value FROM store WHERE key = 'model'))"""
    )
