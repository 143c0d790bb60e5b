"""A search keeps nothing when it is done: its view may hold the arrays of a whole file."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from byheart.index.array_search import ArraySearch
from tests.conftest import OpenStore


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Have objects end with their last reference alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("granularity", ["fine", "medium", "coarse"])
def test_a_search_is_released_without_the_garbage_collector(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, granularity: str
) -> None:
    made: list[weakref.ref[ArraySearch]] = []
    begin = ArraySearch.__init__

    def note(search: ArraySearch, *given: object) -> None:
        begin(search, *given)  # type: ignore[arg-type]
        made.append(weakref.ref(search))

    monkeypatch.setattr(ArraySearch, "__init__", note)
    store = open_store()
    store.save_many([{"content": f"apple number {each}"} for each in range(20)])
    made.clear()
    assert store.search("apple", granularity=granularity).results  # type: ignore[arg-type]
    assert made
    assert not any(each() for each in made)
