"""Erasing: what is forgotten for good leaves no bytes behind, and that is looked at, not assumed.

Deleting a row of SQLite is not enough: FTS5 keeps the words of deleted rows until segments are
merged, the log keeps whole pages until it is truncated, the index file keeps vectors until it is
written anew, and backups keep everything.
"""

from __future__ import annotations

import contextlib
import glob
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import apsw

from byheart.errors import StoreError
from byheart.index.index import Index
from byheart.model import Removal
from byheart.storage.sqlite import bookmarks, files, versions
from byheart.storage.sqlite.database import Database

# Texts are looked for by pieces: on disk a long one is spread over pages of 4,096 bytes.
_PIECE_BYTES, _SHORTEST_PIECE_BYTES = 48, 12
# Looking for one takes 0.06 seconds in a store of 100,000 chunks.
_MOST_PIECES, _MOST_FIELDS = 32, 16
# A file up to this size is built anew within a second.
_SMALL_FILE_BYTES = 64 * 1024 * 1024
_BLOCK_BYTES = 1 << 24
_LONGEST_WAIT_SECONDS = 5.0
# How many memories are taken out in one transaction: some tenths of a second.
_MOST_AT_ONCE = 1000
# Stands in the store from the removal of rows to the end of the sweep.
_UNSWEPT = "unswept"

_Each = TypeVar("_Each")

# What is said about memories beside their texts: those that are to go, ...
# (`+space` keeps SQLite from walking through the whole space instead of asking for the ids.)
_FIELDS = """
    WITH going AS (
        SELECT * FROM memories WHERE (memory_id = ?1 OR version_of = ?1) AND +space = ?2)
    SELECT title FROM going UNION SELECT summary FROM going UNION SELECT path FROM going
    UNION SELECT metadata FROM going
    UNION SELECT tag FROM going JOIN tags USING (memory_no)
    UNION SELECT name FROM going JOIN memory_entities USING (memory_no)
        JOIN entities USING (entity_no)
    UNION SELECT changes FROM going JOIN history USING (memory_no)
    UNION SELECT reason FROM going JOIN history USING (memory_no)"""
# ... and everything that stays. The schema is text in the file as well.
_HELD = """
    SELECT content FROM chunks
    UNION ALL SELECT concat_ws(' ', title, summary, metadata, path, session_id, agent_id,
        task_code, source, kind, role, client_id) FROM memories
    UNION ALL SELECT tag FROM tags
    UNION ALL SELECT concat_ws(' ', key, name) FROM entities
    UNION ALL SELECT concat_ws(' ', key, name) FROM entity_aliases
    UNION ALL SELECT concat_ws(' ', changes, who, reason) FROM history
    UNION ALL SELECT concat_ws(' ', name, space, session_id) FROM tokens
    UNION ALL SELECT ifnull(sql, name) FROM sqlite_schema"""


def erase(
    database: Database, index: Index, memory_ids: Sequence[str], space: str, *, tombstones: bool
) -> Removal:
    """Take memories out of every file of the store, then search the files for their texts."""
    with database.reading() as connection:
        pieces = _pieces(connection, memory_ids, space)
        unswept_before = is_unswept(connection)
    counts = Counter(dict.fromkeys(versions.COUNTED, 0))
    # In parts, so that others who write need not wait for all of them.
    for start in range(0, len(memory_ids), _MOST_AT_ONCE):
        part = memory_ids[start : start + _MOST_AT_ONCE]
        with database.writing() as connection:
            counts.update(versions.remove(connection, part, space, tombstones=tombstones))
            if counts["texts"]:
                connection.execute("INSERT OR REPLACE INTO store VALUES (?, '1')", (_UNSWEPT,))
                bookmarks.remove(connection, space)
            if counts["texts"] and start + _MOST_AT_ONCE >= len(memory_ids):
                _drop_words(connection)
    anew = database.path.stat().st_size <= _SMALL_FILE_BYTES
    removed = _remove_backups(database.path) if counts["texts"] else []
    swept = bool(counts["texts"]) and _clear_files(database, index, anew=anew)
    traces = _traces(database, pieces)
    if traces and not anew:
        anew = True
        swept &= _build_anew(database) & _empty_log(database)
        traces = _traces(database, pieces)
    # What an earlier one left can be where only a file that is built anew has it no more.
    if swept and not _ours(database, traces) and (anew or not unswept_before):
        _unmark(database)
    return Removal(
        **counts,
        files_removed=tuple(map(str, removed)),
        files_searched=tuple(map(str, _files(database.path))),
        traces=tuple(traces),
    )


def sweep(database: Database, index: Index) -> None:
    """Finish what an erasing has left that was cut off, or that others kept from its end."""
    with database.writing() as connection:
        _drop_words(connection)
    _remove_backups(database.path)
    if _clear_files(database, index, anew=True):
        _unmark(database)


def is_unswept(connection: apsw.Connection) -> bool:
    """Say whether an erasing has not come to its end."""
    return connection.execute("SELECT 1 FROM store WHERE key = ?", (_UNSWEPT,)).get is not None


def _unmark(database: Database) -> None:
    # The rows are gone whatever happens here; the mark that is left lets the doctor try again.
    with contextlib.suppress(StoreError), database.writing() as connection:
        connection.execute("DELETE FROM store WHERE key = ?", (_UNSWEPT,))


def _drop_words(connection: apsw.Connection) -> None:
    """Merge all segments: the only way to make FTS5 drop the words of deleted rows."""
    connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('optimize')")


def _clear_files(database: Database, index: Index, *, anew: bool) -> bool:
    """Clear away what deleted rows leave behind in the files; say whether all of that was done."""
    done = _build_anew(database) if anew else True
    done &= _empty_log(database)
    return index.rewrite() and done


def _pieces(connection: apsw.Connection, memory_ids: Sequence[str], space: str) -> list[bytes]:
    """Pick stretches of what is to go, spread evenly: of the texts, and of what is said of them."""
    texts: dict[bytes, None] = {}
    fields: dict[bytes, None] = {}
    for memory_id in _spread(memory_ids, _MOST_PIECES):
        rows = connection.execute(
            "SELECT content FROM chunks JOIN memories USING (memory_no) "
            "WHERE (memory_id = ?1 OR version_of = ?1) AND +space = ?2",
            (memory_id, space),
        )
        for (text,) in rows:
            texts.update(dict.fromkeys(_stretches(text)))
        for (text,) in connection.execute(_FIELDS, (memory_id, space)):
            fields.update(dict.fromkeys(_stretches(text)))
    return [*_spread(texts, _MOST_PIECES), *_spread(fields, _MOST_FIELDS)]


def _stretches(text: Any) -> Iterator[bytes]:
    encoded = str(text or "").strip().encode()
    for start in range(0, max(1, len(encoded) - _PIECE_BYTES + 1), _PIECE_BYTES):
        piece = encoded[start : start + _PIECE_BYTES]
        if len(piece) >= _SHORTEST_PIECE_BYTES:
            yield piece


def _spread(found: Iterable[_Each], most: int) -> list[_Each]:
    every = list(found)
    return every[:: -(-len(every) // most) or 1]


def _traces(database: Database, pieces: Sequence[bytes]) -> list[str]:
    """Name the files that still hold a piece which nothing that stays says as well."""
    found = {
        path: {piece for block in _blocks(path) for piece in pieces if piece in block}
        for path in _files(database.path)
    }
    left = _unshared(database, set(chain.from_iterable(found.values())))
    return [str(path) for path, here in found.items() if here & left]


def _ours(database: Database, traces: Sequence[str]) -> bool:
    """Say whether a sweep could do anything about traces: a copy of the user's own stays."""
    written = {str(files.beside(database.path, ending)) for ending in ("", "-wal", "-index")}
    return not written.isdisjoint(traces)


def _unshared(database: Database, pieces: set[bytes]) -> set[bytes]:
    """Leave out what memories that stay say as well; words and names are kept in lower case."""
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

    Through SQLite: closing a file of one's own would drop every lock that this process has on it.
    """
    flags = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
    try:
        file = apsw.VFSFile("", str(path), flags)
    except apsw.CantOpenError:
        return  # it went meanwhile
    try:
        size = file.xFileSize()
        for start in range(0, size, _BLOCK_BYTES):
            yield file.xRead(min(_BLOCK_BYTES + _PIECE_BYTES, size - start), start)
    finally:
        file.xClose()


def _files(path: Path) -> list[Path]:
    """List the files of a store that can hold text: itself, what stands beside it, its backups."""
    beside = path.parent.glob(f"{glob.escape(path.name)}[-.]*")
    return [
        path,
        *sorted(each for each in beside if each.is_file() and not each.name.endswith("-shm")),
    ]


def _remove_backups(path: Path) -> list[Path]:
    """Remove the copies made before schema changes: one row cannot be taken out of them safely."""
    removed = []
    for copy in path.parent.glob(f"{glob.escape(path.name)}.backup-schema-*"):
        with contextlib.suppress(FileNotFoundError):
            copy.unlink()
            removed.append(copy)
    return removed


def _build_anew(database: Database) -> bool:
    """Write the whole file again: a page that was split long ago can hold copies in unused parts.

    What was removed is removed by now: a full disk or a busy store must not look like a failure of
    that, and the search for traces will say what is left.
    """
    with contextlib.suppress(StoreError), database.maintaining() as connection:
        connection.set_busy_timeout(int(_LONGEST_WAIT_SECONDS * 1000))
        connection.execute("VACUUM")
        return True
    return False


def _empty_log(database: Database) -> bool:
    """Move the log into the database and cut it; wait for readers of older pages, but not long."""
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    with contextlib.suppress(StoreError), database.maintaining() as connection:
        connection.set_busy_timeout(int(_LONGEST_WAIT_SECONDS * 1000))
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]:
            if time.monotonic() > deadline:
                return False  # the search for traces will say what is left
            time.sleep(0.05)
        return True
    return False
