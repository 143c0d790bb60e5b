"""What a space selects after new rows, against reading the space anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byheart.index.columns import (
    CHUNK_TYPES,
    MEMORY_TYPES,
    NEVER,
    NONE,
    OPEN_ENDED,
    ChunkColumns,
    Codes,
    MemoryColumns,
)
from byheart.index.selections import Scattered, read_space, scatter, select_chunks
from byheart.index.view import View
from byheart.model import Filter

OURS, NOW = 1, 1000
Rows = list[tuple[int, int, int, int]]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, OURS]),  # space
        st.sampled_from([NEVER, NOW - 5, NOW + 5]),  # expires
        st.sampled_from([NEVER, NOW - 9]),  # replaced, ends
        st.integers(1, 90),  # length of its chunk
    ),
    max_size=12,
)


def columns_of(rows: Rows) -> tuple[MemoryColumns, ChunkColumns]:
    count = len(rows)
    memories: dict[str, Any] = {
        name: np.zeros(count, kind) for name, kind in MEMORY_TYPES.items()
    } | {name: np.full(count, NEVER) for name in OPEN_ENDED}
    memories["memory_nos"] = np.arange(count) + 1
    memories["present"] = np.ones(count, np.bool_)
    spaces, expires, ended, lengths = np.array(rows, np.int64).reshape(count, 4).T
    memories |= {"space": spaces, "expires": expires, "replaced": ended, "ends": ended[::-1]}
    chunks: dict[str, Any] = {name: np.ones(count, kind) for name, kind in CHUNK_TYPES.items()}
    chunks["chunk_nos"] = np.arange(count) + 1
    chunks["owner"] = np.arange(count, dtype=np.int32)
    chunks["length"] = lengths.astype(np.int32)
    chunks["embedded"] = lengths % 2 == 0
    return MemoryColumns(**memories), ChunkColumns(**chunks)


@given(ROWS, st.integers(0, 12), st.sampled_from([NOW, NOW + 9]))
def test_a_space_that_grew_is_the_space_read_anew(rows: Rows, known: int, later: int) -> None:
    memories, chunks = columns_of(rows)
    first = {name: getattr(memories, name)[:known] for name in MEMORY_TYPES}
    before = read_space(
        MemoryColumns(**first),
        ChunkColumns(**{name: getattr(chunks, name)[:known] for name in CHUNK_TYPES}),
        OURS,
        NOW,
        None,
    )
    grown = read_space(memories, chunks, OURS, later, before)
    anew = read_space(memories, chunks, OURS, later, None)
    assert grown.memories.tolist() == anew.memories.tolist()
    assert grown.selection.chunks.tolist() == anew.selection.chunks.tolist()
    slots = np.arange(len(rows))
    assert grown.selection.norms_of(slots).tolist() == anew.selection.norms_of(slots).tolist()
    assert grown.is_valid_at(later)
    for name in ("memory_count", "bare_chunks", "superseded", "valid_until"):
        assert getattr(grown, name) == getattr(anew, name), name


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 4))
def test_a_sample_that_grew_is_the_sample_taken_anew(count: int, known: int, halvings: int) -> None:
    numbers = np.arange(count) + 1
    before = scatter(numbers[:known], halvings, None)
    assert isinstance(before, Scattered)
    grown = scatter(numbers, halvings, before)
    assert grown.slots.tolist() == scatter(numbers, halvings, None).slots.tolist()


def test_norms_are_the_same_whether_they_are_kept_or_not() -> None:
    _, chunks = columns_of([(OURS, NEVER, NEVER, length) for length in (1, 5, 80, 7)])
    selection = select_chunks(chunks, np.array([True, False, True, True]))
    slots = np.array([2, 0, 3])
    first = selection.norms_of(slots)
    for _ in range(9):
        selection.begin_use()
    assert selection.norms_of(slots).tolist() == first.tolist()


def test_a_filter_that_leaves_out_nothing_shares_the_selection_of_its_space() -> None:
    memories, chunks = columns_of([(0, NEVER, NEVER, 9)] + [(OURS, NEVER, NEVER, 9)] * 3)
    memories.session[:] = [1, 0, NONE, 0]
    codes = {"space": Codes(["other", "ours"]), "session": Codes(["s", "t"])}
    view = View((1, 1), None, 0, memories, chunks, codes, (), np.empty(0, np.int64))
    whole = view.space("ours", NOW)
    own = Filter("ours", session_id="s", include_global=True)
    assert view.select(own, NOW, []) is whole.selection
    assert view.count(own, NOW) == view.count_space("ours", NOW)
    for fewer in (replace(own, include_global=False), replace(own, session_id="t")):
        selection = view.select(fewer, NOW, [])
        assert selection is not whole.selection
        assert selection.total == view.count(fewer, NOW).chunks < whole.selection.total


def test_a_view_looks_only_at_rows_that_are_new() -> None:
    memories, chunks = columns_of([(OURS, NEVER, NEVER, 9)] * 3)
    codes = {"space": Codes(["other", "ours"])}
    view = View((1, 1), None, 0, memories, chunks, codes, (), np.empty(0, np.int64))
    assert view.space("ours", NOW).memory_count == 3
    # A view that follows trusts the rows before: these are wrong on purpose.
    more, more_chunks = columns_of([(0, NEVER, NEVER, 9)] * 3 + [(OURS, NEVER, NEVER, 9)])
    later = replace(view, memories=more, chunks=more_chunks, _spaces={}, _scattered={})
    later.follow(view)
    assert later.space("ours", NOW).memory_count == 4
