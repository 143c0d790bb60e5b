"""Check the files beside the database: permissions, disk space, the log, leftover files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial

from byheart.errors import Do, Hint, StoreError
from byheart.model import Finding
from byheart.storage.sql.check_results import FIX, Checked
from byheart.storage.sqlite import files, repairs
from byheart.storage.sqlite.database import Database
from byheart.system.private_files import is_exposed

_LEAST_FREE_BYTES = 200_000_000
_LARGE_LOG_BYTES = 64 * 1024 * 1024
_STALE_BACKUP_SECONDS = 30 * 24 * 3600


def examine_files(database: Database, schema_version: int) -> Iterator[Checked]:
    """Check the files beside the database, and their permissions."""
    yield _last_changes(database)
    yield _write_access(database)
    yield _permissions(database)
    yield disk_space(database)
    yield _log(database)
    yield _backups(database, schema_version)
    yield _leftovers(database)


def _last_changes(database: Database) -> Checked:
    """Check whether the store has every change that was committed to it."""
    name, trouble = "last changes", database.change_mark.trouble()
    if trouble is None:
        return Checked(Finding(name, True, "in order"))
    hint = Hint(
        "if an older copy was put in its place on purpose, accept it with: ",
        Do("admin.doctor", fix=True),
        "; otherwise stop all programs that use the store and put a backup in its place",
    )
    return Checked(
        Finding(name, False, trouble, hint), partial(repairs.accept_present_state, database)
    )


def _write_access(database: Database) -> Checked:
    name = "write access"
    if database.writable:
        return Checked(Finding(name, True, "in order"))
    message = f"{database.path} can only be read: what is there is found, and nothing can be saved"
    hint = "give yourself write access to the file and its folder, or choose another db_path"
    return Checked(Finding(name, False, message, hint))


def _permissions(database: Database) -> Checked:
    """Check whether other users of the machine can read the store."""
    name = "file permissions"
    exposed = [path for path in files.all_of(database.path) if is_exposed(path)]
    if not exposed:
        return Checked(Finding(name, True, "in order"))
    message = "every user of this machine can read " + ", ".join(path.name for path in exposed)
    return Checked(
        Finding(name, False, message, FIX), partial(repairs.make_files_private, database)
    )


def disk_space(database: Database) -> Checked:
    """Report the free disk space."""
    name = "disk space"
    free, needed = shutil.disk_usage(database.path.parent).free, files.size(database.path)
    message = f"{free / 1e9:.1f} GB free"
    if free < _LEAST_FREE_BYTES:
        message = f"{free / 1e6:.0f} MB free, less than {_LEAST_FREE_BYTES / 1e6:.0f} MB"
        hint = "free some space: saves fail when the disk is full"
        return Checked(Finding(name, False, message, hint))
    if free < needed:
        message += f"; compacting the store needs {needed / 1e9:.1f} GB"
        return Checked(
            Finding(
                name, True, message, Hint("free some before: ", Do("admin.doctor", optimize=True))
            )
        )
    return Checked(Finding(name, True, message))


def _log(database: Database) -> Checked:
    """Check whether the log has grown because a process keeps it from being written back."""
    name = "write-ahead log"
    path = files.beside(database.path, "-wal")
    if files.size(path) <= _LARGE_LOG_BYTES or not database.writable:
        return Checked(Finding(name, True, "in order"))
    try:
        with database.maintaining() as connection:
            _, frames, written_back = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").get
    except StoreError as error:
        return Checked(Finding(name, False, error.message, error.hint))
    readers = files.processes_with(path)
    message = f"{path.name} has {files.size(path) / 1e6:.0f} MB"
    if written_back < frames:
        message += ", kept from being written back by a long read: " + (
            ", ".join(readers) or "perhaps this process"
        )
        return Checked(
            Finding(name, False, message, "end that process, then " + FIX),
            partial(repairs.empty_log, database),
        )
    message += "; all of it is written back, so it can be cut"
    return Checked(Finding(name, False, message, FIX), partial(repairs.empty_log, database))


def _backups(database: Database, schema_version: int) -> Checked:
    name = "backups"
    stale = [
        path
        for path, version in files.backups(database.path)
        if files.age(path) > _STALE_BACKUP_SECONDS or version >= schema_version
    ]
    if not stale:
        return Checked(Finding(name, True, "in order"))
    size = sum(map(files.size, stale))
    message = (
        f"{len(stale)} made before a schema change are no longer needed ({size / 1e6:.1f} MB): "
        + ", ".join(path.name for path in stale)
    )
    return Checked(Finding(name, True, message, f"if all is well, delete {stale[0]}"))


def _leftovers(database: Database) -> Checked:
    name = "leftover files"
    left = files.leftovers(database.path)
    if not left:
        return Checked(Finding(name, True, "in order"))
    size = sum(map(files.size, left))
    message = (
        f"{len(left)} were left by processes that were killed ({size / 1e6:.1f} MB): "
        + ", ".join(path.name for path in left)
    )
    return Checked(Finding(name, False, message, FIX), partial(repairs.remove_leftovers, database))
