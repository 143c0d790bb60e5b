"""The turns of each session in order: where a turn's neighbours are looked up.

A turn is whatever is short, whole and saved in a session, except what tools put out and the
session's summary. One array names the chunks of all turns, sorted by space, session and place in
it. A save inserts its own; the rest stays as it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from byheart.index.columns import NO_TURN, Array, Growing

# What has more words stands by itself: whole sessions saved as texts gain nothing by each other.
MOST_TERMS = 150
# What decides where a turn is in the order, the most important first.
_PLACE = ("space", "session", "turn")
# From so many on, sorting everything takes less time than inserting them one by one.
_FEW = 512

Order = NDArray[np.int64]
Columns = Mapping[str, Array]


def sort_turns(memories: Columns, chunks: Columns) -> Order:
    """Sort the chunks of all turns; those at the same place by age."""
    turns, owners = _find_turns(memories, chunks, 0)
    return turns.take(np.lexsort([memories[name].take(owners) for name in reversed(_PLACE)]))


def add_turns(order: Order, memories: Columns, chunks: Columns, first: int) -> Order:
    """Insert the turns among the chunks from some slot on."""
    turns, _ = _find_turns(memories, chunks, first)
    if not len(turns):
        return order
    if len(turns) > _FEW:
        return sort_turns(memories, chunks)
    columns, owner = [memories[name] for name in _PLACE], chunks["owner"]

    def place(slot: int) -> tuple[int, ...]:
        memory = owner[slot]
        return (*(int(column[memory]) for column in columns), int(slot))

    fresh = sorted(turns.tolist(), key=place)
    return np.insert(order, [bisect_left(order, place(slot), key=place) for slot in fresh], fresh)


def _find_turns(memories: Columns, chunks: Columns, first: int) -> tuple[Order, Order]:
    """Find the turns among the chunks from some slot on, and their memories."""
    living = first + np.flatnonzero(chunks["alive"][first:])
    # Wide numbers, because numpy is ten times as slow with narrow ones as places.
    owners = chunks["owner"].take(living).astype(np.int64)
    is_turn = memories["turn"].take(owners) != NO_TURN
    is_turn &= chunks["length"].take(living) <= MOST_TERMS
    parts = np.flatnonzero(owners[1:] == owners[:-1])  # the chunks of a memory stand together
    is_turn[parts] = is_turn[parts + 1] = False
    chosen = np.flatnonzero(is_turn)
    return living.take(chosen), owners.take(chosen)


def places_of(memories: Mapping[str, Growing]) -> dict[str, Array]:
    """Give what decides where turns are, as it is now."""
    return {name: memories[name].view for name in _PLACE}


def has_moved(before: Columns, after: Columns, kept: Array) -> bool:
    """Say whether any of the memories that are still there has another place now."""
    pairs = ((before[name], after[name]) for name in _PLACE)
    return any(bool((old.take(kept) != new.take(kept)).any()) for old, new in pairs)
