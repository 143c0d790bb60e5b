"""Keep the number of the last change beside the store as well, to detect lost changes.

SQLite replays its log up to the first damaged frame and ignores the rest: acknowledged saves
disappear without any error. A file of a few bytes, written after each commit, detects that. The
file is not synced, so a power cut can only make it older than the store; a store that is older than
this file has lost changes, or is an older copy.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import apsw

from byheart.contracts import COPY_MARK
from byheart.system.private_files import FILE_MODE

_FIELDS = struct.Struct("<32sqq")
_CHECK = struct.Struct("<I")
_LAST = "SELECT change_no, stamp FROM changes ORDER BY change_no DESC LIMIT 1"

_VALUES = "SELECT key, value FROM store WHERE key IN ('store_id', ?)"


class Change(NamedTuple):
    """A change of one store; `stamp` distinguishes changes of the same number in two histories."""

    store_id: str
    change_no: int
    stamp: int


class ChangeMark:
    """Remember the last change, and detect a store that does not have it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store_id: str | None = None
        # The mark of a copy that the store had when it was opened.
        self.copied_from: str | None = None
        self._lost: tuple[Change, int] | None = None

    def check(self, connection: apsw.Connection, known: Change | None) -> None:
        """Compare the store with the change that was read from the file before it was opened."""
        values = dict(connection.execute(_VALUES, (COPY_MARK,)))
        self._store_id, self.copied_from = values["store_id"], values.get(COPY_MARK)
        here = self.last(connection)
        self._lost = None
        if known is None or here is None or known.store_id != here.store_id:
            return
        stamp = connection.execute(
            "SELECT stamp FROM changes WHERE change_no = ?", (known.change_no,)
        ).get
        # Compacting a store drops earlier numbers.
        if known.change_no > here.change_no or stamp not in (None, known.stamp):
            self._lost = known, here.change_no

    def trouble(self) -> str | None:
        """Report that changes are missing, unless a user accepted the store as it is."""
        if self._lost is None:
            return None
        known, last = self._lost
        if self.read() != known:
            self._lost = None
            return None
        missing = known.change_no - last
        how_many = f"the last {missing:,} changes" if missing > 0 else "changes"
        return (
            f"{how_many} that were made to this store are not in it: its log was damaged or "
            "deleted, or an older copy was put in its place"
        )

    def last(self, connection: apsw.Connection) -> Change | None:
        """Give the last change that a transaction sees."""
        row = connection.execute(_LAST).get
        return None if row is None or not self._store_id else Change(self._store_id, *row)

    def read(self) -> Change | None:
        """Read the change from the file; return `None` if the file is missing or damaged."""
        try:
            content = self._path.read_bytes()
        except OSError:
            return None
        fields, check = content[: _FIELDS.size], content[_FIELDS.size :]
        if len(content) != _FIELDS.size + _CHECK.size or check != _CHECK.pack(zlib.crc32(fields)):
            return None
        store_id, change_no, stamp = _FIELDS.unpack(fields)
        return Change(store_id.decode("ascii", "replace"), change_no, stamp)

    def note(self, change: Change | None) -> None:
        """Write a committed change to the file, unless changes are missing and not accepted."""
        if change is not None and self._lost is None:
            self._write(change)

    def accept(self, connection: apsw.Connection) -> None:
        """Accept the present state of the store as complete."""
        self._lost = None
        change = self.last(connection)
        if change is None:
            self.forget()
        else:
            self._write(change)

    def forget(self) -> None:
        """Delete the file."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self, change: Change) -> None:
        fields = _FIELDS.pack(change.store_id.encode("ascii", "replace"), *change[1:])
        # A full disk must not make a committed save fail.
        with contextlib.suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT, FILE_MODE)
            try:
                size = os.write(handle, fields + _CHECK.pack(zlib.crc32(fields)))
                os.ftruncate(handle, size)  # a longer file would never be accepted again
            finally:
                os.close(handle)
