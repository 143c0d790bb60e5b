"""Read the Linux kernel's file events through `inotify_simple`.

`watchfiles` (1.3) is not used here. It does not report that the kernel's queue overflowed and
events were lost; after one name that is not UTF-8 it reports nothing more; and it cannot add a
folder to a running watch. inotify can do all of this.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading

from inotify_simple import INotify, flags

from byheart.startup.dataclass_types import dataclass
from byheart.workspace.events.inbox import Inbox

# Plain numbers: operations on `flags`, an IntEnum, are slow, and a burst has many events.
MODIFIED = int(flags.MODIFY)
ATTRIBUTES = int(flags.ATTRIB)
WRITTEN = int(flags.CLOSE_WRITE)
MOVED_FROM = int(flags.MOVED_FROM)
MOVED_TO = int(flags.MOVED_TO)
CREATED = int(flags.CREATE)
DELETED = int(flags.DELETE)
SELF_DELETED = int(flags.DELETE_SELF)
SELF_MOVED = int(flags.MOVE_SELF)
UNMOUNTED = int(flags.UNMOUNT)
OVERFLOWED = int(flags.Q_OVERFLOW)
RELEASED = int(flags.IGNORED)
"""The kernel gave up a registration: its folder is gone."""
IS_FOLDER = int(flags.ISDIR)

# Read events are not requested: indexing itself would fill the queue with them.
_ASKED_FOR = (
    MODIFIED | ATTRIBUTES | WRITTEN | MOVED_FROM | MOVED_TO | CREATED | DELETED
    | SELF_DELETED | SELF_MOVED | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK
)  # fmt: skip


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
        self._kernel = INotify()
        self._inbox = Inbox(OVERFLOW) if inbox is None else inbox
        self._ending, self._end = os.pipe()
        # A separate thread reads, because the kernel keeps only 16,384 events and the consumer may
        # be busy embedding for minutes.
        self._listener = threading.Thread(target=self._listen, name="byheart-watch", daemon=True)
        self._listener.start()

    def add(self, folder: bytes) -> int:
        """Register a folder, without its subfolders, and return its number."""
        return int(self._kernel.add_watch(folder, _ASKED_FOR))

    def remove(self, number: int) -> None:
        """Remove a registration unless the kernel already did."""
        with contextlib.suppress(OSError):
            self._kernel.rm_watch(number)

    def take(self, timeout_seconds: float) -> set[Event]:
        """Wait for events and take all of them."""
        return self._inbox.take(timeout_seconds)

    def close(self) -> None:
        """Release all resources."""
        if self._kernel.closed:
            return
        os.close(self._end)
        self._listener.join()
        os.close(self._ending)
        self._kernel.close()

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._kernel, select.POLLIN)
        poll.register(self._ending, select.POLLIN | select.POLLHUP)
        while all(ready != self._ending for ready, _ in poll.poll()):
            events = self._kernel.read(0)
            self._inbox.put({Event(each.wd, each.mask, os.fsencode(each.name)) for each in events})
