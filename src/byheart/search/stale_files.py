"""Tell whether the file that a hit was made of has changed since it was indexed."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from byheart.model import IndexedFile


class FileFacts(TypedDict):
    """Name the states of a file that an answer tells about."""

    relative_path: str | None
    stale: bool


def describe_file(file: IndexedFile | None) -> FileFacts:
    """Give the path below the root of its workspace, and whether the file has changed."""
    if file is None:
        return FileFacts(relative_path=None, stale=False)
    return FileFacts(relative_path=file.path, stale=has_changed(file))


def has_changed(file: IndexedFile) -> bool:
    """Compare the file on disk with the file that was read; a deleted file has changed.

    If the root is not on this machine, or the file cannot be read, nothing is known.
    """
    try:
        now = Path(file.root, file.path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return Path(file.root).is_dir()
    except (OSError, ValueError):
        return False
    if now.st_size != file.size:
        return True
    if file.mtime_ns >= 0:
        return now.st_mtime_ns != file.mtime_ns
    return now.st_mtime_ns // 1000 > file.read_at_micros
