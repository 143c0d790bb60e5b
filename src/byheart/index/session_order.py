"""Keep the turns of each session in order, to look up the neighbours of a turn.

A turn is a short text of one chunk saved in a session, except the output of tools and the summary
of the session. One array holds the chunks of all turns, sorted by space, session and place in the
session. A save inserts its own chunks and leaves the others alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from byheart.index.columns import NO_TURN, Array, Growing
from byheart.startup.late_numpy import NDArray, np

# A longer text is not a turn: whole sessions saved as texts gain nothing from their neighbours.
MOST_TERMS = 150
# The columns that decide the order of turns, the most important first.
PLACE = ("space", "session", "turn")
# From this many new turns on, sorting all turns takes less time than inserting these one by one.
_FEW = 512

Order = NDArray["np.int64"]
Columns = Mapping[str, Array]


def sort_turns(memories: Columns, chunks: Columns) -> Order:
    """Sort the chunks of all turns; sort chunks at the same place by age."""
    return _sort(_find_turns(memories, chunks, 0), memories, chunks)


def _sort(turns: Order, memories: Columns, chunks: Columns) -> Order:
    # Sorting is stable, and takes little time for turns that are mostly in order.
    owners = chunks["owner"].take(turns).astype(np.int64)
    return turns.take(np.lexsort([memories[name].take(owners) for name in reversed(PLACE)]))


def add_turns(order: Order, memories: Columns, chunks: Columns, first: int) -> Order:
    """Insert the turns among the chunks from the slot `first` on."""
    turns = _find_turns(memories, chunks, first)
    if not len(turns):
        return order
    if len(turns) > _FEW:
        return _sort(np.concatenate((order, turns)), memories, chunks)
    columns, owner = [memories[name] for name in PLACE], chunks["owner"]

    def place(slot: int) -> tuple[int, ...]:
        memory = owner[slot]
        return (*(int(column[memory]) for column in columns), int(slot))

    fresh = sorted(turns.tolist(), key=place)
    return np.insert(order, [bisect_left(order, place(slot), key=place) for slot in fresh], fresh)


def _find_turns(memories: Columns, chunks: Columns, first: int) -> Order:
    """Find the turns among the chunks from the slot `first` on."""
    living = first + np.flatnonzero(chunks["alive"][first:])
    # 64-bit integers, because numpy indexes ten times slower with narrower ones.
    owners = chunks["owner"].take(living).astype(np.int64)
    is_turn = memories["turn"].take(owners) != NO_TURN
    is_turn &= chunks["length"].take(living) <= MOST_TERMS
    parts = np.flatnonzero(owners[1:] == owners[:-1])  # the chunks of a memory are adjacent
    is_turn[parts] = is_turn[parts + 1] = False
    turns: Order = living.take(np.flatnonzero(is_turn))
    return turns


def places_of(memories: Mapping[str, Growing]) -> dict[str, Array]:
    """Give the present values of the columns that decide the order of turns."""
    return {name: memories[name].view for name in PLACE}


def has_moved(before: Columns, after: Columns, kept: Array) -> bool:
    """Say whether any memory that was kept has another place now."""
    pairs = ((before[name], after[name]) for name in PLACE)
    return any(bool((old.take(kept) != new.take(kept)).any()) for old, new in pairs)
