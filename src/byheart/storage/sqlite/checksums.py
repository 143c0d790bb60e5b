"""Checksums of texts: whether what is read is what was written."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

_TEXTS = """
    SELECT m.memory_no, m.content_hash, c.chunk_no, c.content FROM memories m
    LEFT JOIN chunks c ON c.memory_no = m.memory_no ORDER BY m.memory_no, c.chunk_index"""


def checksum_of(content: str) -> int:
    """Give the CRC-32 of a passage: some two microseconds for one of 400 tokens."""
    return zlib.crc32(content.encode())


def hash_of(content: str) -> str:
    """Give the SHA-256 of a whole text in hexadecimal."""
    return sha256(content.encode()).hexdigest()


def texts(connection: apsw.Connection) -> Iterator[tuple[int, bool, list[tuple[int, str]]]]:
    """Give every memory's number, whether its text has its hash, and its chunks by number."""
    rows: Any = connection.execute(_TEXTS)
    for (memory_no, content_hash), parts in groupby(rows, key=itemgetter(0, 1)):
        chunks = [(number, content) for _, _, number, content in parts if number is not None]
        digest = sha256()
        for _, content in chunks:
            digest.update(content.encode())
        yield memory_no, digest.digest() == content_hash, chunks


def fill(connection: apsw.Connection) -> None:
    """Give a checksum to every chunk of a text that is as it was saved."""
    # All are read before any is written: a row that moves would be read twice.
    sound = [
        (checksum_of(content), number)
        for _, fits, chunks in texts(connection)
        if fits
        for number, content in chunks
    ]
    connection.executemany("UPDATE chunks SET checksum = ? WHERE chunk_no = ?", sound)
