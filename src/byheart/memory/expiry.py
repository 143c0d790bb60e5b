"""Erase memories that have expired, or whose files are missing, after a grace period.

The grace period is not measured by the wall clock, which may be wrong for a while. The store counts
the time it has seen pass: while the machine runs, by its uptime; across a restart, by the wall
clock, but at most one day. The period begins when pruning first finds that a memory may be erased,
and is cancelled if the memory becomes valid again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from byheart.contracts import (
    Cause,
    ExpiryReader,
    Lapsed,
    MemoryChange,
    Storage,
    TimePassed,
    Writer,
)
from byheart.model.times import to_micros
from byheart.system import clock

_MICROSECOND = timedelta(microseconds=1)
# The longest time that a restart of the machine counts for.
_LONGEST_RESTART = timedelta(days=1) // _MICROSECOND
# The number of memories that are marked at a time.
_MOST_MARKED = 1000


class Clocks(NamedTuple):
    """The wall clock and the uptime of this run of the machine; an unknown run is `""`."""

    now: datetime
    running: int
    boot: str


def read_clocks() -> Clocks:
    """Read the clocks of the machine."""
    return Clocks(clock.now(), clock.running_micros(), clock.boot_id())


def is_same_run(before: TimePassed, clocks: Clocks) -> bool:
    """Say whether the machine has been running ever since, as far as the clocks show."""
    return before.boot == clocks.boot and before.running <= clocks.running


def count_time(before: TimePassed | None, clocks: Clocks) -> TimePassed:
    """Add the time that has certainly passed since it was last recorded; begin with 0."""
    at = to_micros(clocks.now)
    if before is None:
        return TimePassed(0, at, clocks.running, clocks.boot)
    by_wall, by_running = max(0, at - before.at), clocks.running - before.running
    if not is_same_run(before, clocks):
        since = min(by_wall, _LONGEST_RESTART)
    elif clocks.boot:
        since = by_running
    else:  # the machine was perhaps restarted, or is another machine
        since = min(by_wall, by_running)
    return TimePassed(before.passed + since, at, clocks.running, clocks.boot)


def last_mark(time: TimePassed, grace: timedelta) -> int:
    """Give the latest mark whose grace period has ended."""
    return time.passed - grace // _MICROSECOND


def prune(
    storage: Storage,
    cause: Cause,
    grace: timedelta,
    limit: int,
    on_erased: Callable[[Writer, Sequence[str]], None] | None = None,
) -> list[str]:
    """Mark memories that may be erased; erase some marked a grace period ago and give their ids.

    `on_erased` is called with the ids within the same transaction. Ask `is_due` first: this
    function always takes the write lock.
    Only time that the store has seen pass counts: a wall clock that jumps ahead ends no grace
    period.
    """
    with storage.writing() as writer:
        erased = _prune(writer, cause, grace, limit, read_clocks())
        if erased and on_erased is not None:
            on_erased(writer, erased)
        return erased


def is_due(rows: ExpiryReader, cause: Cause, grace: timedelta) -> bool:
    """Say whether `prune` has something to mark, to erase or to record."""
    clocks = read_clocks()
    if rows.unmarked(cause, clocks.now, 1):
        return True
    too_early = rows.marked_too_early(clocks.now)
    if too_early is None:
        return False
    before = rows.time_passed()
    # Time across a restart counts as soon as it is recorded.
    if too_early or (before is not None and not is_same_run(before, clocks)):
        return True
    last = last_mark(count_time(before, clocks), grace)
    return bool(rows.marked(cause, clocks.now, last, 1))


def _prune(writer: Writer, cause: Cause, grace: timedelta, limit: int, clocks: Clocks) -> list[str]:
    rows = writer.expiry
    time = count_time(rows.time_passed(), clocks)
    rows.set_time_passed(time)
    # The clock was ahead when these memories were marked.
    _mark(writer, rows.marked_too_early(clocks.now) or (), None)
    _mark(writer, rows.unmarked(cause, clocks.now, _MOST_MARKED), time.passed)
    due = rows.marked(cause, clocks.now, last_mark(time, grace), limit)
    for each in due:
        writer.memories.remove_text(each.memory_no, every_text=True)
    return [each.memory_id for each in due]


def _mark(writer: Writer, found: Iterable[Lapsed], mark: int | None) -> None:
    writer.memories.change(
        [MemoryChange(each.memory_no, {"lapsed_at": mark}, indexed=False) for each in found]
    )
