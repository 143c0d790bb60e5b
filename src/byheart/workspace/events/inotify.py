"""Read the Linux kernel's file events directly.

`watchfiles` (1.3) is not used here. It does not report that the kernel's queue overflowed and
events were lost; after one name that is not UTF-8 it reports nothing more; and it cannot add a
folder to a running watch. The system calls can do all of this.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from dataclasses import dataclass

from byheart.workspace.events.inbox import Inbox

MODIFIED = 0x2
ATTRIBUTES = 0x4
WRITTEN = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATED = 0x100
DELETED = 0x200
SELF_DELETED = 0x400
SELF_MOVED = 0x800
UNMOUNTED = 0x2000
OVERFLOWED = 0x4000
RELEASED = 0x8000
"""The kernel gave up a registration: its folder is gone."""
IS_FOLDER = 0x4000_0000

_ONLY_FOLDERS = 0x100_0000
_NO_SYMLINKS = 0x200_0000
_NOT_UNLINKED = 0x400_0000
# Read events are not requested: indexing itself would fill the queue with them.
_ASKED_FOR = (
    MODIFIED | ATTRIBUTES | WRITTEN | MOVED_FROM | MOVED_TO | CREATED | DELETED
    | SELF_DELETED | SELF_MOVED | _ONLY_FOLDERS | _NO_SYMLINKS | _NOT_UNLINKED
)  # fmt: skip
_HEADER = struct.Struct("iIII")
_READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Event:
    """Describe what happened to a name in the folder registered under a number."""

    number: int
    mask: int
    name: bytes = b""


OVERFLOW = Event(-1, OVERFLOWED)


class Inotify:
    """Hold one inotify instance and read its events as they arrive."""

    def __init__(self, inbox: Inbox[Event] | None = None) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _last_error("inotify_init1")
        self._inbox = Inbox(OVERFLOW) if inbox is None else inbox
        self._ending, self._end = os.pipe()
        # A separate thread reads, because the kernel keeps only 16,384 events and the consumer may
        # be busy embedding for minutes.
        self._listener = threading.Thread(target=self._listen, name="byheart-watch", daemon=True)
        self._listener.start()

    def add(self, folder: bytes) -> int:
        """Register a folder, without its subfolders, and return its number."""
        number: int = self._libc.inotify_add_watch(
            self._descriptor, ctypes.c_char_p(folder), ctypes.c_uint32(_ASKED_FOR)
        )
        if number < 0:
            raise _last_error(os.fsdecode(folder))
        return number

    def remove(self, number: int) -> None:
        """Remove a registration unless the kernel already did."""
        self._libc.inotify_rm_watch(self._descriptor, number)

    def take(self, timeout_seconds: float) -> set[Event]:
        """Wait for events and take all of them."""
        return self._inbox.take(timeout_seconds)

    def close(self) -> None:
        """Release all resources."""
        if self._descriptor < 0:
            return
        os.close(self._end)
        self._listener.join()
        os.close(self._ending)
        os.close(self._descriptor)
        self._descriptor = -1

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.register(self._ending, select.POLLIN | select.POLLHUP)
        while all(ready != self._ending for ready, _ in poll.poll()):
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                continue
            self._inbox.put(_parse(data))


def _parse(data: bytes) -> set[Event]:
    events = set()
    at = 0
    while at < len(data):
        number, mask, _, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        events.add(Event(number, mask, data[at : at + length].rstrip(b"\0")))
        at += length
    return events


def _last_error(subject: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), subject)
