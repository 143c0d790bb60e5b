"""Filling: as many entries as there is room for, the best first, and nothing behind a gap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, takewhile
from typing import NamedTuple

from byheart.conversation.prompt.entries import LEAST_TOKENS, Entry
from byheart.conversation.prompt.measure import Measure
from byheart.model import LeftOut


class Filled(NamedTuple):
    """What fits, the best first, and what does not."""

    kept: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def tokens(self) -> int:
        """Give how many tokens it takes."""
        return sum(entry.item.tokens for entry in self.kept)


def fill(entries: Sequence[Entry], room: int, measure: Measure) -> Filled:
    """Keep entries, best first, until one does not fit; that one is cut, the rest is left out.

    Going on with smaller ones would bring what matters less in place of what matters more.
    """
    kept: list[Entry] = []
    for at, entry in enumerate(entries):
        whole = entry.measured(measure, room)
        if whole.item.tokens <= room:
            kept.append(whole)
            room -= whole.item.tokens
            continue
        cut = entry.shortened(measure, room)
        if cut is not None:
            kept.append(cut)
        return Filled(tuple(kept), _without_room(entries[at + (cut is not None) :]))
    return Filled(tuple(kept), ())


def fill_evenly(entries: Sequence[Entry], room: int, measure: Measure) -> Filled:
    """Keep entries, best first; a long one is cut where those behind it would have no room.

    They have up to half of what is left, as far as they fit whole. None is left out for one that
    matters less: what cannot be cut so far has all that is left.
    """
    kept: list[Entry] = []
    sized = cache(lambda at: entries[at].measured(measure, room))
    left = room
    for at, entry in enumerate(entries):
        sizes = (sized(behind).item.tokens for behind in range(at + 1, len(entries)))
        for most in (left - _sum_up_to(left // 2, sizes), left):
            whole = sized(at)
            fits = whole if whole.item.tokens <= most else entry.shortened(measure, most)
            if fits is not None:
                break
        else:
            return Filled(tuple(kept), _without_room(entries[at:]))
        kept.append(fits)
        left -= fits.item.tokens
    return Filled(tuple(kept), ())


def _sum_up_to(most: int, sizes: Iterable[int]) -> int:
    """Add up sizes until the next would be too much."""
    return max(takewhile(lambda total: total <= most, accumulate(sizes)), default=0)


def _without_room(entries: Sequence[Entry]) -> tuple[LeftOut, ...]:
    tells = "does not fit into what is left of the budget"
    return tuple(each.left_out("budget", tells) for each in entries)


class Reserved(NamedTuple):
    """Entries that will be there, and the tokens that are kept for them."""

    entries: Sequence[Entry]
    tokens: int


def reserve(entries: Sequence[Entry], room: int, measure: Measure) -> Reserved:
    """Keep room for entries, best first: for all of them, or else all of the room.

    The first that does not fit will be cut, if enough of it is left then.
    """
    left = room
    for at, entry in enumerate(entries):
        tokens = entry.tokens(measure, room)
        if tokens > left:
            return Reserved(entries[: at + (left >= 2 * LEAST_TOKENS)], room)
        left -= tokens
    return Reserved(entries, room - left)
