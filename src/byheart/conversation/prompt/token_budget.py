"""Divide the token budget of a context among its parts, and fill a part with entries, best first.

A part stops at the first entry that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, takewhile
from typing import NamedTuple

from byheart.conversation.prompt.entries import LEAST_TOKENS, Entry
from byheart.conversation.prompt.measure import Measure
from byheart.model import LeftOut

# The stable part takes at most STABLE_SHARE of the budget. Messages get at least RECENT_SHARE of
# the rest if they need it. Room that one part does not need goes to the others, but never to the
# stable part.
STABLE_SHARE, RECENT_SHARE = 0.4, 0.5
# Identity files take at most IDENTITY_SHARE of the stable part. At most PINNED_SHARE of the rest is
# reserved for pins before the summary is filled: an automatic summary is long, and useful when cut.
IDENTITY_SHARE, PINNED_SHARE = 0.5, 0.75


class Filled(NamedTuple):
    """Hold the entries that fit, best first, and the entries that do not."""

    kept: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def tokens(self) -> int:
        """Return the number of tokens of the kept entries."""
        return sum(entry.item.tokens for entry in self.kept)


def fill(entries: Sequence[Entry], room: int, measure: Measure) -> Filled:
    """Keep entries, best first, until one does not fit; cut that entry, leave out the rest.

    Continuing with smaller entries would prefer less important entries to more important ones.
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
    """Keep entries, best first; cut a long entry if the entries after it would have no room.

    The following entries get up to half of the remaining room, as far as they fit uncut. No entry
    is left out for a less important one: an entry that cannot be cut that short may use all the
    remaining room.
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
    """Add up sizes until the next one would exceed `most`."""
    return max(takewhile(lambda total: total <= most, accumulate(sizes)), default=0)


def _without_room(entries: Sequence[Entry]) -> tuple[LeftOut, ...]:
    tells = "does not fit into what is left of the budget"
    return tuple(each.left_out("budget", tells) for each in entries)


class Reserved(NamedTuple):
    """Hold the entries that will be included, and the tokens reserved for them."""

    entries: Sequence[Entry]
    tokens: int


def reserve(entries: Sequence[Entry], room: int, measure: Measure) -> Reserved:
    """Reserve room for entries, best first: for all entries, or else the whole room.

    The first entry that does not fit will be cut, if enough of it remains.
    """
    left = room
    for at, entry in enumerate(entries):
        tokens = entry.tokens(measure, room)
        if tokens > left:
            return Reserved(entries[: at + (left >= 2 * LEAST_TOKENS)], room)
        left -= tokens
    return Reserved(entries, room - left)
