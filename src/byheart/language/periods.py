"""Compute with periods of the calendar: a day, a week, a month, the last ten days.

A week begins on Monday. All moments have a zone.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from byheart.startup.dataclass_types import dataclass

Unit = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]

EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_MONTHS: dict[Unit, int] = {"month": 1, "quarter": 3, "year": 12}
_LENGTHS: dict[Unit, timedelta] = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: from its first moment to the first moment after it.

    `moment` is the single moment that stands for it where only one is asked for: its beginning, or
    for "two weeks ago" exactly that.
    """

    start: datetime
    end: datetime
    moment: datetime

    @classmethod
    def between(cls, start: datetime, end: datetime) -> Period:
        """Make a period that is represented by its beginning."""
        return cls(start, end, start)


def day_of(moment: datetime) -> Period:
    """Return the day of a moment."""
    return unit_of(moment, "day")


def unit_of(moment: datetime, unit: Unit, offset: int = 0) -> Period:
    """Return the minute, day, month … of a moment, or one so many units later or earlier."""
    if unit in _MONTHS:
        size = _MONTHS[unit]
        first = (moment.year * 12 + moment.month - 1) // size * size + offset * size
        zone = moment.tzinfo
        return Period.between(_month(first, zone), _month(first + size, zone))
    start = moment.replace(second=0, microsecond=0)
    if unit != "minute":
        start = start.replace(minute=0)
    if unit in ("day", "week"):
        start = start.replace(hour=0)
    if unit == "week":
        start -= timedelta(days=start.weekday())
    # Days are counted on the calendar: one with a change of the clock has 23 or 25 hours.
    return Period.between(shift(start, unit, offset), shift(start, unit, offset + 1))


def shift(moment: datetime, unit: Unit, count: int) -> datetime:
    """Move a moment by units; the last day of a month stays within a shorter month."""
    if unit not in _MONTHS:
        return moment + count * _LENGTHS[unit]
    months = moment.year * 12 + moment.month - 1 + count * _MONTHS[unit]
    first = _month(months, moment.tzinfo)
    last = calendar.monthrange(first.year, first.month)[1]
    return moment.replace(year=first.year, month=first.month, day=min(moment.day, last))


def around(moment: datetime, unit: Unit) -> Period:
    """Return a period of one unit with a moment in its middle: "two weeks ago" is not exact."""
    if unit in ("minute", "hour", "day"):
        whole = unit_of(moment, unit)
        return Period(whole.start, whole.end, moment)
    half = (shift(moment, unit, 1) - moment) / 2
    return Period(moment - half, moment + half, moment)


def weekend_of(moment: datetime, offset: int = 0) -> Period:
    """Return Saturday and Sunday of the week of a moment, or of a later or earlier week."""
    week = unit_of(moment, "week", offset)
    return Period.between(week.start + timedelta(days=_SATURDAY), week.end)


def weekday_before(moment: datetime, weekday: int) -> Period:
    """Return the last such weekday before the day of a moment."""
    back = (moment.weekday() - weekday - 1) % 7 + 1
    return day_of(moment - timedelta(days=back))


def weekday_after(moment: datetime, weekday: int) -> Period:
    """Return the first such weekday after the day of a moment."""
    ahead = (weekday - moment.weekday() - 1) % 7 + 1
    return day_of(moment + timedelta(days=ahead))


def month_of(year: int, month: int, zone: tzinfo | None) -> Period:
    """Return a month of a year."""
    first = year * 12 + month - 1
    return Period.between(_month(first, zone), _month(first + 1, zone))


def _month(number: int, zone: tzinfo | None) -> datetime:
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=zone)
