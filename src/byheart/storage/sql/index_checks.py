"""Check an index and its file against the rows that it is derived from."""

from __future__ import annotations

from functools import partial
from typing import Any

from byheart.index import file, parts
from byheart.index.index import Index
from byheart.model import Finding
from byheart.startup.late_numpy import np
from byheart.storage.sql.check_results import FIX, REBUILD, Checked, passed
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.index_source import SqlIndexSource

_NAME = "search index"


def check_index(connection: Connection, index: Index) -> Checked:
    """Compare an index with the rows that the transaction of a connection sees."""
    mend = partial(rebuild_index, index)
    foreign = file.is_of_another_version(index.path)
    if index.path.exists() and not foreign and parts.read(index.path, verify=True) is None:
        return Checked(Finding(_NAME, False, f"{index.path} is damaged", REBUILD), mend)
    try:
        view = index.view(SqlIndexSource(connection))
    except ValueError as error:  # the length of a vector differs from its model's
        return Checked(Finding(_NAME, False, f"it cannot be built: {error}", FIX))
    if view is None:
        return Checked(Finding(_NAME, True, "ahead of this check: another thread is writing"))
    alive = view.chunks.chunk_nos[view.chunks.alive]
    known = view.memories.memory_nos[view.memories.present]
    if not (
        np.array_equal(alive, _numbers(connection, "chunk_no", "chunks", ""))
        and np.array_equal(
            known, _numbers(connection, "memory_no", "memories", "AND forgotten_at IS NULL")
        )
    ):
        message = "does not hold the store's chunks"
        return Checked(Finding(_NAME, False, message, REBUILD), mend)
    if foreign:  # as after an upgrade: each process builds an index until the file is written again
        message = f"{index.path} is of another version of Byheart, and not used"
        return Checked(Finding(_NAME, True, message, FIX), mend)
    return passed(_NAME)


def _numbers(connection: Connection, column: str, table: str, condition: str) -> Any:
    first, last = connection.numbers.start, connection.numbers[-1]
    rows = connection.stream(
        f"SELECT {column} FROM {table} WHERE {column} BETWEEN ? AND ? {condition} "
        f"ORDER BY {column}",
        (first, last),
    )
    return np.fromiter((row[0] for row in rows), np.int64)


def rebuild_index(index: Index) -> None:
    """Rebuild an index and its file."""
    index.discard()
    index.rewrite()
