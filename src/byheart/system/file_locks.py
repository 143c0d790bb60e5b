"""Hold a lock file, so that only one process at a time does some work.

The system releases the lock of a process that ends. A folder whose file system knows no locks gives
one to everybody, so the work must be safe without it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_POLL_SECONDS = 0.02
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(handle: int) -> None:
        # Said to the system, because a forked child would keep the lock of a file that is closed.
        fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def file_lock(path: Path, mode: int, wait_seconds: float) -> Iterator[bool]:
    """Hold the lock of a file, and say whether it could be had within some seconds."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, mode)
    try:
        held = _acquire(handle, time.monotonic() + wait_seconds)
        try:
            yield held
        finally:
            if held:
                with contextlib.suppress(OSError):
                    _unlock(handle)
    finally:
        os.close(handle)


def _acquire(handle: int, deadline: float) -> bool:
    while True:
        try:
            _lock(handle)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return True
        else:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
