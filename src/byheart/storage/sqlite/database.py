"""Manage one SQLite file: its connections, its transactions and the meaning of its errors."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw

from byheart.errors import (
    Hint,
    Private,
    StoreError,
    StoreReadOnly,
    StoreTooNew,
    StoreUnreachable,
    name_store,
)
from byheart.model.damage import UNEXPECTED, DamagedRow
from byheart.storage.sqlite.change_mark import ChangeMark
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.error_translation import describe_damage, describe_wait, explain
from byheart.storage.sqlite.files import beside
from byheart.system.forks import (
    FileIdentity,
    explain_refusal,
    inherit,
    never_free,
    refuse_inherited,
    tell_after_fork,
    working,
)
from byheart.system.private_files import FILE_MODE, make_private_folder

_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",  # an acknowledged save survives power loss
    "PRAGMA fullfsync = ON",  # on macOS a plain fsync leaves data in the disk's cache
    "PRAGMA secure_delete = ON",  # deleted data is overwritten, not merely freed
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -8000",
    "PRAGMA journal_size_limit = 67108864",
)


# Only valid values are ever written: these bytes have changed since.
_DAMAGED = (UnicodeDecodeError, json.JSONDecodeError, DamagedRow)
_creating = threading.Lock()


def _create_private(path: Path) -> None:
    """Create the file of a new store; SQLite gives its log the same permissions.

    Only one thread at a time may do so: closing a file that SQLite has open drops SQLite's locks.
    """
    with _creating, contextlib.suppress(OSError):
        # If the system refuses, SQLite reports the reason.
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE))


def _look_at(path: str) -> FileIdentity | None:
    """Identify the file at a path without opening it, which would drop SQLite's locks."""
    try:
        found = os.stat(path)  # noqa: PTH116 (twice as fast, and every search begins here)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _find_damage(connection: SqliteConnection) -> str | None:
    try:
        said = str(connection.execute("PRAGMA integrity_check(1)").get)
    except apsw.Error as error:
        return str(error)
    return None if said == "ok" else " ".join(said.split())


class Database:
    """Hand out connections: any number of readers, one writer at a time per process."""

    def __init__(self, path: Path, busy_timeout_seconds: float, *, read_only: bool = False) -> None:
        self.path = path
        self._name = name_store(str(path))
        self._file = str(path)
        refuse_inherited(path, _look_at(self._file))
        self._busy_timeout_seconds = busy_timeout_seconds
        self._writing = threading.RLock()
        self._writer: SqliteConnection | None = None
        self._idle: list[SqliteConnection] = []
        self._closed = False
        self._is_inherited = False
        self._identity: FileIdentity | None = None
        self._log_path = beside(path, "-wal")
        self._log_file = str(self._log_path)
        # While any connection is open, SQLite keeps its log, which must stay the same file.
        self._log_identity: FileIdentity | None = None
        self._log_lost: str | None = None
        # The connections that have the log open, so that closing another one keeps it.
        self._connections: set[SqliteConnection] = set()
        self._counting = threading.Lock()
        self.change_mark = ChangeMark(beside(path, "-last"))
        # The schema that this program can write; `None` until the migration has determined it.
        self.schema_version: int | None = None
        # SQLite itself needs a file beside the store even to read it; it removes that file again.
        self._has_write_access = self._prepare_folder()
        self.writable = self._has_write_access and not read_only
        self.refusal: StoreReadOnly | None = None  # why the store must not be written
        tell_after_fork(self)

    def _prepare_folder(self) -> bool:
        try:
            if not self.path.exists():
                make_private_folder(self.path.parent)
            elif self.path.is_dir():
                raise StoreUnreachable(
                    f"{self.path} is a folder, not a store",
                    "name a file in it, for example memory.db",
                )
            elif not self.path.is_file():
                raise StoreUnreachable(
                    f"{self.path} is not a database file: it is a device, a pipe or a socket",
                    "choose a regular file for the store: setting db_path",
                )
        except OSError as error:
            raise StoreUnreachable(
                f"cannot make the folder {self.path.parent}: {error.strerror}",
                "choose another file for the store: setting db_path",
            ) from error
        return os.access(self.path.parent, os.W_OK) and (
            not self.path.exists() or os.access(self.path, os.W_OK)
        )

    @contextmanager
    def connected(self) -> Iterator[SqliteConnection]:
        """Hold a separate connection."""
        self._check_in()
        with working(self.path):
            connection = self._connect()
            try:
                yield connection
            finally:
                self._close(connection)

    def _connect(self) -> SqliteConnection:
        """Open a connection that waits for locks and commits durably."""
        self._check_in()
        with self.translated():
            if not self.writable and not self.path.exists():
                raise StoreUnreachable(
                    f"there is no store at {self.path}, and its folder cannot be written to",
                    "choose another file for the store: setting db_path",
                )
            if self._identity is None and self.writable:
                _create_private(self.path)
            connection = SqliteConnection(self._address(), flags=self._flags())
            self._identity = self._identity or _look_at(self._file)
            try:
                connection.set_busy_timeout(int(self._busy_timeout_seconds * 1000))
                for pragma in _PRAGMAS:
                    connection.execute(pragma)  # the first one that reads the file opens the log
                if self._has_write_access and not self.writable:
                    self._only_read(connection)
            except BaseException:
                self._close(connection)
                raise
            with self._counting:
                self._connections.add(connection)
            return connection

    def _only_read(self, connection: SqliteConnection) -> None:
        """Have SQLite change nothing, and leave a log in place that it would move into the file."""
        connection.execute("PRAGMA query_only = ON")
        if self._log_path.exists() and self._log_path.stat().st_size:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _address(self) -> str:
        wal = self._log_path
        if self._has_write_access or (wal.exists() and wal.stat().st_size):
            return f"file:{quote(str(self.path))}"
        # SQLite opens a WAL database on a read-only file system only as immutable.
        return f"file:{quote(str(self.path))}?immutable=1"

    def _flags(self) -> int:
        if self._has_write_access:
            # A file that existed and is missing now must not be created again as an empty one.
            create = 0 if self._identity or not self.writable else apsw.SQLITE_OPEN_CREATE
            return apsw.SQLITE_OPEN_READWRITE | create | apsw.SQLITE_OPEN_URI
        return apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        """Hold one snapshot of everything committed before; later writes do not change it."""
        self._check_in()
        with working(self.path), self.translated():
            connection = self._take_idle() or self._open_reader()
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                except UNEXPECTED as error:
                    self._suspect(connection, error)
                    raise
                finally:
                    if not self._is_inherited:
                        connection.execute("ROLLBACK")
            except apsw.Error:
                self._close(connection)
                raise
            except BaseException:
                self._give_back(connection)
                raise
            self._give_back(connection)

    @contextmanager
    def noting(self, wait_ms: int) -> Iterator[SqliteConnection]:
        """Hold the write lock for a minor write that does not wait for the disk.

        The write uses a reader's connection, so that this connection keeps its page cache; a write
        by another connection would make the cache invalid.
        """
        self._check_in()
        with working(self.path), self.translated():
            connection = self._take_idle() or self._open_reader()
            try:
                connection.set_busy_timeout(wait_ms)
                with connection:
                    self._refuse_newer(connection)
                    yield connection
            finally:
                connection.set_busy_timeout(int(self._busy_timeout_seconds * 1000))
                self._give_back(connection)

    def _open_reader(self) -> SqliteConnection:
        connection = self._connect()
        if self.writable:
            connection.transaction_mode = "IMMEDIATE"
            # A save of a text syncs and checkpoints the log. In a process that saves nothing, one
            # note in some ten thousand does so, before the log becomes large.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint = 10000")
        return connection

    def _take_idle(self) -> SqliteConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # checking first would race with other threads
            return None

    def _give_back(self, connection: SqliteConnection) -> None:
        if self._is_inherited:
            return
        # A reader without write access may have opened the file as immutable before a writer
        # came, so it opens a new connection each time. An interrupt can leave a transaction open.
        if self._closed or not self.writable or connection.in_transaction:
            self._close(connection)
        else:
            if self._log_identity is None:
                self._note_log()
            self._idle.append(connection)

    def _close(self, connection: SqliteConnection) -> None:
        if self._is_inherited:
            return
        with self._counting:
            self._connections.discard(connection)
            if not self._connections:
                # SQLite deletes the log with the last connection; forget it before that.
                self._log_identity = None
        # All commits are in the log: a checkpoint that fails here loses nothing.
        with contextlib.suppress(apsw.Error):
            connection.close()

    @contextmanager
    def writing(self) -> Iterator[SqliteConnection]:
        """Hold the write lock for one transaction: commit all of it, or nothing."""
        self._check_in()
        if self.refusal is not None:
            raise StoreReadOnly(self.refusal.message, self.refusal.hint)
        if not self.writable:
            raise StoreReadOnly(
                Hint(self._name, " can be read but not written"),
                "give yourself write access to the file and its folder, or choose another db_path",
            )
        with self._taking_turns(), self.translated():
            if self._writer is None:
                self._writer = self._connect()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                self._refuse_newer(self._writer)
                try:
                    yield self._writer
                except UNEXPECTED as error:
                    self._suspect(self._writer, error)
                    raise
                self._refuse_inherited()
                change = self.change_mark.last(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                if not self._is_inherited and self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            # If the log was deleted in the meantime, this commit is lost with it.
            self._check_log()
            if self._log_identity is None:
                self._note_log()
            self.change_mark.note(change)

    def _refuse_newer(self, connection: SqliteConnection) -> None:
        """Refuse to write to a store that a newer program changed while it was open here."""
        found = connection.execute("PRAGMA user_version").get
        if self.schema_version is not None and found > self.schema_version:
            raise StoreTooNew(
                Hint(
                    self._name,
                    f" was brought to schema {found} by a newer version of Byheart while it was "
                    f"open; this version knows {self.schema_version}",
                ),
                "start this program again; if it is refused then, upgrade with: "
                "pip install -U byheart",
            )

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        with working(self.path):
            if not self._writing.acquire(timeout=self._busy_timeout_seconds):
                raise describe_wait(self.path, self._busy_timeout_seconds)
            try:
                yield
            finally:
                self._writing.release()

    @contextmanager
    def maintaining(self) -> Iterator[SqliteConnection]:
        """Hold this process's write lock outside a transaction (VACUUM, checkpoints, pragmas)."""
        self._check_in()
        with self._taking_turns(), self.translated(), self.connected() as connection:
            # VACUUM rebuilds the whole file, which must not happen in memory.
            connection.execute("PRAGMA temp_store = FILE")
            yield connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate SQLite's errors into ours, in this one place."""
        try:
            yield
        except apsw.Error as error:
            raise explain(error, self.path, self._busy_timeout_seconds) from error
        except _DAMAGED as error:
            # Only valid values are ever written: these bytes have changed since.
            raise describe_damage(self.path, error) from error

    def _suspect(self, connection: SqliteConnection, error: Exception) -> None:
        """Check the file after an error that sound rows cannot cause: rows may be inconsistent.

        Reading the whole file takes seconds, but only after the program has failed already.
        """
        if self._is_inherited or isinstance(error, _DAMAGED):
            return  # not to be read here, or already known as damage
        if (said := _find_damage(connection)) is not None:
            raise describe_damage(self.path, DamagedRow(said)) from error

    def _check_in(self) -> None:
        if self._closed:
            raise StoreError(Hint(self._name, " is closed"), "open it again")
        self._refuse_inherited()
        # SQLite would continue with a file that nobody else sees, and all saves would be lost. A
        # process that may only read opens the file again each time.
        known = self._identity if self.writable else None
        if known is not None and _look_at(self._file) != known:
            raise StoreUnreachable(
                Hint(self._name, " was deleted, moved or replaced while it was open"),
                "open the store again, or start the program that uses it again",
            )
        self._check_log()

    def _note_log(self) -> None:
        with self._counting:
            if self._connections and self.writable:
                self._log_identity = _look_at(self._log_file)

    def _check_log(self) -> None:
        """Refuse to continue with a log that others do not see: all saves would be lost."""
        known = self._log_identity
        if known is not None and self._log_lost is None and _look_at(self._log_file) != known:
            self._log_lost = self._confirm_loss()
        if self._log_lost is not None:
            raise StoreUnreachable(
                Hint(
                    Private(str(self._log_path), "the log of the store"),
                    f" was deleted or replaced while the store was open; {self._log_lost}",
                ),
                "stop all programs that use the store, then start them again",
            )

    def _confirm_loss(self) -> str | None:
        """Look at the log again while no connection can be closed as the last one."""
        with self._counting:
            found = _look_at(self._log_file)
            if self._log_identity in (None, found):
                return None
        return self._rescue(replaced=found is not None)

    def _rescue(self, *, replaced: bool) -> str:
        """Write the deleted log, which only this process can still read, into the database file.

        Return a message about the result. A deleted log is complete for processes that have it
        open. If another log has replaced it, another process writes to that one, and the two logs
        would contradict each other: then nothing is written.
        """
        unsure = "the latest saves may be lost"
        if replaced or not self._writing.acquire(timeout=self._busy_timeout_seconds):
            return unsure
        try:
            connection = self._writer or self._take_idle()
            if connection is None or connection.in_transaction:
                return unsure
            busy, frames, written = connection.execute("PRAGMA wal_checkpoint(FULL)").get
            if connection is not self._writer:
                self._idle.append(connection)
            whole = not busy and frames == written
            return "everything that was saved is in the database file" if whole else unsure
        except apsw.Error:
            return unsure
        finally:
            self._writing.release()

    def leave_to_parent(self) -> None:
        """Refuse every call in a forked child, and never close the parent's connections there."""
        if not self._closed or self._connections:
            self._is_inherited = True
            inherit(self._identity or _look_at(self._file))
            never_free(self)

    def _refuse_inherited(self) -> None:
        if self._is_inherited:
            raise explain_refusal(f"{self.path} was open")

    def close(self) -> None:
        """Close every connection; connections in use are closed when they are given back."""
        self._closed = True
        if self._is_inherited:
            return
        with working(self.path), self._writing:
            while (idle := self._take_idle()) is not None:
                self._close(idle)
            writer = self._writer
            if writer is not None and not writer.in_transaction:
                self._writer = None
                self._close(writer)
