"""Keep several indexes in memory, each for one scope of a database, and together under a limit.

Removing an index from the pool only drops a reference: a search that is running keeps its `View`,
and the arrays of a view never change. The next search makes the index again from its file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from byheart.errors import StoreError
from byheart.index.index import Index
from byheart.startup.dataclass_types import dataclass

Key = TypeVar("Key")


@dataclass(slots=True)
class _Kept:
    """An index, and the bytes that it was last charged with."""

    index: Index
    charged: int = 0


class IndexPool(Generic[Key]):
    """Make indexes when they are asked for, and remove the least recently used ones.

    `make` makes the index of a scope, without loading it. `limit_bytes` limits the sum that
    `index/memory_use.py` charges; the index that was updated last stays, however large it is.
    """

    def __init__(self, make: Callable[[Key], Index], limit_bytes: int) -> None:
        self.on_work: Callable[[str, float], None] = lambda _work, _seconds: None
        self._make = make
        self._limit = limit_bytes
        self._lock = threading.Lock()
        # The least recently used one comes first.
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._charged = 0

    def of(self, key: Key) -> Index:
        """Give the index of a scope."""
        removed: list[Index] = []
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                index = self._make(key)
                index.on_work = self._report
                index.on_resize = partial(self._weigh, key, index)
                kept = self._kept[key] = _Kept(index)
                self._charge(kept)
                removed = self._remove_oldest(key)
            self._kept.move_to_end(key)
        _publish(removed)
        return kept.index

    @property
    def charged_bytes(self) -> int:
        """Give the bytes that all indexes are charged with."""
        return self._charged

    def keys(self) -> list[Key]:
        """Name the scopes whose indexes are kept, the least recently used one first."""
        with self._lock:
            return list(self._kept)

    def unpublished(self) -> bool:
        """Say whether the file of any index is worth writing again."""
        return any(index.unpublished() for index in self._all())

    def publish(self, *, only_unpublished: bool = False) -> None:
        """Write the files of all indexes in memory; go on after a failure, and report it then."""
        failures: list[OSError | StoreError] = []
        for index in self._all():
            try:
                if not only_unpublished or index.unpublished():
                    index.publish()
            except (OSError, StoreError) as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    def start_anew(self) -> None:
        """Discard the contents of all indexes in memory; keep the files."""
        for index in self._all():
            index.start_anew()

    def discard(self) -> None:
        """Discard all indexes in memory, and their files and copies.

        The backend removes the files and copies of scopes that have no index in memory.
        """
        for index in self._all():
            index.discard()

    def _all(self) -> list[Index]:
        with self._lock:
            return [each.index for each in self._kept.values()]

    def _report(self, work: str, seconds: float) -> None:
        self.on_work(work, seconds)

    def _weigh(self, key: Key, index: Index) -> None:
        """Charge an index with its present size, and remove others if all exceed the limit."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.index is not index:
                return  # it was removed while it was used: nobody else will find it
            self._charge(kept)
            removed = self._remove_oldest(key)
        _publish(removed)

    def _charge(self, kept: _Kept) -> None:
        charged = kept.index.memory_use.charged
        self._charged += charged - kept.charged
        kept.charged = charged

    def _remove_oldest(self, stays: Key) -> list[Index]:
        removed: list[Index] = []
        if self._charged <= self._limit:
            return removed
        for key, kept in list(self._kept.items()):
            if self._charged <= self._limit:
                break
            # An index that is loading now takes no memory that removing it would give back.
            if key != stays and not kept.index.is_working:
                self._charged -= kept.charged
                removed.append(self._kept.pop(key).index)
        return removed


def _publish(removed: Sequence[Index]) -> None:
    for each in removed:
        # The thread keeps the index until the file is written.
        if each.unpublished():
            each.publish_in_background()
