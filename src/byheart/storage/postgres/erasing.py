"""Erase memories from a PostgreSQL database, and search it for what is left of their texts.

Deleting rows is not enough: VACUUM removes the dead rows and their entries in B-trees, a GIN index
keeps every word until it is built again, and the index file keeps vectors until it is written
again. The server's own files are out of reach: freed pages keep their bytes until they are
overwritten, and so do the write-ahead log, replicas and backups. The answer says so.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from byheart.contracts import Remove, Removed, one_transaction
from byheart.errors import Do, Hint, StoreError
from byheart.index.index import Index
from byheart.model import Removal
from byheart.storage.postgres import repairs
from byheart.storage.postgres.connection import PostgresConnection, Space, part_schema
from byheart.storage.postgres.database import Database
from byheart.storage.postgres.raw_queries import remove_unused_terms, terms_of
from byheart.storage.sql import bookmarks
from byheart.storage.sql.backend import IndexOf
from byheart.storage.sql.traces import HELD, MOST_AT_ONCE, UNSWEPT, pick_pieces
from byheart.storage.sql.writer import SqlWriter
from byheart.storage.sql.writing import WORDED, to_word_columns

_UNPROVED = Hint(
    "the tables were searched, not the server's files: freed pages keep their bytes until they "
    "are overwritten (VACUUM FULL replaces them), the write-ahead log until it is recycled, "
    "replicas until they have followed, backups for as long as they are kept; index files of "
    "other machines keep word and vector codes until they are written again, or until you run "
    "there: ",
    Do("admin.doctor", optimize=True),
)
_UNFINISHED = Hint(
    "the rows are deleted, but their words may still be in the files of these tables, until the "
    "owner of the tables runs: ",
    Do("admin.doctor", fix=True),
    "; the reason: ",
)
# A larger keyword index is not built again for one erasure: writers would wait too long.
_LARGE_INDEX_BYTES = 256 * 1024 * 1024
# These tables hold texts that stay: a piece that is found there belongs to another memory too.
_HELD_TABLES = frozenset(query.rpartition(" ")[2] for query in HELD)
# These tables hold single words or codes: no piece of a text can be found there.
_PIECELESS_TABLES = frozenset(
    {
        "chunk_words",
        "vocabulary",
        "vectors",
        "published_index_parts",
        "posting_runs",
        "posting_blocks",
    }
)

_OF_MEMORIES = f"""
    {WORDED} WHERE (m.memory_id = ANY(?1) OR m.version_of = ANY(?1)) AND m.space = ?2"""
_COLUMNS = """
    SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = CAST(? AS regclass) AND a.attnum > 0 AND NOT a.attisdropped
        AND (t.typname = 'text' OR t.typname = 'bytea' AND a.attname NOT LIKE '%hash')
    ORDER BY a.attnum"""
_FOUND = """
    SELECT piece FROM unnest(CAST(? AS text[])) AS piece WHERE EXISTS (
        SELECT 1 FROM {table} WHERE {found})"""
_STATISTICS = """
    SELECT schemaname || '.' || tablename, piece
    FROM pg_stats, unnest(CAST(? AS text[])) AS piece
    WHERE schemaname = ANY(?) AND strpos(lower(concat_ws(' ', CAST(most_common_vals AS text),
        CAST(histogram_bounds AS text), CAST(most_common_elems AS text))), lower(piece)) > 0"""


def erase(
    database: Database, index: Index, memory_ids: Sequence[str], space: str, remove: Remove
) -> Removal:
    """Remove memories from the tables and the index, then search for their texts."""
    found = database.find(space)
    if found is None:  # nothing was ever written to this space
        return Removal(0, 0, 0, 0, 0, (), (), (), _UNPROVED)
    with database.reading(space) as connection:
        pieces = _to_texts(pick_pieces(connection, memory_ids, space))
    # Each erasure has a mark of its own: another one of the same space must not remove it.
    mark = f"{UNSWEPT}:{found.space_no}:{uuid.uuid4().hex}"
    counts = Counter(dict.fromkeys(Removed._fields, 0))
    # Remove them in parts, so that other writers need not wait for all of them.
    for start in range(0, len(memory_ids), MOST_AT_ONCE):
        some = memory_ids[start : start + MOST_AT_ONCE]
        counts.update(_remove(database, space, some, remove, mark)._asdict())
    reason = _sweep(database, index, found) if counts["texts"] else None
    searched, traces = _search(database, index, found, pieces, memory_ids)
    if counts["texts"] and reason is None and not traces:
        _unmark(database, space, mark)
    return Removal(
        **counts,
        files_removed=(),
        files_searched=tuple(searched),
        traces=tuple(traces),
        unproved=_unproved(database, found),
        unfinished=None if reason is None else _UNFINISHED + reason,
    )


@one_transaction
def _remove(
    database: Database, space: str, memory_ids: Sequence[str], remove: Remove, mark: str
) -> Removed:
    """Remove some memories, and mark that their traces are not yet searched for."""
    with database.writing(space) as connection:
        terms = _terms_of(connection, memory_ids, space)
        removed = remove(SqlWriter(connection), memory_ids)
        remove_unused_terms(connection.raw, connection.numbers, terms)
        if removed.texts:
            _mark(connection, mark)
            bookmarks.remove(connection, space)
        return removed


def _terms_of(connection: PostgresConnection, memory_ids: Sequence[str], space: str) -> list[str]:
    """List all terms of memories."""
    found: set[str] = set()
    for row in connection.execute(_OF_MEMORIES, (list(memory_ids), space)):
        found.update(terms_of(to_word_columns(row)[1]))
    return sorted(found)


def sweep(database: Database, index_of: IndexOf, scopes: Sequence[str | None]) -> None:
    """Finish erasures that were interrupted, or that other processes kept from finishing."""
    done = True
    for part in range(database.parts):
        done &= _clean_tables(database, part) is None
    for scope in scopes:
        done &= index_of(scope).rewrite()
    if done and _clean_copies(database, range(database.parts)) is None:
        with database.writing(None) as connection:
            connection.run("DELETE FROM store WHERE key LIKE ?", (f"{UNSWEPT}:%",))


def is_unswept(connection: PostgresConnection) -> bool:
    """Say whether an erasure of any space is unfinished."""
    key = f"{UNSWEPT}:%"
    return connection.get("SELECT 1 FROM store WHERE key LIKE ? LIMIT 1", (key,)) is not None


def _mark(connection: PostgresConnection, mark: str) -> None:
    connection.run(
        "INSERT INTO store (key, value) VALUES (?, '1') ON CONFLICT (key) DO NOTHING",
        (mark,),
    )


def _unmark(database: Database, space: str, mark: str) -> None:
    # The rows are removed whatever happens here; if the mark stays, the doctor can try again.
    with contextlib.suppress(StoreError), database.writing(space) as connection:
        connection.run("DELETE FROM store WHERE key = ?", (mark,))


def _sweep(database: Database, index: Index, space: Space) -> str | None:
    """Remove what the database and the index keep of deleted rows; say why that failed, if it did.

    The rows are already removed: a busy server must not look like a failed removal.
    """
    reason = _clean_tables(database, space.part)
    try:
        # Also the copy of its file in the database.
        rewritten = None if index.rewrite() else "the index could not be written again"
        return reason or rewritten or _clean_copies(database, [space.part])
    except StoreError as error:
        return reason or error.message


def _clean_copies(database: Database, parts: Iterable[int]) -> str | None:
    """Remove dead rows of what was derived from deleted rows, and is replaced by now."""
    schemas = [database.schema, *(part_schema(database.schema, part) for part in parts)]
    tables = [each for schema in schemas for each in repairs.tables_in(database, schema)]
    derived = [each for each in tables if ".published_index" in each or ".posting_" in each]
    return repairs.vacuum(database, derived)


def _clean_tables(database: Database, part: int) -> str | None:
    """Remove dead rows and words of a part; say why that failed, if it did.

    Plain VACUUM lets everybody go on working. VACUUM FULL would also replace the files, but locks
    all spaces of the part out meanwhile, and the write-ahead log and backups keep the bytes anyway.
    """
    schema = part_schema(database.schema, part)
    try:
        reason = repairs.vacuum(database, repairs.tables_in(database, schema))
    except StoreError as error:
        return error.message
    try:
        with database.locking() as raw:
            words = f"{schema}.chunk_words_by_word"
            if not _is_large(raw, words):
                raw.execute(f"REINDEX INDEX {words}")
    except StoreError as error:  # a lock or a right is missing: the doctor can try again
        return reason or error.message
    return reason


def _is_large(raw: psycopg.Connection[Any], index: str) -> bool:
    row = raw.execute("SELECT pg_relation_size($1::regclass)", (index,)).fetchone()
    return row is not None and row[0] > _LARGE_INDEX_BYTES


def _unproved(database: Database, space: Space) -> Hint:
    """Say what was not searched, and whether the keyword index was too large to be built again."""
    words = f"{part_schema(database.schema, space.part)}.chunk_words_by_word"
    with contextlib.suppress(StoreError), database.connected() as raw:
        if _is_large(raw, words):
            return _UNPROVED + (
                f"; the index {words} is too large to be built again for one erasure, and keeps "
                f"erased words until you run: REINDEX INDEX CONCURRENTLY {words}"
            )
    return _UNPROVED


def _to_texts(pieces: Sequence[bytes]) -> list[str]:
    """Read pieces as text, without characters that were cut in two."""
    return [each.decode(errors="ignore") for each in pieces]


def _search(
    database: Database,
    index: Index,
    space: Space,
    pieces: Sequence[str],
    memory_ids: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Name all places that were searched, and those with pieces that no remaining text has."""
    found: dict[str, set[str]] = {}
    held: set[str] = set()
    schemas = (database.schema, part_schema(database.schema, space.part))
    # List them first: a pool may have no second connection to lend.
    tables = [each for schema in schemas for each in repairs.tables_in(database, schema)]
    with database.reading(None) as connection:
        for table in tables:
            here = _find(connection, table, pieces)
            if here is None:
                continue
            if table.rpartition(".")[2] in _HELD_TABLES:
                held |= here
                here = set()
            found[f"table {table}"] = here
        rows = connection.all(_STATISTICS, (list(pieces), database.schemas))
        found["statistics of the planner"] = set()
        for table, piece in rows:
            found.setdefault(f"statistics of table {table}", set()).add(piece)
        left = connection.get(
            "SELECT 1 FROM memories WHERE (memory_id = ANY(?1) OR version_of = ANY(?1)) "
            "AND memory_no BETWEEN ?2 AND ?3 LIMIT 1",
            (list(memory_ids), space.numbers.start, space.numbers[-1]),
        )
    with contextlib.suppress(OSError):
        contents = index.path.read_bytes()
        found[str(index.path)] = {each for each in pieces if each.encode() in contents}
    traces = [place for place, here in found.items() if here - held]
    memories = f"table {part_schema(database.schema, space.part)}.memories"
    return list(found), [*traces, *([memories] if left else [])]


def _find(connection: PostgresConnection, table: str, pieces: Sequence[str]) -> set[str] | None:
    """Find pieces in a table; give `None` if no column of it was searched."""
    if not pieces or table.rpartition(".")[2] in _PIECELESS_TABLES:
        return None
    columns = connection.all(_COLUMNS, (table,))
    texts = [name for name, kind in columns if kind == "text"]
    found = [
        f"position(convert_to(piece, 'UTF8') IN {name}) > 0"
        for name, kind in columns
        if kind == "bytea"
    ]
    if texts:
        found.append(f"strpos(lower(concat_ws(' ', {', '.join(texts)})), lower(piece)) > 0")
    if not found:
        return None
    statement = _FOUND.format(table=table, found=" OR ".join(found))
    return {row[0] for row in connection.all(statement, (list(pieces),))}
