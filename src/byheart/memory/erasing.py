"""Erase memories: remove every text of them, and record which texts must not come back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from byheart.contracts import Removed, Storage, TextRow, TombstoneRecord, Writer
from byheart.memory.repeated_questions import Repetitions
from byheart.model import Removal
from byheart.system import clock


def erase(storage: Storage, memory_ids: Sequence[str], space: str, *, tombstones: bool) -> Removal:
    """Erase memories with every trace of them, and search for remaining traces."""
    storage.settle()  # a receipt that waits to be written may repeat the text
    return storage.erase(memory_ids, space, partial(remove, space=space, tombstones=tombstones))


def remove(writer: Writer, memory_ids: Iterable[str], space: str, *, tombstones: bool) -> Removed:
    """Remove memories with all their texts within a transaction, and count the removed rows."""
    now, removed, contents = clock.now(), Removed(0, 0, 0, 0, 0), list[str]()
    for memory_id in memory_ids:
        texts = writer.memories.texts(memory_id, space)
        contents += (writer.memories.memory(text.memory_no).content for text in texts)
        if tombstones:
            writer.tombstones.add(tombstones_of(texts, space, now))
        for text in texts:
            writer.memories.remove_text(text.memory_no)
        removed = add_counts(removed, texts)
    # The receipts that name a memory go with it; these ask a question in its words.
    writer.receipts.remove_if(space, Repetitions(contents).are_in)
    return removed


def tombstones_of(texts: Iterable[TextRow], space: str, at: datetime) -> list[TombstoneRecord]:
    """Make the tombstones of an erased memory: its earlier texts must not come back either."""
    hashes = dict.fromkeys(text.content_hash for text in texts)
    return [TombstoneRecord(space, content_hash, at) for content_hash in hashes]


def add_counts(removed: Removed, texts: Sequence[TextRow]) -> Removed:
    """Add a removed memory, which has no texts if it was unknown, to the counts."""
    return Removed(
        removed.memories + bool(texts),
        removed.texts + len(texts),
        removed.chunks + sum(text.chunks for text in texts),
        removed.vectors + sum(text.vectors for text in texts),
        removed.history + sum(text.history for text in texts),
    )
