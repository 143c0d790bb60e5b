"""A saved text keeps the date that it was written at."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from byheart.errors import InvalidInput
from byheart.store import MemoryStore

THEN = datetime(2023, 5, 7, 13, 56, tzinfo=UTC)


def test_a_saved_text_keeps_its_date(store: MemoryStore) -> None:
    saved = store.save("Anna moved to Oslo.", created_at="2023-05-07T13:56:00Z")
    memory = store.get(saved.memory_id)
    assert saved.created_at == memory.created_at == THEN
    assert memory.updated_at > THEN
    store.save("Bo lives in Bergen.")
    [hit] = store.search("Oslo Bergen", created_before="2024-01-01").results
    assert hit.memory_id == saved.memory_id
    newest = [each.created_at for each in store.list().memories]
    assert newest == sorted(newest, reverse=True)
    assert newest[1] == THEN


def test_many_texts_keep_their_dates_and_a_later_change_leaves_them(store: MemoryStore) -> None:
    items = [{"content": f"entry {day}", "created_at": f"2024-02-0{day}"} for day in (1, 2, 3)]
    saved = store.save_many(items)
    assert [each.created_at.day for each in saved] == [1, 2, 3]
    store.update(saved[1].memory_id, content="entry 2, corrected")
    assert store.get(saved[1].memory_id).created_at == datetime(2024, 2, 2, tzinfo=UTC)


def test_the_same_text_again_keeps_its_first_date(store: MemoryStore) -> None:
    store.save("entry", created_at="2024-02-01")
    again = store.save("entry", created_at="2025-02-01")
    assert (again.status, again.created_at.year) == ("unchanged", 2024)


def test_a_promoted_memory_keeps_its_date(store: MemoryStore) -> None:
    saved = store.save("a decision of May", session_id="s1", created_at=THEN)
    store.sessions.promote(memory_id=saved.memory_id)
    [copy] = [each for each in store.list().memories if each.session_id is None]
    assert copy.created_at == THEN


@pytest.mark.parametrize("bad", ["soon", 7, "2024-13-01"])
def test_a_date_that_is_none_is_refused(store: MemoryStore, bad: object) -> None:
    with pytest.raises(InvalidInput, match="created_at"):
        store.save("entry", created_at=bad)  # type: ignore[arg-type]
    assert store.list().total == 0
