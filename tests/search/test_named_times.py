"""A time that a question names is a preference: seen in `explain`, switched off at will."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from byheart.contracts import Spans
from byheart.errors import InvalidInput
from byheart.model.times import to_micros
from byheart.search.named_times import find_nearness, names_nothing_else, read_times
from byheart.store import MemoryStore
from tests.conftest import OpenStore

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
DAY = 86_400 * 10**6


def factors(question: str, *moments: datetime, weight: float = 1.0) -> list[float]:
    starts = np.array([to_micros(each) for each in moments])
    found = find_nearness(Spans(starts, starts + 1), read_times(question, NOW))
    assert found is not None
    return [round(1 + weight * float(each), 3) for each in found]


def days_after(text: str, *days: float) -> list[datetime]:
    return [datetime.fromisoformat(f"{text}T00:00Z") + timedelta(days=each) for each in days]


def test_a_memory_from_the_time_counts_twice_and_no_other_counts_less() -> None:
    inside, first, last, far = factors("in May 2023?", *days_after("2023-05-01", 10, 0, 30.9, 400))
    assert inside == first == last == 2.0
    assert far == 1.0


def test_the_preference_fades_over_a_week_behind_the_time_and_faster_before_it() -> None:
    behind = factors("in May 2023?", *days_after("2023-06-01", 1, 7, 30))
    before = factors("in May 2023?", *days_after("2023-05-01", -1, -7, -30))
    assert behind == sorted(behind, reverse=True)
    assert behind[1] == pytest.approx(1 + np.exp(-1), abs=0.001)
    assert all(some > other for some, other in zip(behind, before, strict=True))
    assert min(before) >= 1


def test_a_short_time_has_a_short_margin() -> None:
    near, far = factors("what did I say 2 hours ago?", NOW - timedelta(hours=2), NOW)
    assert near == 2.0
    assert far < factors("what did I say yesterday?", NOW)[0]


def test_a_memory_near_any_of_several_times_is_preferred() -> None:
    january, february, march = days_after("2026-01-15", 0, 31, 59)
    question = "which novels did I finish in January and March?"
    assert factors(question, january, march) == [2.0, 2.0]
    assert factors(question, february)[0] < 1.5


def test_a_question_without_a_time_has_no_factors() -> None:
    nothing = Spans(np.zeros(1, np.int64), np.zeros(1, np.int64))
    assert find_nearness(nothing, read_times("what may I do?", NOW)) is None


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("what happened yesterday?", True),
        ("What did we talk about last week?", True),
        ("in May 2023", True),
        ("what's new since 3 November 2026?", True),
        ("what\u2019s new since yesterday?", True),
        ("what did we decide last week about the ports?", False),
        ("where was Anna yesterday?", False),
        ("what happened?", False),
    ],
)
def test_a_question_may_name_a_time_and_nothing_else(question: str, alone: bool) -> None:
    assert names_nothing_else(question, read_times(question, NOW)) is alone


@pytest.fixture
def diary(store: MemoryStore) -> MemoryStore:
    for month, place in (("03", "Rome"), ("05", "Oslo"), ("09", "Lima")):
        store.save(f"We met in {place}.", created_at=f"2023-{month}-11")
    for other in ("Tea is ready.", "The lamp is broken.", "Rain again.", "A bill came."):
        store.save(other, created_at="2022-08-08")
    return store


def test_search_prefers_the_time_and_says_so(diary: MemoryStore) -> None:
    answer = diary.search("where did we meet in May 2023?", explain=True)
    first, *others = answer.results
    assert "Oslo" in first.snippet
    assert first.explanation is not None
    assert first.explanation.time == 2.0
    places = {hit.snippet.split()[-1] for hit in others}
    assert {"Rome.", "Lima."} <= places, "a preference removes nothing"
    (named,) = answer.times
    assert (named.text, f"{named.start:%F}", f"{named.end:%F}") == (
        "May 2023",
        "2023-05-01",
        "2023-06-01",
    )


def test_what_happened_then_is_answered_by_memories_of_that_time(diary: MemoryStore) -> None:
    question = "what happened in May 2023?"
    answer = diary.search(question, explain=True)
    first, *others = answer.results
    assert first.snippet == "We met in Oslo."
    assert answer.verdict == "answered"
    assert others, "a preference removes nothing"
    why = first.explanation
    assert why is not None
    assert why.time_alone == pytest.approx(math.log(7), abs=1e-5)
    parts = [each.contribution for each in (why.fts, why.vector) if each is not None]
    summed = (sum(parts) * why.form + why.time_alone) * why.time
    assert why.final_score == pytest.approx(summed, abs=1e-4)
    assert diary.search("what happened in June 2019?").verdict != "answered"


def test_recall_and_context_bring_what_happened_then(diary: MemoryStore) -> None:
    question = "what happened in May 2023?"
    recalled = diary.recall(question)
    assert recalled.details[0].content == "We met in Oslo."
    counted = {each.content: each.access_count for each in diary.list().memories}
    assert [content for content, count in counted.items() if count] == ["We met in Oslo."]
    assert "Oslo" in diary.context("s", question).text


def test_a_better_answer_from_another_time_stays_first(diary: MemoryStore) -> None:
    diary.save("The heron on the harbour wall was photographed.", created_at="2021-01-01")
    answer = diary.search("the photographed heron on the harbour wall in May 2023", mode="fts")
    assert "heron" in answer.results[0].snippet


def test_times_can_be_switched_off_for_a_question_and_by_a_setting(
    diary: MemoryStore, open_store: OpenStore
) -> None:
    question = "where did we meet in May 2023?"
    off = diary.search(question, times=False, explain=True)
    assert off.times == ()
    assert {hit.explanation.time for hit in off.results if hit.explanation} == {1.0}
    with open_store(time_weight=0) as store:
        store.save("We met in Oslo.", created_at="2023-05-11")
        assert store.search(question).times == ()
    with pytest.raises(InvalidInput, match="times"):
        diary.search(question, times="no")  # type: ignore[arg-type]


def test_recall_and_context_prefer_the_time_too(diary: MemoryStore) -> None:
    recalled = diary.recall("where did we meet in May 2023?", explain=True)
    assert "Oslo" in recalled.details[0].content
    assert [each.text for each in recalled.times] == ["May 2023"]
    assert recalled.explanations is not None
    assert recalled.explanations[0].time == 2.0
    context = diary.context("s", "where did we meet in May 2023?")
    assert context.text.index("Oslo") < context.text.index("Lima")


def test_a_fact_is_from_the_time_at_which_it_is_valid(store: MemoryStore) -> None:
    store.save("The office is in Berlin.", valid_from="2020-01-01", created_at="2019-01-01")
    store.save("The office is in Bonn.", created_at="2026-01-01")
    first = store.search("where is the office in May 2023?", explain=True).results[0]
    assert "Berlin" in first.snippet


def test_a_fact_that_is_still_valid_is_from_a_time_before_1970(store: MemoryStore) -> None:
    store.save("Grandfather owned the mill.", valid_from="1940-01-01")
    store.save("Grandfather sold the mill.", valid_from="1990-01-01")
    hits = store.search("grandfather's mill in May 1950", explain=True).results
    factors = {hit.snippet: hit.explanation.time for hit in hits if hit.explanation}
    assert factors == {"Grandfather owned the mill.": 2.0, "Grandfather sold the mill.": 1.0}


def test_a_mention_of_the_time_is_found_among_many_of_other_times(store: MemoryStore) -> None:
    said = {"content": "{}: the retry limit is three.", "created_at": "2024-02-02"}
    other = {"content": "Lunch {} was soup with bread.", "created_at": "2024-02-02"}
    for each in (said, other):
        store.save_many({**each, "content": each["content"].format(at)} for at in range(200))
    store.save(
        "At the standup we spoke of the retry limit, and left it as it was.",
        created_at="2025-04-04",
    )
    question = "the retry limit in April 2025"
    assert "standup" in store.search(question, mode="fts").results[0].snippet
    without = store.search(question, mode="fts", limit=30, times=False)
    assert not any("standup" in hit.snippet for hit in without.results)


def test_the_nearer_time_comes_first_among_equals(store: MemoryStore) -> None:
    for day in ("2023-03-03", "2023-05-05", "2023-07-07"):
        store.save(f"Notes of {day}.", created_at=day)
    first = store.search("notes from May 2023").results[0]
    assert f"{first.created_at:%m}" == "05"


def test_raw_queries_and_references_are_not_moved(diary: MemoryStore) -> None:
    assert diary.search("met AND may", raw=True).times == ()
    assert diary.search("in May 2023", mode="vector").times == ()
    assert diary.search("in May 2023", fusion="rrf").times == ()
