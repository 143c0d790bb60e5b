"""Write the log of changes, by which every process updates its index."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from byheart.storage.sql.connection import Connection


def record_switch(connection: Connection) -> None:
    """Make every process read all vectors again, because the model was switched.

    Each log records a switch under the number 0, which no memory has.
    """
    for _ in connection.logs():
        record_change(connection, [0])


def record_change(connection: Connection, memory_nos: Sequence[int]) -> None:
    """Make the index of every process read these memories again."""
    connection.run_many(
        "INSERT INTO changes (memory_no, stamp) VALUES (?, ?)",
        ((memory_no, secrets.randbits(62)) for memory_no in memory_nos),
    )
