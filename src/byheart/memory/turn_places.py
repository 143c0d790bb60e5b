"""Choose the place of a memory in its session; it does not depend on the clock.

A place is a number. The next place is a step after the last, which leaves room between two. A
memory with a time given by the caller is placed after the last memory that is not later.
"""

from __future__ import annotations

from datetime import datetime

from byheart.contracts import MemoryRows, Places

STEP = 1 << 20
# A turn is placed in the first part of a gap, so that later turns fit into the rest.
_PART = 64


def next_place(places: Places) -> int:
    """Give the place after all others."""
    return (places.last or 0) + STEP


def place_between(places: Places) -> int | None:
    """Give a place between the two around a moment; `None` if there is no room."""
    before, after = places.before, places.after
    if after is None:
        return (before or 0) + STEP
    if before is None:
        return after - STEP
    gap = after - before
    return None if gap < 2 else before + max(1, gap // _PART)


def choose(rows: MemoryRows, space: str, session_id: str | None, at: datetime | None) -> int | None:
    """Choose the place of a memory: by a given time, or else after all others."""
    if session_id is None:
        return None
    places = rows.places(space, session_id, at)
    if at is None:
        return next_place(places)
    found = place_between(places)
    if found is None:
        rows.space_out(space, session_id, STEP)
        found = place_between(rows.places(space, session_id, at))
        assert found is not None, "there is room now"
    return found
