"""Copy a whole store to one file, as it is at one moment, while other processes use it."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import apsw

from byheart.errors import ByheartError, StoreFull
from byheart.storage.sqlite.database import Database
from byheart.system.private_files import FILE_MODE


def copy(database: Database, path: Path) -> None:
    """Write a compact copy under a temporary name first, so that a finished copy is complete."""
    # A separate connection, so that the writers of this process need not wait.
    with database.connected() as connection:
        _copy_whole(database, connection, path)


def _copy_whole(database: Database, connection: apsw.Connection, path: Path) -> None:
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        # Create the file with its mode before writing: no other user may read an unfinished copy.
        partial.touch(mode=FILE_MODE)
        with database.translated():
            connection.execute("VACUUM INTO ?", (str(partial),))
        _sync(partial)
        partial.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        cause = error.__cause__ or error
        if isinstance(cause, apsw.FullError | apsw.CantOpenError | apsw.IOError | OSError):
            raise _explain(cause, path) from error
        raise


def _sync(path: Path) -> None:
    # VACUUM INTO does not sync the file.
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _explain(error: apsw.Error | OSError, path: Path) -> ByheartError:
    full = isinstance(error, OSError) and error.errno == errno.ENOSPC
    if full or isinstance(error, apsw.FullError):
        return StoreFull(
            f"the disk that should hold {path} is full; no copy was left",
            "free some space, or choose another disk",
        )
    reason = error.strerror if isinstance(error, OSError) else error
    return ByheartError(
        f"cannot write {path}: {reason}", "choose a folder that exists and that you may write to"
    )
