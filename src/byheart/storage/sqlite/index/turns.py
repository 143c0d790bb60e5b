"""Turns: what was said right before and after something, in the same session."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from byheart.storage.sqlite.index.columns import NONE
from byheart.storage.sqlite.index.view import Selection, View

# How many turns count on each side, and how far they are looked for among other sessions' turns.
NEIGHBOURS, _REACH = 2, 8
# What was said so much later is another conversation.
_LONGEST_PAUSE = 3_600_000_000
# What has more words stands by itself: whole sessions saved as texts gain nothing by each other.
_MOST_TERMS = 150

_STEPS = np.arange(1, _REACH + 1)


def find_neighbours(
    view: View, chunk_nos: NDArray[np.int64], selection: Selection
) -> NDArray[np.int64]:
    """Name the two turns before each chunk and the two after it, nearest first; 0 for none.

    A turn is whatever is short, whole and saved in a session. Parts of one text are none: what they
    say of each other is in their headings. What is gone is stepped over, as if it had never been.
    """
    slots = view.slots_of(chunk_nos)
    found = np.zeros((len(slots), 2 * NEIGHBOURS), np.int64)
    in_session = view.memories.session.take(view.chunks.owner.take(slots)) != NONE
    if not in_session.any():
        return found
    places = np.searchsorted(view.living(), slots)
    turns = np.flatnonzero(in_session & _is_turn(view, places))
    if len(turns):
        mine = places.take(turns)
        before = _nearest(view, mine, mine[:, np.newaxis] - _STEPS, selection)
        after = _nearest(view, mine, mine[:, np.newaxis] + _STEPS, selection)
        found[turns] = np.concatenate([before, after], axis=1)
    return found


def _nearest(
    view: View, mine: NDArray[np.int64], others: NDArray[np.int64], selection: Selection
) -> NDArray[np.int64]:
    """Take the first turns of the same conversation among the others of each; all by place."""
    living = view.living()
    there = (others >= 0) & (others < len(living))
    others = np.where(there, others, 0)
    slots = living.take(others)
    session, created = view.memories.session, view.memories.created
    owner = view.chunks.owner.take(living.take(mine))[:, np.newaxis]
    other = view.chunks.owner.take(slots)
    said = there & selection.chunks.take(slots) & (session.take(other) == session.take(owner))
    said &= np.abs(created.take(other) - created.take(owner)) <= _LONGEST_PAUSE
    said &= _is_turn(view, others)
    order = np.cumsum(said, axis=1)
    nearest = np.zeros((len(mine), NEIGHBOURS), np.int64)
    for nth in range(NEIGHBOURS):
        is_nth = said & (order == nth + 1)
        rows = np.flatnonzero(is_nth.any(axis=1))
        picked = slots[rows, is_nth[rows].argmax(axis=1)]
        nearest[rows, nth] = view.chunks.chunk_nos.take(picked)
    return nearest


def _is_turn(view: View, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say whether chunks are short, and the only ones of their memories."""
    living, owner = view.living(), view.chunks.owner
    last = len(living) - 1
    slots = living.take(places)
    here = owner.take(slots)
    before = owner.take(living.take(np.maximum(places - 1, 0)))
    after = owner.take(living.take(np.minimum(places + 1, last)))
    alone = ((places == 0) | (before != here)) & ((places == last) | (after != here))
    turn: NDArray[np.bool_] = alone & (view.chunks.length.take(slots) <= _MOST_TERMS)
    return turn
