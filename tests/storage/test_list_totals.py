"""The total of a listing, on every page, on every database."""

from __future__ import annotations

from typing import Any

import pytest

from byheart import MemoryStore
from byheart.errors import NotFound
from tests.databases import database as database


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


@pytest.mark.parametrize("few", [3, 1_000])
@pytest.mark.parametrize(
    "given", [{}, {"session_id": "s1"}, {"kind": "fact"}, {"tags": ["red"]}, {"path": "docs/"}]
)
def test_pages_behind_a_memory_are_the_pages_by_offset(
    store: MemoryStore, given: dict[str, Any], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.storage.sql.listings._FEW_LABELLED", few)
    store.save_many(
        {
            "content": f"text {number}",
            "kind": "fact" if number % 2 else "note",
            "session_id": "s1" if number % 3 else None,
            "session_iter": number % 2 + 1 if number in (1, 4, 5, 7) else None,
            "created_at": "2026-01-01" if number in (2, 3, 8) else None,
            "tags": ["red", "blue"] if number not in (0, 6) else ["blue"],
            "path": f"/home/docs/{number}.md" if number not in (1, 9) else None,
        }
        for number in range(10)
    )
    whole = [each.memory_id for each in store.list(limit=100, **given).memories]
    assert len(whole) > 4
    for limit in (1, 3):
        for at, name in enumerate(whole, 1):
            page = store.list(limit=limit, after=name, **given)
            assert [each.memory_id for each in page.memories] == whole[at : at + limit]
            assert page.total == len(whole)
            assert page.has_more == (at + limit < len(whole))
    skipped = store.list(limit=1, offset=1, after=whole[0], **given)
    assert [each.memory_id for each in skipped.memories] == whole[2:3]


def test_a_memory_that_was_forgotten_still_marks_a_place(store: MemoryStore) -> None:
    first, second, third = (store.save(f"text {number}").memory_id for number in range(3))
    store.forget(second)
    assert [each.memory_id for each in store.list(after=second).memories] == [first]
    with pytest.raises(NotFound, match="no mem_unknown"):
        store.list(after="mem_unknown")
    with pytest.raises(NotFound):
        store.list(after=third, space="other")
