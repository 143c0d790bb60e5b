"""Translate SQLite's errors into ours, with a message and a hint for the user."""

from __future__ import annotations

from pathlib import Path

import apsw

from byheart.errors import (
    Do,
    Hint,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    name_store,
)


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
    return StoreDamaged(
        Hint(name_store(str(path)), f" is damaged or not a Byheart store: {error}"),
        Hint(
            "nothing was changed; see how much is damaged with: ",
            Do("admin.doctor"),
            ". If the file is damaged and not only badly read, put a backup in its place, or "
            f"save what can be read with: sqlite3 {path.name} .recover",
        ),
    )


def describe_wait(path: Path, busy_seconds: float) -> StoreBusy:
    """Make the error for a lock that another process did not release in time."""
    return StoreBusy(
        Hint(
            "another process kept ", name_store(str(path)), f" locked for {busy_seconds:g} seconds"
        ),
        "try again; if it lasts, look for a process that hangs, or raise busy_timeout_seconds",
    )
