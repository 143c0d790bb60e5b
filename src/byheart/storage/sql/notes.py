"""Write notes: minor records for which no caller should wait.

A thread writes the notes of a moment together, so that no answer waits for a transaction or a
round trip; `settle` waits for them. A note is committed without waiting for the disk. While others
write, it stays in memory: the thread tries again a few times, and the next note takes it along.
Counts that users see in every process are written at once where that takes no round trip.

A fork waits until no thread writes notes: SQLite's own locks would be held in the child for ever.
"""

from __future__ import annotations

import atexit
import os
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
# The notes of so many seconds are written together; the later pauses follow if others are writing.
_PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6)
# The longest time that a fork waits for each store whose notes are being written.
_LONGEST_FORK_WAIT_SECONDS = 1.0
# The notes that users see as counts. Looked through before every read, so not a union made anew.
_COUNTS = (MemoryAccess, KeyUse)


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
        _open_notes.add(self)

    def add(self, notes: Iterable[Note]) -> None:
        """Add notes; write all waiting ones now or soon, unless another process is writing."""
        if not self._database.writable:
            return
        added = [(note, 1) for note in notes]
        with self._lock:
            _merge(self._waiting, added)
        if not self._database.is_remote and _has_counts(added):
            self.settle()
        with self._lock:
            must_start = bool(self._waiting) and not self._is_gathering
            self._is_gathering |= must_start
        if must_start:
            self._start_thread()

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._write_later, name="byheart-notes", daemon=True).start()
        except RuntimeError:  # the interpreter is about to end
            self._is_gathering = False

    def _write_later(self) -> None:
        try:
            for pause in _PAUSES_SECONDS:
                time.sleep(pause)
                self.settle()
                with self._lock:
                    self._is_gathering = bool(self._waiting)
                    if not self._waiting:
                        return
        except BaseException:
            self._is_gathering = False  # the next note starts another thread
            raise
        self._is_gathering = False

    def settle_counts(self) -> None:
        """Write the waiting notes if users could miss some of them in what they read next.

        Users see accesses and uses of API keys. The others are read by few, which settle first.
        """
        notes = (*tuple(self._waiting.values()), *tuple(self._being_written.values()))
        if _has_counts(notes):
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
            added, self._waiting = self._waiting, {}
            _merge(self._waiting, (*failed, *added.values()))
            self._being_written = {}


def _has_counts(notes: Iterable[tuple[Note, int]]) -> bool:
    return any(isinstance(note, _COUNTS) for note, _ in notes)


def _merge(kept: _Kept, notes: Iterable[tuple[Note, int]]) -> None:
    """Add notes, each with its number, to those that are kept; the latest added is the last."""
    for note, times in notes:
        key = (type(note), *note[:-1])  # the last field is the time
        held, before = kept.pop(key, (note, 0))
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
_held_in_fork: list[threading.Lock] = []


@atexit.register
def _write_last() -> None:
    """Write the notes of stores that nobody closed."""
    for notes in list(_open_notes):
        notes.flush()


def _hold_writing() -> None:
    _held_in_fork.extend(
        notes._writing
        for notes in list(_open_notes)
        if notes._writing.acquire(timeout=_LONGEST_FORK_WAIT_SECONDS)
    )


def _release_writing() -> None:
    while _held_in_fork:
        _held_in_fork.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_writing, after_in_parent=_release_writing, after_in_child=_release_writing
    )
