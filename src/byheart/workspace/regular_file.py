"""Open regular files below a root without following links, and read them completely."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from byheart.errors import InvalidInput, Unreadable
from byheart.startup.dataclass_types import dataclass
from byheart.workspace.rules.ignoring import MAX_FILE_BYTES, TOO_LARGE

_NO_FOLLOW = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
# Opening a pipe must not block, and a terminal must not become our controlling terminal.
_FILE = _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER = _NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True, slots=True)
class SeenFile:
    """Hold a file's path below the root and the values that show a change or a move."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    device: int


def seen_as(path: str, details: os.stat_result) -> SeenFile:
    """Keep the file details that are compared later."""
    return SeenFile(path, details.st_size, details.st_mtime_ns, details.st_ino, details.st_dev)


def read_bytes(root: Path, path: str) -> tuple[SeenFile, bytes]:
    """Read a file as it was when it was opened.

    A concurrent write is not waited for: the file's modification time then differs from the one
    returned here, so the next run reads the file again.
    """
    try:
        with _opened(root, path) as (handle, device):
            details = os.fstat(handle)
            if not stat.S_ISREG(details.st_mode):
                raise Unreadable("is not a regular file", for_now=True)
            if details.st_dev != device:
                raise Unreadable("is on another file system than the root", for_now=True)
            if details.st_size > MAX_FILE_BYTES:
                raise Unreadable(f"is {TOO_LARGE}")
            return seen_as(path, details), _read(handle, details.st_size)
    except FileNotFoundError as error:
        raise Unreadable("is no longer there", for_now=True) from error
    except OSError as error:
        raise Unreadable(describe(error), for_now=True) from error


def describe(error: OSError) -> str:
    """Explain in a few words why a file could not be opened."""
    if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
        return "is a link, or behind one"
    return f"cannot be read: {explain_error(error)}"


def explain_error(error: OSError | ValueError) -> str:
    """Return the system's error message, in lower case for use within a sentence."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text[:1].lower() + text[1:]


def _read(handle: int, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := os.read(handle, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


@contextmanager
def _opened(root: Path, path: str) -> Iterator[tuple[int, int]]:
    """Open a file folder by folder, so that no folder can be swapped for a link meanwhile."""
    *folders, name = path.split("/")
    if not name or any(part in ("", ".", "..") for part in folders) or "\0" in path:
        raise InvalidInput(f"{path!r} is not a path below the root", "give it without `..`")
    if os.open not in os.supports_dir_fd:
        with _opened_by_path(root, path) as found:
            yield found
        return
    at = os.open(root, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        device = os.fstat(at).st_dev
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        handle = os.open(name, _FILE, dir_fd=at)
    finally:
        os.close(at)
    try:
        yield handle, device
    finally:
        os.close(handle)


@contextmanager
def _opened_by_path(root: Path, path: str) -> Iterator[tuple[int, int]]:
    """Open a file by its path, on systems that cannot open relative to a folder handle."""
    base = root.resolve()
    file = base / path
    if file.resolve() != file:
        raise Unreadable("is a link, or behind one", for_now=True)
    handle = os.open(file, _FILE)
    try:
        yield handle, base.stat().st_dev
    finally:
        os.close(handle)
