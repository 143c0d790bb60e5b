"""Keep a copy of each space's index in the database, for servers that have no files yet.

A copy is one row with its label, and a row for each megabyte of its head and its parts, compressed.
It is replaced in one transaction, which writes the head and new parts. The head is read by one
statement; a server that then misses a part, because the copy was replaced, does without the copy.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

_PART_BYTES = 1 << 20
# A server that hangs while it holds the row must not stop the others for long.
_WRITE = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    "SET LOCAL lock_timeout = '30s'",
    "SET LOCAL idle_in_transaction_session_timeout = '60s'",
)
_LABEL = "SELECT label FROM {schema}.published_indexes WHERE space = $1"
_PARTS = """
    SELECT bytes FROM {schema}.published_index_parts WHERE space = $1 AND name = $2
    ORDER BY part_no"""
_NAMES = "SELECT DISTINCT name FROM {schema}.published_index_parts WHERE space = $1"
_INSERT = """
    INSERT INTO {schema}.published_indexes (space, label, size_bytes) VALUES ($1, $2, $3)
    ON CONFLICT (space) DO NOTHING"""
_UPDATE = """
    UPDATE {schema}.published_indexes SET label = $2, size_bytes = $3, published_at = now()
    WHERE space = $1 AND label = $4"""
_REMOVE = "DELETE FROM {schema}.published_indexes WHERE space = $1"
_REMOVE_PARTS = "DELETE FROM {schema}.published_index_parts WHERE space = $1 AND name <> ALL($2)"
_COPY = """
    COPY {schema}.published_index_parts (space, name, part_no, bytes) FROM STDIN (FORMAT BINARY)"""
# The name of the head among the parts.
_HEAD = ""

Connect = Callable[[], AbstractContextManager[psycopg.Connection[Any]]]


class PublishedIndex:
    """The copy of one space's index; implements `IndexCopy`.

    `connect` opens a connection without a transaction, and raises the errors of psycopg as ours. A
    search that has a connection of a pool may wait for this one: it must not come from that pool.
    """

    def __init__(self, connect: Connect, schema: str, space: str) -> None:
        self._connect = connect
        self._schema = schema
        self._space = space

    def label(self) -> str | None:
        """Give the label of the copy; `None` if there is no copy."""
        with self._connect() as connection, _cursor(connection) as cursor:
            found = cursor.execute(self._named(_LABEL), (self._space,)).fetchone()
        return None if found is None else str(found[0])

    def load(self, out: BinaryIO) -> bool:
        """Write the bytes of the head to a file; return false if there is no copy."""
        return self.load_part(_HEAD, out)

    def load_part(self, name: str, out: BinaryIO) -> bool:
        """Write the bytes of a part to a file; return false if the copy has no such part."""
        is_there = False
        with self._connect() as connection, _cursor(connection) as cursor:
            for (part,) in cursor.stream(self._named(_PARTS), (self._space, name), binary=True):
                out.write(_unpack(part))
                is_there = True
        return is_there

    def put(self, head: Path, parts: Mapping[str, Path], label: str, replaces: str | None) -> bool:
        """Put a copy of files in place of the copy with the label `replaces`, or of none."""
        with ExitStack() as stack, self._writing() as cursor:
            files = {
                name: stack.enter_context(path.open("rb"))
                for name, path in (*parts.items(), (_HEAD, head))
            }
            size = sum(os.fstat(file.fileno()).st_size for file in files.values())
            # The row stays locked until the end: of two servers, the second waits and then finds
            # another label than it saw.
            if replaces is None:
                cursor.execute(self._named(_INSERT), (self._space, label, size))
            else:
                cursor.execute(self._named(_UPDATE), (self._space, label, size, replaces))
            if cursor.rowcount != 1:
                return False
            cursor.execute(self._named(_REMOVE_PARTS), (self._space, list(parts)))
            there = {row[0] for row in cursor.execute(self._named(_NAMES), (self._space,))}
            with cursor.copy(self._named(_COPY)) as copy:
                copy.set_types(["text", "text", "int4", "bytea"])
                for name, file in files.items():
                    if name not in there:
                        for part_no, block in enumerate(iter(partial(file.read, _PART_BYTES), b"")):
                            copy.write_row((self._space, name, part_no, _pack(block)))
            return True

    def clear(self) -> None:
        """Remove the copy."""
        with self._writing() as cursor:
            cursor.execute(self._named(_REMOVE), (self._space,))
            cursor.execute(self._named(_REMOVE_PARTS), (self._space, []))

    @contextmanager
    def _writing(self) -> Iterator[psycopg.RawCursor[tuple[Any, ...]]]:
        with (
            self._connect() as connection,
            connection.transaction(),
            _cursor(connection) as cursor,
        ):
            for statement in _WRITE:
                cursor.execute(statement)
            yield cursor

    def _named(self, statement: str) -> sql.Composed:
        return sql.SQL(statement).format(schema=sql.Identifier(self._schema))


def _pack(part: bytes) -> bytes:
    """Compress bytes of arrays of numbers.

    The higher bytes of numbers are much alike: apart from the lower ones, they take little room.
    """
    # Other strategies and levels take twice the time, and save nothing for vectors of a model.
    packing = zlib.compressobj(1, strategy=zlib.Z_RLE)
    return packing.compress(part[::2] + part[1::2]) + packing.flush()


def _unpack(packed: bytes) -> bytes:
    """Give the bytes that `_pack` compressed; the checksums of the file find damaged ones."""
    try:
        halves = zlib.decompress(packed)
    except zlib.error:
        return packed
    part, middle = bytearray(len(halves)), -(-len(halves) // 2)
    part[::2], part[1::2] = halves[:middle], halves[middle:]
    return bytes(part)


def _cursor(connection: psycopg.Connection[Any]) -> psycopg.RawCursor[tuple[Any, ...]]:
    # Whatever the defaults of the connection are: placeholders are $1, and rows are tuples.
    return psycopg.RawCursor(connection, row_factory=tuple_row)
