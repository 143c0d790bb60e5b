"""How often memories are given out: counted at once if that costs nothing, or else a little later.

A count is no text: it is committed without waiting for the disk, and while another process writes
it is kept in memory until the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import apsw

from byheart.errors import StoreError
from byheart.forking import renew_after_fork
from byheart.storage.sqlite import life
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.times import now_micros

# How long closing the store may wait for others who write: the last chance not to lose a count.
_LAST_WAIT_MS = 5000


class Accesses:
    """Count accesses through a connection that never waits."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._renew()
        renew_after_fork(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], tuple[int, int]] = {}
        # A connection must not cross a fork, not even to be closed: leave the parent's alone.
        self._inherited = getattr(self, "_connection", None)
        self._connection: apsw.Connection | None = None

    def count(self, memory_ids: Sequence[str], space: str) -> None:
        """Count one access of each memory now."""
        if not self._database.writable:
            return
        now = now_micros()
        with self._lock:
            for memory_id in memory_ids:
                times, _ = self._waiting.get((space, memory_id), (0, 0))
                self._waiting[space, memory_id] = (times + 1, now)
            self._write()

    def flush(self) -> None:
        """Write what is waiting, if others leave room for it soon, and let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.set_busy_timeout(_LAST_WAIT_MS)
            self._write()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _write(self) -> None:
        if not self._waiting:
            return
        try:
            if self._connection is None:
                self._connection = self._open()
            with self._connection:
                life.count_accesses(self._connection, self._waiting)
        except (apsw.Error, StoreError):
            return  # busy, or the disk is full: the next one counts these as well
        self._waiting.clear()

    def _open(self) -> apsw.Connection:
        connection = self._database.connect()
        connection.set_busy_timeout(0)
        connection.transaction_mode = "IMMEDIATE"
        # No wait for the disk at each commit; whoever saves a text syncs the log, and checkpoints.
        # Where nobody saves, one recall in some ten thousand does it, before the log is large.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 10000")
        return connection
