"""Check the place of a memory in its session, as functions over numbers decide it."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import pytest

from byheart.contracts import MemoryRows, Places
from byheart.memory import turn_places
from byheart.memory.turn_places import STEP
from tests.memory.made_memories import NOW, SECOND


class Session:
    """A session as a list of places with their times; it answers as the rows of a store do."""

    def __init__(self, *turns: tuple[int, datetime]) -> None:
        self.turns = list(turns)
        self.spaced_out = 0

    def places(self, space: str, session_id: str, at: datetime | None) -> Places:
        assert (space, session_id) == ("space", "session")
        numbers = [number for number, _ in self.turns]
        before = [number for number, when in self.turns if at is not None and when <= at]
        last = max(before, default=None)
        after = [n for n in numbers if at is not None and (last is None or n > last)]
        return Places(max(numbers, default=None), last, min(after, default=None))

    def space_out(self, space: str, session_id: str, step: int) -> None:
        assert (space, session_id) == ("space", "session")
        self.spaced_out += 1
        self.turns = [((at + 1) * step, when) for at, (_, when) in enumerate(sorted(self.turns))]

    def choose(self, at: datetime | None) -> int | None:
        return turn_places.choose(cast(MemoryRows, self), "space", "session", at)


@pytest.mark.parametrize(
    ("last", "place"), [(None, STEP), (0, STEP), (5, STEP + 5), (-9, STEP - 9)]
)
def test_the_next_place_is_a_step_after_the_last(last: int | None, place: int) -> None:
    assert turn_places.next_place(Places(last, None, None)) == place


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        (None, None, STEP),
        (40, None, 40 + STEP),
        (None, 40, 40 - STEP),
        (40, 40, None),
        (40, 41, None),
        (40, 42, 41),
        (40, 40 + 127, 41),
        (40, 40 + 128, 42),
        (0, STEP, STEP // 64),
        (-STEP, 0, -STEP + STEP // 64),
    ],
    ids=[
        "in an empty session",
        "after the last",
        "before the first",
        "between equal places",
        "in a gap of 1",
        "in a gap of 2",
        "in a gap of less than two parts",
        "in a gap of two parts",
        "in a whole step",
        "below zero",
    ],
)
def test_a_place_between_two_is_in_the_first_part_of_the_gap(
    before: int | None, after: int | None, place: int | None
) -> None:
    assert turn_places.place_between(Places(after, before, after)) == place


def test_many_turns_that_come_late_fit_into_one_gap_in_their_order() -> None:
    session = Session((0, NOW), (STEP, NOW + 900 * SECOND))
    for n in range(1, 400):
        place = session.choose(NOW + n * SECOND)
        assert place is not None
        assert max(number for number, _ in session.turns if number < STEP) < place < STEP
        session.turns.append((place, NOW + n * SECOND))
    assert session.spaced_out == 0


def test_a_memory_without_a_session_has_no_place() -> None:
    rows = cast(MemoryRows, Session((STEP, NOW)))
    assert turn_places.choose(rows, "space", None, None) is None
    assert turn_places.choose(rows, "space", None, NOW) is None


def test_a_memory_without_a_time_becomes_the_last_whatever_the_clock_says() -> None:
    assert Session().choose(None) == STEP
    assert Session((5, NOW + SECOND), (9, NOW)).choose(None) == 9 + STEP


@pytest.mark.parametrize(
    ("seconds", "place"),
    [(-1, -STEP + 100), (0, 100 + 10), (1, 100 + 10), (2, 740 + STEP), (3, 740 + STEP)],
)
def test_a_memory_with_a_time_comes_after_the_last_that_is_not_later(
    seconds: int, place: int
) -> None:
    session = Session((100, NOW), (740, NOW + 2 * SECOND))
    assert session.choose(NOW + seconds * SECOND) == place


def test_a_session_without_room_is_spaced_out_once() -> None:
    session = Session((4, NOW), (5, NOW + 2 * SECOND), (6, NOW + 3 * SECOND))
    assert session.choose(NOW + SECOND) == STEP + STEP // 64
    assert session.spaced_out == 1
    assert [number for number, _ in session.turns] == [STEP, 2 * STEP, 3 * STEP]
