"""Refuse a store in a forked child process if it was open in the parent.

A child has a copy of its parent's memory, but not its threads and not its file locks. SQLite
believes that it holds the locks of the parent, and a lock that another thread held is never
released. So a child neither uses nor frees anything that its parent had open: closing a connection
would write an outdated log into the database, and freeing a model would wait for a missing thread.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from byheart.errors import StoreUnreachable

FileIdentity = tuple[int, int]


class _Owner(Protocol):
    def leave_to_parent(self) -> None: ...


_owners: weakref.WeakSet[_Owner] = weakref.WeakSet()
_working: set[working] = set()
_inherited: set[FileIdentity] = set()
_interrupted: list[Path] = []


def tell_after_fork(owner: _Owner) -> None:
    """Call `owner.leave_to_parent()` in every forked child, as long as the owner lives."""
    _owners.add(owner)


def never_free(thing: object) -> None:
    """Keep an object, and everything that it refers to, even when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def inherit(identity: FileIdentity | None) -> None:
    """Refuse a file in this child from now on."""
    if identity is not None:
        _inherited.add(identity)


def refuse_inherited(path: Path, identity: FileIdentity | None) -> None:
    """Raise an error if this process may not open a SQLite file.

    If another thread used SQLite at the time of the fork, no file may be opened: SQLite's own locks
    may be held forever.
    """
    if _interrupted:
        raise explain_refusal(f"another thread used {_interrupted[0]}")
    if identity in _inherited:
        raise explain_refusal(f"{path} was open")


def explain_refusal(while_: str) -> StoreUnreachable:
    """Make the error for a store that cannot be used in this child."""
    return StoreUnreachable(
        f"this process was forked while {while_} in its parent, and cannot use the store",
        "close the store before forking and open it in each process, or start workers by the "
        'method "spawn" or "forkserver"',
    )


class working:  # noqa: N801 (a generator would take twice as long, and every search begins here)
    """Note that a thread uses a SQLite file."""

    __slots__ = ("path", "thread")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.thread = threading.get_ident()

    def __enter__(self) -> None:
        _working.add(self)

    def __exit__(self, *_: object) -> None:
        _working.discard(self)


class RefusedInChild:
    """Refuse every call of an object in a forked child, without taking any lock.

    In the child, the object loses its attributes, so that every method meets `__getattr__`.
    """

    _inherited: str | None = None
    """The name of this object in a forked child; `None` in the process that made the object."""

    if not TYPE_CHECKING:  # a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            if self._inherited:
                raise explain_refusal(f"{self._inherited} was open")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_refused: weakref.WeakKeyDictionary[RefusedInChild, str] = weakref.WeakKeyDictionary()


def refuse_in_child(thing: RefusedInChild, name: str) -> None:
    """Refuse an open object in every child that is forked from now on."""
    _refused[thing] = name


def allow_in_child(thing: RefusedInChild) -> None:
    """End the refusal, because the object is closed."""
    _refused.pop(thing, None)


def _leave_all() -> None:
    """Leave everything to the parent; no thread but this one exists here, so take no lock."""
    here = threading.get_ident()
    _interrupted.extend(each.path for each in _working if each.thread != here)
    _working.clear()
    for owner in list(_owners):
        owner.leave_to_parent()
    for thing, name in list(_refused.items()):
        never_free(vars(thing).copy())
        vars(thing).clear()
        thing._inherited = name


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
