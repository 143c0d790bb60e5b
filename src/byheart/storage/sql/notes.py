"""Write notes: minor records for which no caller should wait.

A note is committed without waiting for the disk. While another process writes, the note stays in
memory until the next one is written. To a database over a network, a thread writes the notes of a
moment together, so that the caller waits for no round trip; `settle` waits for them.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Iterable

from byheart.contracts import Emission, GivenReceipt, KeyUse, MemoryAccess, Note, OldReceipts
from byheart.errors import StoreError
from byheart.storage.sql import accesses, api_keys, emissions, receipt_rows
from byheart.storage.sql.connection import Connection, Database

# The longest time that closing the store waits for other writers. It is the last chance to write
# the notes, but a user who only searched waits this long for the shell prompt.
_LAST_WAIT_MS = 500
# The notes of so many seconds go over a network together.
_GATHERED_SECONDS = 0.1


_Kept = dict[tuple[object, ...], tuple[Note, int]]


class Notes:
    """Write notes without ever waiting for other writers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        # Held while notes are written, so that a caller who adds a note does not wait for that.
        self._writing = threading.Lock()
        # Notes that differ only in their time are kept once: the latest, and their number.
        self._waiting: _Kept = {}
        self._being_written: _Kept = {}
        self._is_gathering = False
        if database.is_remote:
            _open_notes.add(self)

    def add(self, notes: Iterable[Note]) -> None:
        """Add notes; write all waiting ones now or soon, unless another process is writing."""
        if not self._database.writable:
            return
        with self._lock:
            _merge(self._waiting, ((note, 1) for note in notes))
            must_start = self._database.is_remote and bool(self._waiting) and not self._is_gathering
            self._is_gathering |= must_start
        if must_start:
            self._start_thread()
        elif not self._database.is_remote:
            self.settle()

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._write_later, name="byheart-notes", daemon=True).start()
        except RuntimeError:  # the interpreter is about to end
            self._is_gathering = False

    def _write_later(self) -> None:
        time.sleep(_GATHERED_SECONDS)
        self._is_gathering = False
        self.settle()

    def settle_counts(self) -> None:
        """Write the waiting notes if users could miss some of them in what they read next.

        Users see accesses and uses of API keys. The others are read by few, which settle first.
        """
        notes = (*tuple(self._waiting.values()), *tuple(self._being_written.values()))
        if any(isinstance(note, MemoryAccess | KeyUse) for note, _ in notes):
            self.settle()

    def settle(self) -> None:
        """Write the waiting notes unless another process is writing now."""
        with self._writing:
            if self._waiting and self._database.writable:
                self._write_waiting(0)

    def flush(self) -> None:
        """Write the waiting notes, if other writers finish soon."""
        with self._writing:
            self._write_waiting(_LAST_WAIT_MS)

    def _write_waiting(self, wait_ms: int) -> None:
        until = time.monotonic() + wait_ms / 1000
        with self._lock:
            self._being_written, self._waiting = self._waiting, {}
        failed: list[tuple[Note, int]] = []
        for space, own in _by_space(self._being_written.values()).items():
            left_ms = max(0, round((until - time.monotonic()) * 1000))
            try:
                with self._database.noting(space, left_ms) as connection:
                    _write(connection, own)
            except StoreError:
                failed += own  # busy, or the disk is full: write these notes with the next one
        with self._lock:
            _merge(self._waiting, failed)
            self._being_written = {}


def _merge(kept: _Kept, notes: Iterable[tuple[Note, int]]) -> None:
    """Add notes, each with its number, to those that are kept."""
    for note, times in notes:
        key = (type(note), *note[:-1])  # the last field is the time
        held, before = kept.get(key, (note, 0))
        kept[key] = (held if held.at > note.at else note), before + times


def _by_space(notes: Iterable[tuple[Note, int]]) -> dict[str | None, list[tuple[Note, int]]]:
    found: dict[str | None, list[tuple[Note, int]]] = {}
    for each in notes:
        found.setdefault(_space_of(each[0]), []).append(each)
    return found


def _space_of(note: Note) -> str | None:
    return None if isinstance(note, KeyUse) else note.space


def _write(connection: Connection, notes: list[tuple[Note, int]]) -> None:
    accesses.write(
        connection, [(note, times) for note, times in notes if isinstance(note, MemoryAccess)]
    )
    emissions.write(connection, [note for note, _ in notes if isinstance(note, Emission)])
    api_keys.write_uses(connection, [note for note, _ in notes if isinstance(note, KeyUse)])
    receipt_rows.write(connection, [note for note, _ in notes if isinstance(note, GivenReceipt)])
    receipt_rows.prune(connection, [note for note, _ in notes if isinstance(note, OldReceipts)])


_open_notes: weakref.WeakSet[Notes] = weakref.WeakSet()


@atexit.register
def _write_last() -> None:
    """Write the notes of stores that nobody closed."""
    for notes in list(_open_notes):
        notes.flush()
