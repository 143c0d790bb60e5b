"""The total of a listing, on every page, on every database."""

from __future__ import annotations

import pytest

from byheart import MemoryStore


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6])
def test_every_page_tells_the_same_total(store: MemoryStore, count: int) -> None:
    store.save_many([{"content": f"text {number}"} for number in range(count)])
    store.save("elsewhere", space="other")
    for limit in (1, 2, 5, 9):
        for offset in range(8):
            page = store.list(limit=limit, offset=offset)
            assert page.total == count, (limit, offset)
            assert len(page.memories) == max(0, min(limit, count - offset))
            assert page.has_more == (offset + len(page.memories) < count)
