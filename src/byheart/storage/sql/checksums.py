"""Check by checksums whether texts are read as they were written."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

from byheart.storage.sql.connection import Connection

_TEXTS = """
    SELECT m.memory_no, m.content_hash, c.chunk_no, CAST(c.content AS BLOB) FROM memories m
    LEFT JOIN chunks c ON c.memory_no = m.memory_no ORDER BY m.memory_no, c.chunk_index"""


def checksum_of(content: str) -> int:
    """Compute the CRC-32 of a passage; 400 tokens take some two microseconds."""
    return zlib.crc32(content.encode())


def hash_of(content: str) -> str:
    """Compute the SHA-256 of a whole text in hexadecimal."""
    return sha256(content.encode()).hexdigest()


def texts(connection: Connection) -> Iterator[tuple[int, bool, list[tuple[int, bytes]]]]:
    """Give the number of every memory, whether its text has its hash, and its chunks by number.

    SQLite gives chunks as bytes: a damaged one may not be valid UTF-8.
    """
    for _ in connection.parts():
        rows: Any = connection.stream(_TEXTS)
        for (memory_no, content_hash), parts in groupby(rows, key=itemgetter(0, 1)):
            chunks = [(number, _bytes(text)) for _, _, number, text in parts if number is not None]
            digest = sha256()
            for _, content in chunks:
                digest.update(content)
            yield memory_no, digest.digest() == content_hash, chunks


def _bytes(content: str | bytes) -> bytes:
    # PostgreSQL gives text: it holds no text that is not valid UTF-8.
    return content.encode() if isinstance(content, str) else content
