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
from byheart.storage.sqlite.database import Database
from byheart.system.forking import renew_after_fork

Key = TypeVar("Key")
Value = TypeVar("Value")

# How long closing the store may wait for others who write: the last chance not to lose a note, and
# what somebody who only searched waits for his prompt.
_LAST_WAIT_MS = 500


class Notes(Generic[Key, Value]):
    """Write notes without ever waiting for others."""

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
        """Change what is to be written, and write it if nobody else does just now."""
        if not self._database.writable:
            return
        with self._lock:
            change(self._waiting)
            self._write_waiting(0)

    def flush(self) -> None:
        """Write what is waiting, if others leave room for it soon."""
        with self._lock:
            self._write_waiting(_LAST_WAIT_MS)

    def _write_waiting(self, wait_ms: int) -> None:
        if not self._waiting:
            return
        try:
            with self._database.noting(wait_ms) as connection:
                self._write(connection, self._waiting)
        except StoreError:
            return  # busy, or the disk is full: these are written with the next one
        self._waiting.clear()
