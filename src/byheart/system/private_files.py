"""Create files and folders that only their owner may read, because memories are private.

Files get their permissions when they are created, so that nobody can open them before. The user's
umask can remove permissions, but never add any. Windows has other rules: there, a file is private
if its folder is.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o600, 0o700
_OF_OTHERS = 0o077
_EARLIER_FOLDER_MODE = 0o755
HAS_MODES = os.name != "nt"


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents; leave existing folders unchanged."""
    try:
        path.mkdir(mode=FOLDER_MODE)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_private_folder(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)
    except OSError:
        # On a read-only file system, this error also occurs for a folder that exists.
        if not path.is_dir():
            raise


def open_private(path: str, flags: int) -> int:
    """Open a file, as an opener of `open()`; only the owner may access a new file."""
    return os.open(path, flags, FILE_MODE)


def close_to_others(folder: Path) -> None:
    """Make a folder of Byheart private if it has the permissions that earlier versions set.

    Any other permissions are the user's decision and stay.
    """
    with contextlib.suppress(OSError):
        state = folder.stat()
        ours = HAS_MODES and state.st_uid == os.getuid()
        if ours and stat.S_IMODE(state.st_mode) == _EARLIER_FOLDER_MODE:
            folder.chmod(FOLDER_MODE)


def is_exposed(path: Path) -> bool:
    """Return whether every user of the machine can enter a file's folder and read the file."""
    if not HAS_MODES:
        return False
    try:
        return bool(
            path.stat().st_mode & stat.S_IROTH and path.parent.stat().st_mode & stat.S_IXOTH
        )
    except OSError:
        return False


def make_private(path: Path) -> None:
    """Remove all permissions on a file or folder, except those of its owner."""
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OF_OTHERS)
