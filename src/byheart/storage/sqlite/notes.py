"""Notes: what is worth writing down, but worth nobody's waiting.

A note is no text: it is committed without waiting for the disk, and while another process writes
it is kept in memory until the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import apsw

from byheart.errors import StoreError
from byheart.forking import renew_after_fork
from byheart.storage.sqlite.database import Database

Key = TypeVar("Key")
Value = TypeVar("Value")

# How long closing the store may wait for others who write: the last chance not to lose a note.
_LAST_WAIT_MS = 5000


class Notes(Generic[Key, Value]):
    """Write notes through a connection that never waits."""

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
        # A connection must not cross a fork, not even to be closed: leave the parent's alone.
        self._inherited = getattr(self, "_connection", None)
        self._connection: apsw.Connection | None = None

    def add(self, change: Callable[[dict[Key, Value]], None]) -> None:
        """Change what is to be written, and write it if nobody else does just now."""
        if not self._database.writable:
            return
        with self._lock:
            change(self._waiting)
            self._write_waiting(0)

    def flush(self) -> None:
        """Write what is waiting, if others leave room for it soon, and let go of the file."""
        with self._lock:
            self._write_waiting(_LAST_WAIT_MS)
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _write_waiting(self, busy_timeout_ms: int) -> None:
        if not self._waiting:
            return
        try:
            if self._connection is None:
                self._connection = self._open()
            self._connection.set_busy_timeout(busy_timeout_ms)
            with self._connection:
                self._write(self._connection, self._waiting)
        except (apsw.Error, StoreError):
            return  # busy, or the disk is full: these are written with the next one
        self._waiting.clear()

    def _open(self) -> apsw.Connection:
        connection = self._database.connect()
        connection.transaction_mode = "IMMEDIATE"
        # No wait for the disk at each commit; whoever saves a text syncs the log, and checkpoints.
        # Where nobody saves, one note in some ten thousand does it, before the log is large.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 10000")
        return connection
