"""Erasing: which texts get a tombstone, and what is counted, without a database."""

from __future__ import annotations

from datetime import UTC, datetime

from byheart.contracts import Removed, TextRow, TombstoneRecord
from byheart.memory.erasing import add_counts, tombstones_of

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TEXTS = [TextRow(3, "cc", 2, 4, 5), TextRow(1, "aa", 1, 1, 0), TextRow(2, "cc", 1, 0, 0)]


def test_every_text_of_an_erased_memory_gets_one_tombstone_in_its_space() -> None:
    assert tombstones_of(TEXTS, "space", NOW) == [
        TombstoneRecord("space", "cc", NOW),
        TombstoneRecord("space", "aa", NOW),
    ]
    assert tombstones_of([], "space", NOW) == []


def test_removed_rows_are_counted_and_an_unknown_memory_is_not() -> None:
    none = Removed(0, 0, 0, 0, 0)
    once = add_counts(none, TEXTS)
    assert once == Removed(memories=1, texts=3, chunks=4, vectors=5, history=5)
    assert add_counts(once, []) == once
    assert add_counts(once, TEXTS[:1]) == Removed(2, 4, 6, 9, 10)
