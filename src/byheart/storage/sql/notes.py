"""Write notes: minor records for which no caller should wait.

A note is committed without waiting for the disk. While another process writes, the note stays in
memory until the next one is written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from byheart.contracts import Emission, KeyUse, MemoryAccess, Note
from byheart.errors import StoreError
from byheart.storage.sql import accesses, api_keys, emissions
from byheart.storage.sql.connection import Connection, Database

# The longest time that closing the store waits for other writers. It is the last chance to write
# the notes, but a user who only searched waits this long for the shell prompt.
_LAST_WAIT_MS = 500


class Notes:
    """Write notes without ever waiting for other writers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        # Notes that differ only in their time are kept once: the last one, and their number.
        self._waiting: dict[tuple[object, ...], tuple[Note, int]] = {}

    def add(self, notes: Iterable[Note]) -> None:
        """Add notes, and write all waiting ones unless another process is writing now."""
        if not self._database.writable:
            return
        with self._lock:
            for note in notes:
                key = (type(note), *note[:-1])  # the last field is the time
                _, times = self._waiting.get(key, (note, 0))
                self._waiting[key] = note, times + 1
            self._write_waiting(0)

    def flush(self) -> None:
        """Write the waiting notes, if other writers finish soon."""
        with self._lock:
            self._write_waiting(_LAST_WAIT_MS)

    def _write_waiting(self, wait_ms: int) -> None:
        if not self._waiting:
            return
        try:
            with self._database.noting(wait_ms) as connection:
                _write(connection, list(self._waiting.values()))
        except StoreError:
            return  # busy, or the disk is full: write these notes with the next one
        self._waiting.clear()


def _write(connection: Connection, notes: list[tuple[Note, int]]) -> None:
    accesses.write(
        connection, [(note, times) for note, times in notes if isinstance(note, MemoryAccess)]
    )
    emissions.write(connection, [note for note, _ in notes if isinstance(note, Emission)])
    api_keys.write_uses(connection, [note for note, _ in notes if isinstance(note, KeyUse)])
