"""Entries that compete for the room of a context."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from byheart.conversation.prompt.entries import Entry
from byheart.conversation.prompt.measure import Measure
from byheart.conversation.prompt.token_budget import fill_evenly
from byheart.model import ContextItem


class WordCounter:
    """Count words as tokens."""

    def token_starts(self, text: str) -> Sequence[int]:
        return [word.start() for word in re.finditer(r"\S+", text)]


MEASURE = Measure(WordCounter(), "words", by_word=True)


def entry(words: int) -> Entry:
    item = ContextItem(
        part="pinned",
        memory_id=f"memory-{words}",
        chunk_ids=(),
        kind="note",
        role=None,
        origin="user",
        title=None,
        path=None,
        start_line=None,
        end_line=None,
        session_id=None,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        score=None,
        tokens=0,
        cut=False,
    )
    return Entry("pinned", "pinned", (), " ".join(["word"] * words), item)


@pytest.mark.parametrize("room", [200, 301])
def test_a_long_entry_leaves_half_of_the_room_to_the_entries_after_it(room: int) -> None:
    small = entry(8)
    size = small.tokens(MEASURE, room)
    filled = fill_evenly([entry(1000), *[small] * 50], room, MEASURE)
    long, *others = filled.kept
    left_to_others = room // 2 // size * size
    assert long.item.cut
    assert room - left_to_others - 1 <= long.item.tokens <= room - left_to_others
    assert [each.item.cut for each in others] == [False] * (left_to_others // size)
    assert len(filled.left_out) == 50 - len(others)


def test_a_long_entry_keeps_all_room_that_the_entries_after_it_do_not_need() -> None:
    small = entry(8)
    size = small.tokens(MEASURE, 200)
    filled = fill_evenly([entry(1000), small], 200, MEASURE)
    assert [each.item.cut for each in filled.kept] == [True, False]
    assert 200 - size - 1 <= filled.kept[0].item.tokens <= 200 - size
    assert filled.left_out == ()
