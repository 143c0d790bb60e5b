"""Read times in English: `7d`, `2 weeks ago`, `yesterday`, `last March`, `2026-11`, `7 May 2023`.

`parse_time` reads a text that is a time and nothing else. `find_times` finds the times that a
question names. A question must name them clearly: "may" and "march" are also verbs, so a month
alone needs a preposition, a day or a year.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from byheart.language import periods
from byheart.language.periods import EARLIEST, LATEST, Period, Unit
from byheart.startup.late_patterns import late_pattern

_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "a couple of": 2,
    "couple of": 2,
    "a couple": 2,
    "three": 3,
    "a few": 3,
    "few": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}
_UNITS: dict[str, Unit] = {
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "m": "month",
    "y": "year",
    **{each: each for each in ("minute", "hour", "day", "week", "month", "quarter", "year")},
}
_FARTHEST = 100_000

_MONTH = "|".join([*_MONTH_NAMES, *(rf"{name[:3]}\.?" for name in _MONTH_NAMES), r"sept\.?"])
_DAY = "|".join(_DAY_NAMES)
_NUMBER = r"\d{1,5}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_UNIT = "minute|hour|day|week|month|quarter|year"
_NTH = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20|21)\d\d)"

_Read = Callable[[re.Match[str], datetime], Period]


class FoundTime(NamedTuple):
    """Hold a time that a question names: the words, and the period."""

    text: str
    period: Period


class _Form(NamedTuple):
    pattern: str
    read: _Read


# --- Reading single expressions -------------------------------------------------------------------


def _iso_day(found: re.Match[str], now: datetime) -> Period:
    return periods.day_of(
        datetime(int(found["year"]), int(found["month"]), int(found["day"]), tzinfo=now.tzinfo)
    )


def _iso_month(found: re.Match[str], now: datetime) -> Period:
    return periods.month_of(int(found["year"]), int(found["month"]), now.tzinfo)


def _year(found: re.Match[str], now: datetime) -> Period:
    return periods.unit_of(datetime(int(found["year"]), 1, 1, tzinfo=now.tzinfo), "year")


def _quarter(found: re.Match[str], now: datetime) -> Period:
    year = int(found["year"]) if found["year"] else now.year
    first = datetime(year, int(found["quarter"]) * 3 - 2, 1, tzinfo=now.tzinfo)
    return periods.unit_of(first, "quarter")


def _iso_week(found: re.Match[str], now: datetime) -> Period:
    day = datetime.fromisocalendar(int(found["year"]), int(found["week"]), 1)
    return periods.unit_of(day.replace(tzinfo=now.tzinfo), "week")


def _day_of_month(found: re.Match[str], now: datetime) -> Period:
    """Read a day with its month; without a year, the last one that has come."""
    month, day = _month_number(found["month"]), int(found["day"])
    if found["year"]:
        return periods.day_of(datetime(int(found["year"]), month, day, tzinfo=now.tzinfo))
    day_ = periods.day_of(datetime(now.year, month, day, tzinfo=now.tzinfo))
    if day_.start <= now:
        return day_
    return periods.day_of(datetime(now.year - 1, month, day, tzinfo=now.tzinfo))


def _named_month(found: re.Match[str], now: datetime) -> Period:
    month = _month_number(found["month"])
    if found["year"]:
        return periods.month_of(int(found["year"]), month, now.tzinfo)
    return periods.month_of(now.year - (month > now.month), month, now.tzinfo)


def _part_of_month(found: re.Match[str], now: datetime) -> Period:
    whole = _named_month(found, now)
    third = (whole.end - whole.start) / 3
    place = {"early": 0, "beginning": 0, "mid": 1, "middle": 1}.get(found["part"].lower(), 2)
    return Period.between(whole.start + place * third, whole.start + (place + 1) * third)


def _month_number(name: str) -> int:
    return next(at for at, each in enumerate(_MONTH_NAMES, 1) if each[:3] == name[:3].lower())


_NEAR = {"now": 0, "today": 0, "tonight": 0, "yesterday": -1, "last night": -1, "tomorrow": 1}


def _near_day(found: re.Match[str], now: datetime) -> Period:
    word = " ".join(found["near"].lower().split())
    if word == "now":
        return Period(now, now, now)
    if word.endswith("before yesterday"):
        return periods.unit_of(now, "day", -2)
    if word.startswith("this"):  # this morning
        return periods.day_of(now)
    return periods.unit_of(now, "day", _NEAR[word])


def _ago(found: re.Match[str], now: datetime) -> Period:
    unit = _unit(found)
    return periods.around(periods.shift(now, unit, -_count(found)), unit)


def _ahead(found: re.Match[str], now: datetime) -> Period:
    unit = _unit(found)
    return periods.around(periods.shift(now, unit, _count(found)), unit)


def _lately(found: re.Match[str], now: datetime) -> Period:
    """Read "the last ten days"; they end now."""
    return Period.between(periods.shift(now, _unit(found), -_count(found)), now)


_OFFSETS = {"this": 0, "last": -1, "past": -1, "previous": -1, "next": 1, "coming": 1}


def _neighbouring(found: re.Match[str], now: datetime) -> Period:
    """Read "last week", "this month", "next Friday", "last March"."""
    offset, what = _OFFSETS[found["which"].lower()], found["what"].lower()
    if what == "weekend":
        return _weekend(now, offset)
    if what in _DAY_NAMES:
        weekday = _DAY_NAMES.index(what)
        if offset > 0:
            return periods.weekday_after(now, weekday)
        if offset == 0:
            return periods.day_of(periods.unit_of(now, "week").start + timedelta(days=weekday))
        return periods.weekday_before(now, weekday)
    if what in _UNITS:
        return periods.unit_of(now, _UNITS[what], offset)
    month = _month_number(what)
    year = now.year
    if offset < 0:
        year -= month >= now.month
    elif offset > 0:
        year += month <= now.month
    return periods.month_of(year, month, now.tzinfo)


def _weekend(now: datetime, offset: int) -> Period:
    """Read "last weekend": the last one that is over."""
    this = periods.weekend_of(now)
    if offset < 0 and this.end <= now:
        return this
    return periods.weekend_of(now, offset)


def _weekday(found: re.Match[str], now: datetime) -> Period:
    return periods.weekday_before(now, _DAY_NAMES.index(found["weekday"].lower()))


def _count(found: re.Match[str]) -> int:
    said = " ".join(found["count"].lower().split()) if found["count"] else "one"
    count = _NUMBERS[said] if said in _NUMBERS else int(said)
    if count > _FARTHEST:
        raise ValueError
    return count


def _unit(found: re.Match[str]) -> Unit:
    return _UNITS[found["unit"].lower()]


# --- The forms, the most particular first ---------------------------------------------------------

_COMPACT = _Form(r"(?P<count>\d{1,5})\s?(?P<unit>min|[hdwmy])", _ago)
_COMPACT_AHEAD = _Form(_COMPACT.pattern, _ahead)
# Forms that are times wherever they stand.
_CLEAR = (
    _Form(rf"{_YEAR}[-/](?P<month>[01]?\d)[-/](?P<day>[0-3]?\d)", _iso_day),
    _Form(rf"{_YEAR}-W(?P<week>[0-5]\d)", _iso_week),
    _Form(rf"{_YEAR}-(?P<month>[01]\d)", _iso_month),
    _Form(rf"(?:the )?{_NTH}(?: of)? (?P<month>{_MONTH})(?:,?\s*{_YEAR})?", _day_of_month),
    _Form(rf"(?P<month>{_MONTH}) {_NTH}(?:,?\s*{_YEAR})?", _day_of_month),
    _Form(
        rf"(?:the )?(?P<part>early|mid|late|beginning|middle|end)[ -](?:of )?(?P<month>{_MONTH})"
        rf"(?:,? {_YEAR})?",
        _part_of_month,
    ),
    _Form(rf"(?P<month>{_MONTH})(?: of)?,? {_YEAR}", _named_month),
    _Form(rf"Q(?P<quarter>[1-4])(?:,? {_YEAR})?", _quarter),
    _Form(r"(?P<near>(?:the )?day before yesterday|yesterday|tomorrow|last night)", _near_day),
    _Form(r"(?P<near>this (?:morning|afternoon|evening)|tonight)", _near_day),
    _Form(rf"(?:about |around )?(?P<count>{_NUMBER}) (?P<unit>{_UNIT})s? ago", _ago),
    _Form(rf"(?:the )?(?:last|past) (?P<count>{_NUMBER}) (?P<unit>{_UNIT})s?", _lately),
    _Form(rf"the past(?P<count>)? (?P<unit>{_UNIT})", _lately),
    _Form(
        rf"(?P<which>this|last|past|previous|next|coming) "
        rf"(?P<what>day|week|weekend|month|quarter|year|{_DAY}|{'|'.join(_MONTH_NAMES)})",
        _neighbouring,
    ),
)
# Forms that are times only behind a preposition, or as a whole text.
_PLAIN = (
    _Form(_YEAR, _year),
    _Form(rf"(?P<month>{_MONTH})(?P<year>)?", _named_month),
    _Form(rf"(?P<weekday>{_DAY})", _weekday),
)
_ALONE = (
    _COMPACT,
    *_CLEAR,
    *_PLAIN,
    _Form(r"(?P<near>now|today)", _near_day),
    _Form(rf"in (?P<count>{_NUMBER}) (?P<unit>{_UNIT})s?", _ahead),
)


def _compile(forms: tuple[_Form, ...]) -> list[tuple[re.Pattern[str], _Read]]:
    return [
        (late_pattern(form.pattern.replace(" ", r"\s+"), re.IGNORECASE), form.read)
        for form in forms
    ]


def _without_groups(form: _Form) -> str:
    return _GROUP.sub("(?:", form.pattern).replace(" ", r"\s+")


_GROUP = late_pattern(r"\(\?P<\w+>")
_WHOLE = _compile(_ALONE)
_WHOLE_AHEAD = _compile((_COMPACT_AHEAD, *_ALONE))
_IN_TEXT, _BEHIND_PREPOSITION = _compile(_CLEAR), _compile((*_CLEAR, *_PLAIN))
_PREPOSITION = late_pattern(
    r"\b(?:in|on|during|throughout|from|of|by|since|until|till|before|after|between|and|to)\s+"
    r"(?:the\s+)?$",
    re.IGNORECASE,
)
_STARTS = late_pattern(r"(?<![\w-])(?=[\w])")
# Match the beginning of any time. Most questions name none, and this one search shows it.
_ANY = late_pattern(
    rf"(?<![\w-])(?:{'|'.join(_without_groups(form) for form in (*_CLEAR, *_PLAIN))})",
    re.IGNORECASE,
)
_TODAY = late_pattern(r"\btoday\b", re.IGNORECASE)
_OF_THE_PAST = late_pattern(r"\b(?:did|was|were|have|has|had)\b", re.IGNORECASE)
_OPEN_SIDE = late_pattern(r"\b(since|after|before|until|till|by)\s+(?:the\s+)?$", re.IGNORECASE)
_BESIDE = late_pattern(
    rf"(?:\b(?P<count>{_NUMBER})\s+)?\b(?P<unit>day|week|month|year)s?\s+(?P<side>before|after)"
    r"\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_DAY_BESIDE = late_pattern(
    rf"\b(?P<weekday>{_DAY}|weekend)\s+(?P<side>before|after)\s+(?:the\s+)?$", re.IGNORECASE
)
_BESIDE_FOLLOWS = late_pattern(r"\s+(?:before|after)\s+\w", re.IGNORECASE)
_RANGE = late_pattern(r"\s*(?:and|to|until|till|-|–)\s+(?:the\s+)?", re.IGNORECASE)
_RANGE_STARTS = late_pattern(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_MOST_CHARACTERS, _MOST_TIMES = 2000, 4


def parse_time(text: str, now: datetime, *, ahead: bool = False) -> Period | None:
    """Read a text that is a time, in the zone of `now`; give `None` if it is none.

    A bare length of time such as `7d` lies in the past, or with `ahead` in the future.
    """
    said = " ".join(text.split()).removeprefix("the ")
    for pattern, read in _WHOLE_AHEAD if ahead else _WHOLE:
        found = pattern.fullmatch(said)
        if found is not None:
            return _read(read, found, now)
    return None


def find_times(question: str, now: datetime) -> tuple[FoundTime, ...]:
    """Find the times that a question names clearly, in the zone of `now`: the first few."""
    text = question[:_MOST_CHARACTERS]
    found = tuple(islice(_mentions(text, now), _MOST_TIMES))
    if found:
        return found
    today = _TODAY.search(text)
    if today is not None and _OF_THE_PAST.search(text):
        return (FoundTime(today[0], periods.day_of(now)),)
    return ()


def _mentions(text: str, now: datetime) -> Iterator[FoundTime]:
    if _ANY.search(text) is None:
        return
    behind = 0
    for at in (each.start() for each in _STARTS.finditer(text)):
        found = _time_at(text, at, now) if at >= behind else None
        # In "the Sunday before 25 October", the date is found next.
        if found is not None and not _BESIDE_FOLLOWS.match(text, found[0]):
            named = _in_sentence(text, at, *found, now)
            # "July to October" is one time: its second month is not named again.
            behind = max(found[0], at + len(named.text) if text.startswith(named.text, at) else 0)
            yield named


def _time_at(text: str, at: int, now: datetime) -> tuple[int, Period] | None:
    """Read the time that begins at a place of a text; give its end."""
    forms = _BEHIND_PREPOSITION if _PREPOSITION.search(text[max(0, at - 20) : at]) else _IN_TEXT
    for pattern, read in forms:
        found = pattern.match(text, at)
        if found is None or text[found.end() : found.end() + 1].isalnum():
            continue
        if read in (_named_month, _day_of_month) and not found["month"][0].isupper():
            continue  # "may" and "march" are verbs
        period = _read(read, found, now)
        if period is not None:
            return found.end(), period
    return None


def _read(read: _Read, found: re.Match[str], now: datetime) -> Period | None:
    try:
        return read(found, now)
    except (ValueError, OverflowError):  # a 30th of February, or beyond the calendar
        return None


def _in_sentence(text: str, at: int, end: int, period: Period, now: datetime) -> FoundTime:
    """Extend a time by the words before and behind it: since May; the week before 3 June."""
    before = text[:at]
    if (beside := _BESIDE.search(before)) is not None:
        count = _count(beside) if beside["count"] else 1
        unit = _unit(beside)
        if beside["side"].lower() == "before":
            moved = Period.between(periods.shift(period.start, unit, -count), period.start)
        else:
            moved = Period.between(period.end, periods.shift(period.end, unit, count))
        return FoundTime(text[beside.start() : end], moved)
    if (near := _DAY_BESIDE.search(before)) is not None:
        return FoundTime(text[near.start() : end], _day_beside(near, period))
    if _RANGE_STARTS.search(before) and (to := _RANGE.match(text, end)) is not None:
        last = _time_at(text, to.end(), now)
        if last is not None and last[1].end <= period.start:
            # The year of the second date is that of the first one too.
            first = _time_at(text, at, last[1].end)
            period = period if first is None else first[1]
        if last is not None and last[1].end > period.start:
            return FoundTime(text[at : last[0]], Period.between(period.start, last[1].end))
    side = _OPEN_SIDE.search(before)
    if side is not None:
        return FoundTime(text[side.start() : end], _open_ended(side[1].lower(), period, now))
    return FoundTime(text[at:end], period)


def _day_beside(near: re.Match[str], period: Period) -> Period:
    is_before, weekday = near["side"].lower() == "before", near["weekday"].lower()
    if weekday == "weekend":
        return periods.weekend_of(period.start, -1 if is_before else 1)
    step = periods.weekday_before if is_before else periods.weekday_after
    return step(period.start, _DAY_NAMES.index(weekday))


def _open_ended(side: str, period: Period, now: datetime) -> Period:
    if side == "since":
        return Period.between(period.start, max(now, period.end))
    if side == "after":
        return Period.between(period.end, LATEST)
    return Period.between(EARLIEST, period.end if side == "by" else period.start)
