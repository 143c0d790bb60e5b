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
    say of each other is in their headings.
    """
    slots = np.searchsorted(view.chunks.chunk_nos, chunk_nos)
    found = np.zeros((len(slots), 2 * NEIGHBOURS), np.int64)
    in_session = view.memories.session.take(view.chunks.owner.take(slots)) != NONE
    turns = np.flatnonzero(in_session & _is_turn(view, slots))
    if len(turns):
        mine = slots.take(turns)
        before = _nearest(view, mine, mine[:, np.newaxis] - _STEPS, selection)
        after = _nearest(view, mine, mine[:, np.newaxis] + _STEPS, selection)
        found[turns] = np.concatenate([before, after], axis=1)
    return found


def _nearest(
    view: View, slots: NDArray[np.int64], places: NDArray[np.int64], selection: Selection
) -> NDArray[np.int64]:
    """Take the first turns of the same conversation among the places of each slot."""
    there = (places >= 0) & (places < len(view.chunks.owner))
    places = np.where(there, places, 0)
    session, created = view.memories.session, view.memories.created
    owner, other = view.chunks.owner.take(slots)[:, np.newaxis], view.chunks.owner.take(places)
    said = there & selection.chunks.take(places) & (session.take(other) == session.take(owner))
    said &= np.abs(created.take(other) - created.take(owner)) <= _LONGEST_PAUSE
    said &= _is_turn(view, places)
    order = np.cumsum(said, axis=1)
    nearest = np.zeros((len(slots), NEIGHBOURS), np.int64)
    for nth in range(NEIGHBOURS):
        is_nth = said & (order == nth + 1)
        rows = np.flatnonzero(is_nth.any(axis=1))
        picked = places[rows, is_nth[rows].argmax(axis=1)]
        nearest[rows, nth] = view.chunks.chunk_nos.take(picked)
    return nearest


def _is_turn(view: View, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say whether chunks are short, and the only ones of their memories."""
    owner = view.chunks.owner
    here, last = owner.take(slots), len(owner) - 1
    alone_before = (slots == 0) | (owner.take(np.maximum(slots - 1, 0)) != here)
    alone_after = (slots == last) | (owner.take(np.minimum(slots + 1, last)) != here)
    short = view.chunks.length.take(slots) <= _MOST_TERMS
    turn: NDArray[np.bool_] = alone_before & alone_after & short
    return turn
