"""Forks: locks, threads and connections must not cross one, so their owners renew them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable

_renewals: list[weakref.WeakMethod[Callable[[], None]]] = []


def renew_after_fork(renew: Callable[[], None]) -> None:
    """Have a method called in every forked child, for as long as its object lives."""
    _renewals[:] = [each for each in _renewals if each() is not None]
    _renewals.append(weakref.WeakMethod(renew))


def _renew_all() -> None:
    for each in _renewals:
        renew = each()
        if renew is not None:
            renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
