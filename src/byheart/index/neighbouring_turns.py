"""Find the turns right before and after a turn, in the same session."""

from __future__ import annotations

from byheart.index.selections import Selection, Slots
from byheart.index.view import View
from byheart.startup.late_numpy import NDArray, np

# The number of turns that count as neighbours on each side.
NEIGHBOURS = 2
# It stands for a neighbour that does not exist.
NO_SLOT = -1
# After a pause of an hour (in microseconds) another conversation begins.
_LONGEST_PAUSE = 3_600_000_000


def find_neighbours(view: View, slots: Slots, selection: Selection) -> Slots | None:
    """Name the two turns before each chunk and the two after it, nearest first, by their slots.

    The result is `None` if no chunk has a neighbour. Neighbours are found by their order in the
    session, wherever they are stored. Turns outside the filter are skipped, as if they did not
    exist.
    """
    if not len(view.by_turn):
        return None
    places = places_of_turns(view).take(slots)
    turns = (places >= 0).nonzero()[0]
    said = _selected(view, selection)
    if not len(turns) or not len(said):
        return None
    found = np.full((len(slots), 2 * NEIGHBOURS), NO_SLOT)
    found[turns] = _around(view, said, places.take(turns))
    return found if (found >= 0).any() else None


def _around(view: View, said: Slots, mine: NDArray[np.int32]) -> Slots:
    """Take the turns of the same session around each turn, all by their places in the order."""
    at = np.searchsorted(said, mine)
    last = len(said) - 1
    # A turn that is not selected itself is located before the next one that is.
    is_said = said.take(np.minimum(at, last)) == mine
    steps = np.arange(NEIGHBOURS)
    around = np.concatenate(
        [(at - 1)[:, np.newaxis] - steps, (at + is_said)[:, np.newaxis] + steps], axis=1
    )
    there = (around >= 0) & (around <= last)
    others = view.by_turn.take(said.take(np.clip(around, 0, last)))
    rows = view.memories
    owner = view.chunks.owner.take(view.by_turn.take(mine))[:, np.newaxis]
    other = view.chunks.owner.take(others)
    there &= rows.session.take(other) == rows.session.take(owner)
    there &= rows.space.take(other) == rows.space.take(owner)
    there &= np.abs(rows.created.take(other) - rows.created.take(owner)) <= _LONGEST_PAUSE
    return np.where(there, others, NO_SLOT)


def _selected(view: View, selection: Selection) -> Slots:
    """List the places of the turns within a filter; cache the list with the selection."""
    if not selection.turns:
        selection.turns.append(np.flatnonzero(selection.chunks.take(view.by_turn)))
    return selection.turns[0]


def places_of_turns(view: View) -> NDArray[np.int32]:
    """Give the place of each chunk in the order of turns, or -1; cache the places with the view."""
    if not view.turn_places:
        places = np.full(len(view.chunks.chunk_nos), -1, np.int32)
        places[view.by_turn] = np.arange(len(view.by_turn), dtype=np.int32)
        view.turn_places.append(places)
    return view.turn_places[0]
