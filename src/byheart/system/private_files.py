"""Files and folders that only their owner may read: memories are nobody else's.

They get their permissions as they are created, so that nobody can open them before. The user's
umask can take permissions away, never add any. Windows has other rules: there, a file belongs to
its owner where its folder does.
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
    """Make a folder and those above it that are missing; folders that exist stay as they are."""
    try:
        path.mkdir(mode=FOLDER_MODE)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_private_folder(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)
    except OSError:
        # Also a folder that is there and may not be made again, as on a read-only file system.
        if not path.is_dir():
            raise


def open_private(path: str, flags: int) -> int:
    """Open a file, as an opener of `open()`; a new one is for its owner alone."""
    return os.open(path, flags, FILE_MODE)


def close_to_others(folder: Path) -> None:
    """Make a folder of ours private if it has the permissions that earlier versions gave it.

    Any other permissions are somebody's decision.
    """
    with contextlib.suppress(OSError):
        state = folder.stat()
        ours = HAS_MODES and state.st_uid == os.getuid()
        if ours and stat.S_IMODE(state.st_mode) == _EARLIER_FOLDER_MODE:
            folder.chmod(FOLDER_MODE)


def is_exposed(path: Path) -> bool:
    """Say whether any user of the machine can read a file: its folder lets them in as well."""
    if not HAS_MODES:
        return False
    try:
        return bool(
            path.stat().st_mode & stat.S_IROTH and path.parent.stat().st_mode & stat.S_IXOTH
        )
    except OSError:
        return False


def make_private(path: Path) -> None:
    """Take all permissions on a file or folder from everybody but its owner."""
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OF_OTHERS)
