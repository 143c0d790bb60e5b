"""A long run commits larger batches while they are quick, and never more than seconds of work."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from byheart.store import MemoryStore

OpenStore = Callable[..., MemoryStore]


def sizes(store: MemoryStore, count: int, *, check_first: bool = False) -> list[int]:
    """Save texts, and give the size of each batch."""
    reached = [0]
    store.save_many(
        [{"content": f"fact {number}"} for number in range(count)],
        on_progress=lambda progress: reached.append(progress.memories),
        check_first=check_first,
    )
    return [after - before for before, after in pairwise(reached) if after > before]


def set_times(monkeypatch: pytest.MonkeyPatch, quick: float, long: float) -> None:
    monkeypatch.setattr("byheart.memory.batches._QUICK_SECONDS", quick)
    monkeypatch.setattr("byheart.memory.batches._LONG_SECONDS", long)


def test_quick_batches_grow_up_to_a_limit(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_times(monkeypatch, 1e9, 1e9)
    monkeypatch.setattr("byheart.memory.batches._MOST_TIMES", 4)
    assert sizes(open_store(), 1000) == [64, 128, 256, 256, 256, 40]


def test_long_batches_do_not_grow(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    set_times(monkeypatch, 0, 0)
    assert sizes(open_store(), 300) == [64, 64, 64, 64, 44]


def test_batches_of_items_that_are_checked_first_do_not_grow(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_times(monkeypatch, 1e9, 1e9)
    assert sizes(open_store(), 300, check_first=True) == [64, 64, 64, 64, 44]
