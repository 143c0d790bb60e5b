"""Translate SQLite's errors into ours, with a message and a hint for the user."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

import apsw

from byheart.errors import (
    Do,
    Hint,
    Private,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    name_store,
)

_HEADER, _SMALLEST_PAGE = b"SQLite format 3\0", 512


def explain(error: apsw.Error, path: Path, busy_seconds: float) -> StoreError:
    """Translate an error of SQLite into one of ours."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return describe_wait(path, busy_seconds)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return describe_damage(path, error)
    store = name_store(str(path))
    # Without a little free space, SQLite cannot even read a file that others may write.
    no_room = getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE
    if isinstance(error, apsw.FullError) or no_room:
        return StoreFull(
            Hint(
                "the disk that holds ",
                store,
                " is full",
                ", so that it cannot be opened" if no_room else "; this was not written",
            ),
            "free some space and run the command again",
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreReadOnly(
            Hint(store, f" can be read but not written: {error}"),
            "give yourself write access to the file and its folder, or choose another db_path",
        )
    if isinstance(error, apsw.CantOpenError):
        return StoreUnreachable(
            Hint("cannot open ", store, f": {error}"),
            "check that the folder exists and that you may read and write it",
        )
    if isinstance(error, apsw.IOError):
        return StoreError(
            Hint("the disk failed while ", store, f" was read or written: {error}"),
            Hint(
                "try again; if it happens again, check the disk and how it is attached, and "
                "then the store with: ",
                Do("admin.doctor"),
            ),
        )
    return StoreError(
        Hint(store, f" failed: {error}"),
        Hint("look for the reason with: ", Do("admin.doctor")),
    )


def describe_damage(path: Path, error: Exception) -> StoreDamaged:
    """Make the error for a file that is damaged or not a store."""
    store = name_store(str(path))
    if isinstance(error, apsw.NotADBError) and _is_foreign(path):
        another = "choose another file (setting db_path); this one was left as it is"
        return StoreDamaged(Hint(store, " is not an SQLite database"), another, another)
    remedy = restore_hint(path)
    return StoreDamaged(
        Hint(store, f" is damaged or not a Byheart store: {error}"),
        Hint(
            "nothing was changed; see how much is damaged with: ",
            Do("admin.doctor"),
            ". If the file is damaged and not only badly read, ",
            remedy,
        ),
        remedy,
    )


def restore_hint(path: Path) -> Hint:
    """Say what to do about a damaged file that Byheart cannot repair."""
    recover = f"sqlite3 {shlex.quote(str(path))} .recover | sqlite3 NEW.db"
    return Hint(
        "put a backup in its place, or save what can be read with: ",
        Private(recover, "sqlite3 STORE .recover | sqlite3 NEW.db"),
        " (take sqlite3 from sqlite.org: some systems build it without .recover)",
    )


def _is_foreign(path: Path) -> bool:
    """Tell whether a file was never a database: SQLite writes whole pages, behind a header."""
    with suppress(OSError), path.open("rb") as file:
        begins_as_database = file.read(len(_HEADER)) == _HEADER
        return not begins_as_database and path.stat().st_size % _SMALLEST_PAGE > 0
    return False


def describe_wait(path: Path, busy_seconds: float) -> StoreBusy:
    """Make the error for a lock that another process did not release in time."""
    return StoreBusy(
        Hint(
            "another process kept ", name_store(str(path)), f" locked for {busy_seconds:g} seconds"
        ),
        "try again; if it lasts, look for a process that hangs, or raise busy_timeout_seconds",
    )
