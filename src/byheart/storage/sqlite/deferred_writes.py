"""Write notes: minor records for which no caller should wait.

A note is committed without waiting for the disk. While another process writes, the note stays in
memory until the next one is written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import apsw

from byheart.errors import StoreError
from byheart.storage.sqlite.database import Database
from byheart.system.forking import renew_after_fork

Key = TypeVar("Key")
Value = TypeVar("Value")

# The longest time that closing the store waits for other writers. It is the last chance to write
# the notes, but a user who only searched waits this long for the shell prompt.
_LAST_WAIT_MS = 500


class DeferredWrites(Generic[Key, Value]):
    """Write notes without ever waiting for other writers."""

    def __init__(
        self, database: Database, write: Callable[[apsw.Connection, Mapping[Key, Value]], None]
    ) -> None:
        self._database = database
        self._write = write
        self._renew()
        renew_after_fork(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Key, Value] = {}

    def add(self, change: Callable[[dict[Key, Value]], None]) -> None:
        """Change the waiting notes, and write them unless another process is writing now."""
        if not self._database.writable:
            return
        with self._lock:
            change(self._waiting)
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
                self._write(connection, self._waiting)
        except StoreError:
            return  # busy, or the disk is full: write these notes with the next one
        self._waiting.clear()
