"""How the time of a grace period is counted, tried on values alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from byheart.contracts import TimePassed
from byheart.memory.expiry import Clocks, count_time, is_same_run, last_mark
from byheart.model.times import to_micros

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1) // timedelta(microseconds=1)
BEFORE = TimePassed(7 * HOUR, to_micros(START), 5 * HOUR, "run-1")


def clocks(wall_hours: float, running_hours: float, boot: str = "run-1") -> Clocks:
    """Read clocks that show other times since `BEFORE`."""
    return Clocks(START + timedelta(hours=wall_hours), int(running_hours * HOUR), boot)


def test_the_first_reading_has_seen_no_time_pass() -> None:
    assert count_time(None, clocks(3, 9)) == TimePassed(
        0, to_micros(START) + 3 * HOUR, 9 * HOUR, "run-1"
    )


@pytest.mark.parametrize("wall_hours", [2, 9000, -9000])
def test_while_the_machine_runs_only_its_uptime_counts(wall_hours: float) -> None:
    assert count_time(BEFORE, clocks(wall_hours, 5 + 2)).passed == 9 * HOUR


@pytest.mark.parametrize(("wall_hours", "counted"), [(3, 3), (9000, 24), (-5, 0)])
def test_across_a_restart_the_wall_clock_counts_up_to_a_day(
    wall_hours: float, counted: int
) -> None:
    for restarted in (clocks(wall_hours, 1, "run-2"), clocks(wall_hours, 1)):
        assert not is_same_run(BEFORE, restarted)
        assert count_time(BEFORE, restarted).passed == (7 + counted) * HOUR


@pytest.mark.parametrize(("wall_hours", "counted"), [(3, 2), (1, 1), (-9, 0)])
def test_on_a_machine_whose_runs_have_no_name_the_shorter_time_counts(
    wall_hours: float, counted: int
) -> None:
    before = TimePassed(0, to_micros(START), 5 * HOUR, "")
    assert count_time(before, clocks(wall_hours, 5 + 2, "")).passed == counted * HOUR


def test_a_grace_period_has_ended_for_marks_at_least_as_old_as_itself() -> None:
    assert last_mark(BEFORE, timedelta(hours=6)) == HOUR
    assert last_mark(BEFORE, timedelta(0)) == BEFORE.passed
