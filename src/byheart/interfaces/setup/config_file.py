"""Read a client's configuration file, and replace it in one step, with a backup copy."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from pathlib import Path

from byheart.errors import ByheartError
from byheart.system.file_opening import read_to_end

# A new file of a user is private: a client keeps keys of other servers in the same file.
_PRIVATE, _SHARED = 0o600, 0o644


class Changed(Exception):
    """Report that another program wrote the file after it was read."""


def backup_of(path: Path) -> Path:
    """Return the path of the backup copy, which holds the file before its last change."""
    target = path.resolve()
    return target.with_name(f"{target.name}.byheart-backup")


def read_text(path: Path) -> str | None:
    """Read a file and keep its line ends; return `None` if there is no file."""
    try:
        return read_to_end(path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ByheartError(
            f"{path} is not UTF-8 text (byte {error.start}); it was left as it is",
            "save the file as UTF-8 and run the command again",
        ) from error
    except OSError as error:
        raise _failed(path, "read", error) from error


def require_writable(path: Path) -> None:
    """Refuse a file that its owner write-protected: replacing it would ignore the protection."""
    target = path.resolve()
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    # The mode is checked as well: root may write any file, and replacing a file needs no permission
    # of the file itself.
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(target, os.W_OK):
        raise ByheartError(
            f"{path} is read-only; it was left as it is",
            f"let it be written and run the command again: chmod u+w {shlex.quote(str(target))}",
        )


def replace_text(path: Path, before: str | None, after: str, *, shared: bool) -> Path | None:
    """Replace the text of a file, or create the file; return the backup copy.

    Clients write their files too: a change made since `before` was read is not overwritten.
    """
    target = path.resolve()  # a configuration file is often a link into a folder of dotfiles
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if before is None:
            _write(target, before, after, _SHARED if shared else _PRIVATE)
            return None
        mode = stat.S_IMODE(target.stat().st_mode)
        copy = backup_of(path)
        _write(copy, read_text(copy), before, mode)
        _write(target, before, after, mode)
        return copy
    except OSError as error:
        raise _failed(path, "written", error) from error


def restore_text(path: Path, before: str, was: str | None) -> None:
    """Restore the earlier text `was`, or delete the file if there was none; delete the backup.

    As in `replace_text`, a change made since `before` was read is not overwritten.
    """
    target = path.resolve()
    try:
        if was is None:
            _require_unchanged(target, before)
            target.unlink()
        else:
            _write(target, before, was, stat.S_IMODE(target.stat().st_mode))
        backup_of(path).unlink(missing_ok=True)
    except OSError as error:
        raise _failed(path, "written", error) from error


def _write(target: Path, before: str | None, after: str, mode: int) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.touch(mode=0o600)
        with temporary.open("wb") as file:
            file.write(after.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        _require_unchanged(target, before)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _require_unchanged(target: Path, before: str | None) -> None:
    if read_text(target) != before:
        raise Changed


def _failed(path: Path, what: str, error: OSError) -> ByheartError:
    return ByheartError(f"{path} cannot be {what}: {error.strerror}", _how_to_mend(path))


def _how_to_mend(path: Path) -> str:
    if path.is_dir():
        return "a folder is in the place of the file: move it and run the command again"
    for folder in path.parents:
        if folder.exists() and not folder.is_dir():
            return f"{folder} must be a folder: move the file away and run the command again"
    return "check the permissions of file and folder"
