"""Read the times that a sentence names: clock times, dates as far as they are given, and periods.

Two sentences are compared by these times; nothing is looked up in a calendar.
"""

# ruff: noqa: SIM905 - word lists are easier to read and to extend as running text

from __future__ import annotations

from typing import NamedTuple

WEEKDAYS = {
    name: number
    for number, name in enumerate(
        "monday tuesday wednesday thursday friday saturday sunday".split(),
    )
}
MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march|april apr|may|june jun|july jul|august aug|"
        "september sep sept|october oct|november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS = {word: number for number, word in enumerate(_ORDINALS.split(), 1)}
# Parts of a day, and other times that are named, not counted.
PERIODS = frozenset(
    """
    morning afternoon evening night yesterday today tomorrow tonight weekend quarter spring summer
    autumn winter
    """.split()
)
NAMED_HOURS = {"noon": 720, "midday": 720, "midnight": 0}
_HALF_A_DAY = 720


class Clock(NamedTuple):
    """Hold a time of day in minutes; without am or pm, a time before 13:00 may be either half."""

    minutes: int
    is_exact: bool

    def differs(self, other: Clock) -> bool:
        """Return whether two times cannot be the same."""
        if self.is_exact and other.is_exact:
            return self.minutes != other.minutes
        return self.minutes % _HALF_A_DAY != other.minutes % _HALF_A_DAY


class Day(NamedTuple):
    """Hold a date as far as it is given."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None

    def differs(self, other: Day) -> bool:
        """Return whether two dates cannot be the same: a part that both have differs."""
        return any(
            some is not None and more is not None and some != more
            for some, more in zip(self, other, strict=True)
        )

    def joined(self, other: Day) -> Day | None:
        """Return the date that two adjacent parts make, or None if they are two dates."""
        if any(a is not None and b is not None for a, b in zip(self, other, strict=True)):
            return None
        return Day(*(b if a is None else a for a, b in zip(self, other, strict=True)))

    @property
    def is_whole(self) -> bool:
        """Return whether nothing but a weekday could be added."""
        return None not in (self.year, self.month, self.day)
