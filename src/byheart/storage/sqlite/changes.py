"""The log of changes, from which every process brings its index up to date."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import apsw


def record_switch(connection: apsw.Connection) -> None:
    """Tell every process's index that all vectors are to be read again: they are of another model.

    No memory has the number 0.
    """
    record_change(connection, [0])


def record_change(connection: apsw.Connection, memory_nos: Sequence[int]) -> None:
    """Tell every process's index which memories to look at again."""
    connection.executemany(
        "INSERT INTO changes (memory_no, stamp) VALUES (?, ?)",
        ((memory_no, secrets.randbits(62)) for memory_no in memory_nos),
    )
