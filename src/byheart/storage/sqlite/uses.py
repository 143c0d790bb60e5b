"""Track the threads that use a SQLite file: a fork waits for them, and new ones wait for the fork.

SQLite records for the whole process which locks it has on a file. A child process would inherit the
record without the locks: it would write at the same time as others, and into an outdated log.
Therefore connections are closed before a fork, and a child that inherits an open connection refuses
to use its file.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import apsw

from byheart.system.forking import renew_after_fork, wait_before_fork


class _Uses:
    """Track the users of each file, and act as the lock that a fork takes."""

    def __init__(self) -> None:
        self.closers: list[weakref.WeakMethod[Callable[[], None]]] = []
        self.crossed: set[Path] = set()
        # Closing an inherited connection would write back a log by its state before the fork.
        self.inherited: list[apsw.Connection] = []
        self._within: dict[object, tuple[Path, int]] = {}
        self._start_anew()
        renew_after_fork(self._renew)
        wait_before_fork(self._itself)

    def _start_anew(self) -> None:
        self.changed = threading.Condition()
        self._within.clear()
        self._forking: list[int] = []

    def _renew(self) -> None:
        self.crossed.update(path for path, _ in self._within.values())
        self._start_anew()

    def _itself(self) -> _Uses:
        return self

    def begin(self, use: object, path: Path) -> None:
        with self.changed:
            if self._forking:
                self.changed.wait_for(self._may_begin)
            self._within[use] = path, threading.get_ident()

    def _may_begin(self) -> bool:
        # A thread that already uses a file has to finish, and may need another connection.
        thread = threading.get_ident()
        return (
            not self._forking
            or thread in self._forking
            or any(thread == each for _, each in self._within.values())
        )

    def end(self, use: object) -> None:
        with self.changed:
            self._within.pop(use, None)  # a child process may end a use that its parent began
            if self._forking:
                self.changed.notify_all()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Let no new use begin, wait for present uses, and close open connections."""
        if not self.changed.acquire(blocking, timeout):
            return False
        thread = threading.get_ident()
        self._forking.append(thread)
        try:
            self.changed.wait_for(
                lambda: all(thread == each for _, each in self._within.values()),
                timeout if timeout >= 0 else None,
            )
            for each in tuple(self.closers):
                close = each()
                if close is not None:
                    with contextlib.suppress(apsw.Error):
                        close()
        except BaseException:  # Ctrl-C during the wait: Python forks nevertheless
            self.release()
            raise
        return True

    def release(self) -> None:
        """Allow new uses again."""
        self._forking.remove(threading.get_ident())
        self.changed.notify_all()
        self.changed.release()


_uses = _Uses()


class using:  # noqa: N801 (a generator would take twice as long, and every search begins here)
    """Make forks wait while a file is in use; if a fork is about to happen, wait for it first."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        _uses.begin(self, self._path)

    def __exit__(self, *_: object) -> None:
        _uses.end(self)


def close_before_fork(close: Callable[[], None]) -> None:
    """Register a method that closes unused connections, to be called before every fork."""
    with _uses.changed:
        _uses.closers[:] = [each for each in _uses.closers if each() is not None]
        _uses.closers.append(weakref.WeakMethod(close))


def has_crossed(path: Path) -> bool:
    """Say whether this process inherited a connection to a file, which makes it unusable here."""
    return path in _uses.crossed


def keep_inherited(path: Path, *connections: apsw.Connection) -> None:
    """Keep connections of the parent process referenced, so that they are never closed here."""
    if connections:
        _uses.crossed.add(path)
        _uses.inherited.extend(connections)
