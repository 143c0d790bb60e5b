"""Notes: what is worth writing down, but worth nobody's waiting.

A note is no text: it is committed without waiting for the disk, and while another process writes
it is kept in memory. What can wait a moment is written together with all that comes meanwhile.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar

import apsw

from byheart.errors import StoreError
from byheart.forking import renew_after_fork
from byheart.storage.sqlite.database import Database

Key = TypeVar("Key")
Value = TypeVar("Value")

# How long closing the store may wait for others who write: the last chance not to lose a note.
_LAST_WAIT_MS = 5000
# How long notes are gathered, and how often this is tried while others write. A commit of its own
# for each search would take a tenth of it.
GATHERED_SECONDS, _ATTEMPTS = 0.05, 100


class Notes(Generic[Key, Value]):
    """Write notes without ever waiting for others."""

    def __init__(
        self, database: Database, write: Callable[[apsw.Connection, Mapping[Key, Value]], None]
    ) -> None:
        self._database = database
        self._write = write
        self._renew()
        renew_after_fork(self._renew)
        _open_notes.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Key, Value] = {}
        self._gathering = False

    def add(self, change: Callable[[dict[Key, Value]], None]) -> None:
        """Change what is to be written, and write it if nobody else does just now."""
        if not self._database.writable:
            return
        with self._lock:
            change(self._waiting)
            self._write_waiting(0)

    def add_soon(self, change: Callable[[dict[Key, Value]], None]) -> None:
        """Change what is to be written, which is done a moment later, beside other work."""
        if not self._database.writable:
            return
        with self._lock:
            change(self._waiting)
            if self._gathering:
                return
            self._gathering = True
        # A thread for each time, and none while nothing happens: idle stores wake nobody up.
        with suppress(RuntimeError):  # the interpreter is about to end
            threading.Thread(target=self._write_later, name="byheart-notes", daemon=True).start()

    def _write_later(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            time.sleep(GATHERED_SECONDS)
            with self._lock:
                self._write_waiting(0)
                if not self._waiting or attempt == _ATTEMPTS:
                    self._gathering = False
                    return

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


_open_notes: weakref.WeakSet[Notes[Any, Any]] = weakref.WeakSet()


@atexit.register
def _flush_all() -> None:
    for notes in list(_open_notes):
        notes.flush()
