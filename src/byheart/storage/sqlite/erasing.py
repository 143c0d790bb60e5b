"""Erase memories so that no bytes of them remain, and verify that in the files.

Deleting a row of SQLite is not enough: FTS5 keeps the words of deleted rows until segments are
merged, the log keeps whole pages until it is truncated, the index file keeps vectors until it is
written again, and backups keep all data.
"""

from __future__ import annotations

import contextlib
import glob
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import apsw

from byheart.contracts import Remove, Removed
from byheart.errors import StoreError
from byheart.index.index import Index
from byheart.model import Removal
from byheart.storage.sql import bookmarks
from byheart.storage.sql.traces import (
    HELD,
    MOST_AT_ONCE,
    PIECE_BYTES,
    UNSWEPT,
    pick_pieces,
)
from byheart.storage.sql.writer import SqlWriter
from byheart.storage.sqlite import files
from byheart.storage.sqlite.database import Database

# A file up to this size is rebuilt within a second.
_SMALL_FILE_BYTES = 64 * 1024 * 1024
_BLOCK_BYTES = 1 << 24
_LONGEST_WAIT_SECONDS = 5.0

# All texts that stay. The schema is text in the file as well.
_HELD = " UNION ALL ".join((*HELD, "SELECT ifnull(sql, name) FROM sqlite_schema"))


def erase(
    database: Database, index: Index, memory_ids: Sequence[str], space: str, remove: Remove
) -> Removal:
    """Remove memories from every file of the store, then search the files for their texts."""
    with database.reading() as connection:
        pieces = pick_pieces(connection, memory_ids, space)
        unswept_before = is_unswept(connection)
    counts = Counter(dict.fromkeys(Removed._fields, 0))
    # Remove them in parts, so that other writers need not wait for all of them.
    for start in range(0, len(memory_ids), MOST_AT_ONCE):
        part = memory_ids[start : start + MOST_AT_ONCE]
        with database.writing() as connection:
            counts.update(remove(SqlWriter(connection), part)._asdict())
            if counts["texts"]:
                connection.execute("INSERT OR REPLACE INTO store VALUES (?, '1')", (UNSWEPT,))
                bookmarks.remove(connection, space)
            if counts["texts"] and start + MOST_AT_ONCE >= len(memory_ids):
                _drop_words(connection)
    anew = database.path.stat().st_size <= _SMALL_FILE_BYTES
    removed = _remove_backups(database.path) if counts["texts"] else []
    swept = bool(counts["texts"]) and _clear_files(database, index, anew=anew)
    traces = _traces(database, pieces)
    if traces and not anew:
        anew = True
        swept &= _build_anew(database) & _empty_log(database)
        traces = _traces(database, pieces)
    # Traces of an earlier, unfinished erasure may disappear only if the file is rebuilt.
    if swept and not _ours(database, traces) and (anew or not unswept_before):
        _unmark(database)
    return Removal(
        **counts,
        files_removed=tuple(map(str, removed)),
        files_searched=tuple(map(str, _files(database.path))),
        traces=tuple(traces),
        unproved=None,
        unfinished=None,
    )


def sweep(database: Database, index: Index) -> None:
    """Finish an erasure that was interrupted, or that other processes kept from finishing."""
    with database.writing() as connection:
        _drop_words(connection)
    _remove_backups(database.path)
    if _clear_files(database, index, anew=True):
        _unmark(database)


def is_unswept(connection: apsw.Connection) -> bool:
    """Say whether an erasure is unfinished."""
    return connection.execute("SELECT 1 FROM store WHERE key = ?", (UNSWEPT,)).get is not None


def _unmark(database: Database) -> None:
    # The rows are removed whatever happens here; if the mark stays, the doctor can try again.
    with contextlib.suppress(StoreError), database.writing() as connection:
        connection.execute("DELETE FROM store WHERE key = ?", (UNSWEPT,))


def _drop_words(connection: apsw.Connection) -> None:
    """Merge all segments: the only way to make FTS5 drop the words of deleted rows."""
    connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('optimize')")


def _clear_files(database: Database, index: Index, *, anew: bool) -> bool:
    """Remove remains of deleted rows from the files; say whether all of that succeeded."""
    done = _build_anew(database) if anew else True
    done &= _empty_log(database)
    return index.rewrite() and done


def _traces(database: Database, pieces: Sequence[bytes]) -> list[str]:
    """Name the files that still hold a piece which no remaining text contains."""
    found = {
        path: {piece for block in _blocks(path) for piece in pieces if piece in block}
        for path in _files(database.path)
    }
    left = _unshared(database, set(chain.from_iterable(found.values())))
    return [str(path) for path, here in found.items() if here & left]


def _ours(database: Database, traces: Sequence[str]) -> bool:
    """Say whether a sweep could remove any traces; it never removes copies made by the user."""
    written = {database.path, files.beside(database.path, "-wal")}
    written.update(files.index_files(database.path))
    return not {str(each) for each in written}.isdisjoint(traces)


def _unshared(database: Database, pieces: set[bytes]) -> set[bytes]:
    """Drop pieces that remaining memories contain too; words and names are in lower case."""
    left = set(pieces)
    with database.reading() as connection:
        for (text,) in connection.execute(_HELD) if left else ():
            held, lower = str(text).encode(), str(text).lower().encode()
            left -= {piece for piece in left if piece in held or piece.lower() in lower}
            if not left:
                break
    return left


def _blocks(path: Path) -> Iterator[bytes]:
    """Read a file in blocks that overlap by a piece.

    SQLite reads it: opening and closing the file directly would drop all locks of this process.
    """
    flags = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
    try:
        file = apsw.VFSFile("", str(path), flags)
    except apsw.CantOpenError:
        return  # the file was removed meanwhile
    try:
        size = file.xFileSize()
        for start in range(0, size, _BLOCK_BYTES):
            yield file.xRead(min(_BLOCK_BYTES + PIECE_BYTES, size - start), start)
    finally:
        file.xClose()


def _files(path: Path) -> list[Path]:
    """List the files of a store that can hold text: the store, its side files and its backups."""
    beside = path.parent.glob(f"{glob.escape(path.name)}[-.]*")
    return [
        path,
        *sorted(each for each in beside if each.is_file() and not each.name.endswith("-shm")),
    ]


def _remove_backups(path: Path) -> list[Path]:
    """Remove the copies made before schema changes: no row can be removed from them safely."""
    removed = []
    for copy in path.parent.glob(f"{glob.escape(path.name)}.backup-schema-*"):
        with contextlib.suppress(FileNotFoundError):
            copy.unlink()
            removed.append(copy)
    return removed


def _build_anew(database: Database) -> bool:
    """Rebuild the whole file: a page that was split long ago can hold copies in unused parts.

    The rows are already removed: a full disk or a busy store must not look like a failed removal,
    and the search for traces will report all remains.
    """
    with contextlib.suppress(StoreError), database.maintaining() as connection:
        connection.set_busy_timeout(int(_LONGEST_WAIT_SECONDS * 1000))
        connection.execute("VACUUM")
        return True
    return False


def _empty_log(database: Database) -> bool:
    """Write the log into the database and truncate it; wait shortly for readers of old pages."""
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    with contextlib.suppress(StoreError), database.maintaining() as connection:
        connection.set_busy_timeout(int(_LONGEST_WAIT_SECONDS * 1000))
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]:
            if time.monotonic() > deadline:
                return False  # the search for traces will report all remains
            time.sleep(0.05)
        return True
    return False
