"""Define the schema changes that need more than SQL.

A step imports nothing of Byheart: it must do the same in every later version.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

_TEXTS = """
    SELECT m.memory_no, m.content_hash, c.chunk_no, CAST(c.content AS BLOB) FROM memories m
    JOIN chunks c ON c.memory_no = m.memory_no ORDER BY m.memory_no, c.chunk_index"""


def add_checksums(connection: apsw.Connection) -> None:
    """Set the checksum of every chunk whose text still has its hash."""
    # Read all rows before writing any: a row that moves would be read twice.
    checksums = list(_checksums(connection.execute(_TEXTS)))
    connection.executemany("UPDATE chunks SET checksum = ? WHERE chunk_no = ?", checksums)


def _checksums(rows: Any) -> Iterator[tuple[int, int]]:
    for (_, content_hash), parts in groupby(rows, key=itemgetter(0, 1)):
        chunks = [(number, content) for _, _, number, content in parts]
        if sha256(b"".join(content for _, content in chunks)).digest() == content_hash:
            yield from ((zlib.crc32(content), number) for number, content in chunks)


STEPS: Mapping[int, Callable[[apsw.Connection], None]] = {10: add_checksums}
