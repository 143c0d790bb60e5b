"""Handle forks: owners of locks, threads and connections renew them in the child process.

A fork must also wait while another thread uses SQLite or writes the index. Otherwise the child
would inherit locks that no thread ever releases there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

# The time limit for each lock before a fork; a risky fork is better than a program that hangs.
LONGEST_WAIT_SECONDS = 2.0


class _Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...


class _Taken(threading.local):
    """Hold the locks that this thread has acquired for a fork."""

    def __init__(self) -> None:
        self.locks: list[_Lock] = []


_renewals: list[weakref.WeakMethod[Callable[[], None]]] = []
_working: list[weakref.WeakMethod[Callable[[], _Lock]]] = []
_registering = threading.Lock()
_taken = _Taken()


def renew_after_fork(renew: Callable[[], None]) -> None:
    """Register a method to be called in every forked child, as long as its object lives."""
    with _registering:
        _renewals[:] = [each for each in _renewals if each() is not None]
        _renewals.append(weakref.WeakMethod(renew))


def wait_before_fork(lock: Callable[[], _Lock]) -> None:
    """Make every fork wait for the lock that `lock` returns, which a thread holds while it works.

    In the child, the lock is still acquired, so its owner must renew it.
    """
    with _registering:
        _working[:] = [each for each in _working if each() is not None]
        _working.append(weakref.WeakMethod(lock))


def _take_all() -> None:
    # Acquire the newest lock first: publishing the index reads the store, never the reverse.
    for each in reversed(tuple(_working)):
        give = each()
        lock = None if give is None else give()
        if lock is not None and lock.acquire(timeout=LONGEST_WAIT_SECONDS):
            _taken.locks.append(lock)


def _release_all() -> None:
    while _taken.locks:
        _taken.locks.pop().release()


def _renew_all() -> None:
    global _registering
    _registering = threading.Lock()
    _taken.locks.clear()
    for each in tuple(_renewals):
        renew = each()
        if renew is not None:
            renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_renew_all)
