"""Open files and pipes for reading and writing; refuse devices and silent pipes.

A device such as /dev/zero never ends, and opening a pipe waits forever for its other end. Failures
are `OSError`s whose message can follow a file's name, like the messages of the operating system.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from byheart.errors import InvalidInput

# The time limit for the other end of a pipe to open.
PIPE_SECONDS = 3.0
_STEP_SECONDS = 0.05
_BINARY, _CLOSE = getattr(os, "O_BINARY", 0), getattr(os, "O_CLOEXEC", 0)
_DO_NOT_WAIT = getattr(os, "O_NONBLOCK", 0)


def open_to_read(path: str | Path, *, only_files: bool = False) -> io.BufferedReader:
    """Open a file, or a pipe that has a writer, for reading from its beginning.

    A later read that fails raises InvalidInput, in whichever module it happens.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name contains a NUL character")
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISSOCK(mode):
        raise OSError(errno.ENXIO, "it is a socket, not a file")
    if stat.S_ISFIFO(mode) and not only_files:
        return io.BufferedReader(_wait_for_writer(str(path)))
    # Do not block: the path may have become a pipe, or be a file in /proc that blocks.
    raw = _File(os.open(path, os.O_RDONLY | _BINARY | _CLOSE | _DO_NOT_WAIT), str(path))
    if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        if only_files or not raw.isatty():
            raw.close()
            raise OSError(errno.EINVAL, "it is a device or a pipe, not a file")
        os.set_blocking(raw.fileno(), True)  # read a terminal until the user ends the input
    return io.BufferedReader(raw)


def read_to_end(path: str | Path) -> bytes:
    """Read the whole content of a file, or of a pipe that has a writer."""
    with open_to_read(path) as stream:
        return stream.read()


def open_to_write(path: Path) -> BinaryIO:
    """Open an existing device, or a pipe that has a reader, for writing."""
    if not path.is_fifo():
        return path.open("wb")
    until = time.monotonic() + PIPE_SECONDS
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | _CLOSE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, "nobody reads from this pipe") from error
            time.sleep(_STEP_SECONDS)
        else:
            os.set_blocking(handle, True)
            return os.fdopen(handle, "wb")


class _File(io.FileIO):
    """Read a file, and report a failing read as InvalidInput with the file's name."""

    def __init__(self, handle: int, called: str, first: bytes = b"") -> None:
        super().__init__(handle, "rb")
        self._called = called
        self._first = first

    def readinto(self, buffer: Any) -> int:
        """Read the available bytes."""
        if self._first:
            buffer[:1], self._first = self._first, b""
            return 1
        with self._explained():
            count: int | None = super().readinto(buffer)
            if count is None:
                raise BlockingIOError(errno.EAGAIN, "it has nothing to give now")
            return count

    def readall(self) -> bytes:
        """Read until the end."""
        first, self._first = self._first, b""
        with self._explained():
            return first + (super().readall() or b"")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InvalidInput(
                f"{self._called} cannot be read: {error.strerror}", "check the path"
            ) from error


def _wait_for_writer(path: str) -> _File:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _CLOSE)
    try:
        first = _await_bytes(handle)
        os.set_blocking(handle, True)
        return _File(handle, path, first)
    except BaseException:
        os.close(handle)
        raise


def _await_bytes(handle: int) -> bytes:
    """Wait until a pipe has a writer; return the byte that this check may have read."""
    until = time.monotonic() + PIPE_SECONDS
    pipe = select.poll()
    pipe.register(handle, select.POLLIN)
    while not pipe.poll(1000 * _STEP_SECONDS):
        try:
            if first := os.read(handle, 1):
                return first
        except BlockingIOError:  # there is a writer, but it has written nothing yet
            return b""
        if time.monotonic() > until:
            raise OSError(errno.EAGAIN, "nobody writes into this pipe")
    return b""
