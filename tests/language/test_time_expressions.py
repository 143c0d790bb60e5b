"""Times in English: read strictly, in a zone, and found in questions that name one."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from byheart.errors import InvalidInput
from byheart.language.time_expressions import find_times, parse_time
from byheart.model.checks import check_time
from byheart.store import MemoryStore
from tests.databases import database as database

NOW = datetime(2026, 11, 18, 5, 0, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("7d", "2026-11-11T05:00"),
        ("12h", "2026-11-17T17:00"),
        ("6m", "2026-05-18T05:00"),
        ("2 weeks ago", "2026-11-04T05:00"),
        ("a couple of days ago", "2026-11-16T05:00"),
        ("yesterday", "2026-11-17T00:00"),
        ("the day before yesterday", "2026-11-16T00:00"),
        ("last March", "2026-03-01T00:00"),
        ("last November", "2025-11-01T00:00"),
        ("2026-11", "2026-11-01T00:00"),
        ("2023", "2023-01-01T00:00"),
        ("Q3 2026", "2026-07-01T00:00"),
        ("this week", "2026-11-16T00:00"),
        ("last weekend", "2026-11-14T00:00"),
        ("last 10 days", "2026-11-08T05:00"),
        ("May 7, 2023", "2023-05-07T00:00"),
        ("8th of December", "2025-12-08T00:00"),
        ("in 2 weeks", "2026-12-02T05:00"),
    ],
)
def test_a_time_is_read(said: str, moment: str) -> None:
    period = parse_time(said, NOW)
    assert period is not None
    assert f"{period.moment:%Y-%m-%dT%H:%M}" == moment
    assert period.start <= period.end


@pytest.mark.parametrize(
    "said", ["port 8080", "maybe", "2026-02-30", "32 May", "99999y", "version 2.1", "", "13"]
)
def test_anything_else_is_no_time(said: str) -> None:
    assert parse_time(said, NOW) is None


def test_days_begin_in_the_zone_of_now() -> None:
    period = parse_time("yesterday", NOW.astimezone(ZoneInfo("Pacific/Auckland")))
    assert period is not None
    assert period.moment.astimezone(UTC) == datetime(2026, 11, 16, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "said", "start"),
    [
        ("what did we decide last week about ports", "last week", "2026-11-09"),
        ("What happened in May 2023?", "May 2023", "2023-05-01"),
        ("the week before August 3, 2023", "week before August 3, 2023", "2023-07-27"),
        ("on the Sunday before October 25, 2022", "Sunday before October 25, 2022", "2022-10-23"),
        ("between August 11 and August 15 2023?", "August 11 and August 15 2023", "2023-08-11"),
    ],
)
def test_a_question_names_a_time(question: str, said: str, start: str) -> None:
    (found,) = find_times(question, NOW)
    assert (found.text, f"{found.period.start:%Y-%m-%d}") == (said, start)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("the novels that I finished in January and March", ["January", "March"]),
        ("rides from July to October, and in December", ["July to October", "December"]),
        ("between 5 May 2023 and 7 May 2023", ["5 May 2023 and 7 May 2023"]),
        ("on 1 May, 2 May, 3 May, 4 May and 5 May", ["1 May", "2 May", "3 May", "4 May"]),
    ],
)
def test_a_question_names_several_times(question: str, said: list[str]) -> None:
    assert [each.text for each in find_times(question, NOW)] == said


@pytest.mark.parametrize(
    "question",
    ["What may I do?", "the march of time", "how many weeks ago did I", "which database today?"],
)
def test_a_question_without_a_clear_time_names_none(question: str) -> None:
    assert find_times(question, NOW) == ()


def test_a_filter_takes_words_and_a_zone(store: MemoryStore) -> None:
    store.log("s", "user", "Long ago.", created_at="2020-05-05")
    store.log("s", "user", "Just now.")
    assert store.list(created_after="7d").total == 1
    assert store.list(created_before="yesterday Europe/Berlin").total == 1
    assert store.list(created_after="2020-05", created_before="2021").total == 1


@pytest.mark.parametrize("said", ["soon", "yesterday Nowhere/Land", "7 ducks"])
def test_a_filter_refuses_other_words_and_says_what_it_takes(said: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time") as raised:
        check_time("created_after", said)
    assert "yesterday" in raised.value.hint
