"""Forks: locks, threads and connections must not cross one, so their owners renew them.

Nor may one happen while a thread of our own is within SQLite: the child would inherit locks in
there that nobody will ever release.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

# How long a fork waits for each of them: rather a risk than a program that hangs.
_LONGEST_WAIT_SECONDS = 2.0


class _Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...


_renewals: list[weakref.WeakMethod[Callable[[], None]]] = []
_working: list[weakref.WeakMethod[Callable[[], _Lock]]] = []
_forking = threading.Lock()
_taken: list[_Lock] = []


def renew_after_fork(renew: Callable[[], None]) -> None:
    """Have a method called in every forked child, for as long as its object lives."""
    _renewals[:] = [each for each in _renewals if each() is not None]
    _renewals.append(weakref.WeakMethod(renew))


def wait_before_fork(lock: Callable[[], _Lock]) -> None:
    """Have every fork wait for the lock that a method gives, which a thread holds while it works.

    The child finds it taken, and renews it.
    """
    _working[:] = [each for each in _working if each() is not None]
    _working.append(weakref.WeakMethod(lock))


def _take_all() -> None:
    _forking.acquire()
    for each in _working:
        give = each()
        lock = None if give is None else give()
        if lock is not None and lock.acquire(timeout=_LONGEST_WAIT_SECONDS):
            _taken.append(lock)


def _release_all() -> None:
    while _taken:
        _taken.pop().release()
    _forking.release()


def _renew_all() -> None:
    global _forking
    _forking = threading.Lock()
    _taken.clear()
    for each in _renewals:
        renew = each()
        if renew is not None:
            renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_renew_all)
