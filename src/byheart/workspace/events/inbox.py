"""Pass items from a listening thread to the thread that takes them."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)

_MAX_ITEMS = 200_000
"""About 50 MB. Beyond that, looking at everything is the cheaper answer."""


class Inbox(Generic[Item]):
    """Collect items without duplicates; above the limit, keep only an overflow marker."""

    def __init__(self, overflow: Item, max_items: int = _MAX_ITEMS) -> None:
        self._overflow = overflow
        self._max_items = max_items
        self._items: set[Item] = set()
        self._changed = threading.Condition()

    def put(self, items: Iterable[Item]) -> None:
        """Add items and wake the waiting thread."""
        with self._changed:
            self._items.update(items)
            if len(self._items) > self._max_items:
                self._items = {self._overflow}
            self._changed.notify_all()

    def take(self, timeout_seconds: float) -> set[Item]:
        """Wait for items and take all of them."""
        with self._changed:
            if not self._items and timeout_seconds > 0:
                self._changed.wait(timeout_seconds)
            taken, self._items = self._items, set()
        return taken
