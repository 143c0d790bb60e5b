"""Prefer memories from the time that a question names: "last week", "in May 2023".

A memory from that time counts up to `1 + weight` times as much, and all others count as before: an
answer that is from another time still comes first if it answers better. People tell of an event
after it, so the preference fades over a week behind the time, and faster before it.

A question may name a time and nothing else: "what happened yesterday?". Then the time is what it
asks for, and counts like a word that only the memories of that time have.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from byheart.contracts import Figures, Spans
from byheart.language.time_expressions import find_times
from byheart.model import NamedTime
from byheart.model.times import to_micros
from byheart.startup.late_numpy import np
from byheart.startup.late_patterns import late_pattern

# The preference falls to 37 % over this time behind a named one, and over this time before it. A
# time shorter than a day has a shorter margin: so many times its own length.
_AFTER, _BEFORE = 7 * 86_400 * 10**6, 2 * 86_400 * 10**6
_LENGTHS = 7
_WORD = late_pattern(r"\w+")
_APOSTROPHE = late_pattern("['\u2019]")
# Words that ask what there is, whatever it is about.
_GENERAL_WORDS = frozenset(
    _WORD.findall(
        "a about again all an and any anything are at been between did do does doing done during "
        "else everything find for from give go going got had happen happened happening happens has "
        "have i in is it know list me my new news notes of on our over please recall remember "
        "remind said say show since so something still summarise summarize summary talk talked "
        "talking tell that the there they thing things to up us was we were what whats which work "
        "worked working you"
    )
)


class TimeInQuestion(NamedTuple):
    """Hold a time that a question names, and the same in microseconds."""

    named: NamedTime
    in_micros: tuple[int, int]


def read_times(query: str, moment: datetime) -> tuple[TimeInQuestion, ...]:
    """Read the times that a question names if it is asked at a moment."""
    return tuple(
        TimeInQuestion(
            NamedTime(found.text, found.period.start, found.period.end),
            (to_micros(found.period.start), to_micros(found.period.end)),
        )
        for found in find_times(query, moment.astimezone(UTC))
    )


def names_nothing_else(query: str, times: Sequence[TimeInQuestion]) -> bool:
    """Tell whether a question names times, and otherwise only asks what there is."""
    rest = query.casefold()
    for each in times:
        rest = rest.replace(each.named.text.casefold(), " ")
    return bool(times) and _GENERAL_WORDS.issuperset(_WORD.findall(_APOSTROPHE.sub("", rest)))


def find_nearness(events: Spans | None, times: Sequence[TimeInQuestion]) -> Figures | None:
    """Return how near each memory is to the nearest named time: 1 if it is from that time."""
    if events is None or not times:
        return None
    nearness: Figures = np.max([_nearness(events, *each.in_micros) for each in times], axis=0)
    return nearness


def _nearness(events: Spans, start: int, end: int) -> Figures:
    """Return 1 for memories from a time, and less the farther they are from it."""
    margin = min(1.0, _LENGTHS * max(end - start, 1) / _AFTER)
    # The maximum first: the end of a statement that is still valid minus a negative time (before
    # 1970) is too large a number.
    behind = (np.maximum(events.starts, end - 1) - (end - 1)) / (margin * _AFTER)
    before = (np.maximum(events.ends, start + 1) - events.ends) / (margin * _BEFORE)
    nearness: Figures = np.exp(-np.maximum(behind, before))
    return nearness
