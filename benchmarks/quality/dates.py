"""Dates of conversations: when each document was said, and when a question is asked."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from sets import Document, Question

# LoCoMo: "1:56 pm on 8 May, 2023"; LongMemEval: "2023/04/10 (Mon) 17:50"; BEAM: "March-15-2024".
_FORMS = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d %H:%M", "%B-%d-%Y")
_WEEKDAY = re.compile(r" \(\w+\)")


def read_date(text: str) -> datetime:
    """Read a date as one of the sets writes it."""
    for form in _FORMS:
        try:
            return datetime.strptime(_WEEKDAY.sub("", text), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"no known form of a date: {text}")


def order_in_turn(documents: Sequence[Document]) -> list[Document]:
    """Take one document of each conversation in turn."""
    groups: dict[str | None, list[Document]] = defaultdict(list)
    for each in documents:
        groups[each.group].append(each)
    rounds = itertools.zip_longest(*groups.values())
    return [each for each in itertools.chain.from_iterable(rounds) if each is not None]


def date_documents(documents: Sequence[Document]) -> Iterator[tuple[Document, datetime]]:
    """Give each document its date; one without a date has that of the turn before, and is later.

    A second lies between two turns of one date, so that their order is kept.
    """
    last: dict[str | None, tuple[str | None, datetime]] = {}
    for each in documents:
        known, moment = last.get(each.group, (None, None))
        if each.group is None or moment is None or each.date not in (None, known):
            moment = read_date(each.date or "")
            known = each.date
        else:
            moment += timedelta(seconds=1)
        last[each.group] = known, moment
        yield each, moment


def date_questions(
    questions: Sequence[Question], documents: Sequence[tuple[Document, datetime]]
) -> Iterator[tuple[Question, datetime]]:
    """Give each question its date; without one, it is asked a day after its conversation."""
    ends: dict[str | None, datetime] = {}
    for each, moment in documents:
        ends[each.group] = max(moment, ends.get(each.group, moment))
    for question in questions:
        asked = read_date(question.date) if question.date else ends[question.group]
        yield question, asked if question.date else asked + timedelta(days=1)
