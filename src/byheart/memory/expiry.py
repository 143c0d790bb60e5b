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
    Reader,
    Storage,
    TimePassed,
    Writer,
    one_transaction,
)
from byheart.model.times import from_micros, to_micros
from byheart.model.workspaces import FILE_KIND, WORKSPACE_AUTHOR
from byheart.system import clock

# The causes for which memories are erased.
EXPIRED = Cause(expired=True)
# The memory was hidden because its file is missing, not because a user forgot it. It may be erased
# before it expires.
MISSING_FILE = Cause(kind=FILE_KIND, hidden_by=WORKSPACE_AUTHOR)

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


def read_clocks(rows: ExpiryReader) -> Clocks:
    """Read the clocks that all processes of a store share: its machine's, or its server's."""
    shared = rows.server_clocks()
    if shared is not None:
        return Clocks(from_micros(shared.now), shared.running, shared.boot)
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


# Called with the ids of erased memories and their space, in the transaction that erases them.
OnErased = Callable[[Writer, Sequence[str], str], None]


def prune(
    storage: Storage,
    cause: Cause,
    grace: timedelta,
    limit: int,
    on_erased: OnErased | None = None,
) -> list[str]:
    """Mark memories that may be erased; erase some marked a grace period ago and give their ids.

    The memories of each space are erased in one transaction. `on_erased` is called within it with
    their ids and the space. Ask `is_due` first: this function always takes the write lock. Only
    time that the store has seen pass counts: a wall clock that jumps ahead ends no grace period.
    """
    now, last, found = _find_due(storage, cause, grace, limit)
    erased: list[str] = []
    for space in sorted({each.space for each in found}):
        lapsed = _Lapsed(cause, now, last, limit, space, frozenset(found))
        erased += _erase_due(storage, lapsed, on_erased)
    return erased


class _Lapsed(NamedTuple):
    """Name the memories of a space that may be erased."""

    cause: Cause
    now: datetime
    last: int
    limit: int
    space: str
    found: frozenset[Lapsed]

    def read(self, rows: ExpiryReader) -> list[Lapsed]:
        """Look again: another process may have changed a memory meanwhile."""
        marked = rows.marked(self.cause, self.now, self.last, self.limit, self.space)
        return [each for each in marked if each in self.found]


@one_transaction
def _find_due(
    storage: Storage, cause: Cause, grace: timedelta, limit: int
) -> tuple[datetime, int, list[Lapsed]]:
    with storage.writing(None) as writer:
        clocks = read_clocks(writer.expiry)
        last = last_mark(_mark_due(writer, cause, clocks), grace)
        return clocks.now, last, writer.expiry.marked(cause, clocks.now, last, limit)


@one_transaction
def _erase_due(storage: Storage, lapsed: _Lapsed, on_erased: OnErased | None) -> list[str]:
    with storage.writing(lapsed.space) as writer:
        due = lapsed.read(writer.expiry)
        for each in due:
            writer.memories.remove_text(each.memory_no, every_text=True)
        memory_ids = [each.memory_id for each in due]
        if due and on_erased is not None:
            on_erased(writer, memory_ids, lapsed.space)
        return memory_ids


def prefetch_due(reader: Reader, cause: Cause) -> None:
    """Ask ahead for what `is_due` reads, as a rule."""
    rows = reader.expiry
    reader.prefetch(
        rows.server_clocks,
        lambda: rows.unmarked(cause, read_clocks(rows).now, 1),
        lambda: rows.marked_too_early(clock.now(), MISSING_FILE),
    )


def is_due(rows: ExpiryReader, cause: Cause, grace: timedelta) -> bool:
    """Say whether `prune` has something to mark, to erase or to record."""
    clocks = read_clocks(rows)
    if rows.unmarked(cause, clocks.now, 1):
        return True
    too_early = rows.marked_too_early(clocks.now, MISSING_FILE)
    if too_early is None:
        return False
    before = rows.time_passed()
    # Time across a restart counts as soon as it is recorded.
    if too_early or (before is not None and not is_same_run(before, clocks)):
        return True
    last = last_mark(count_time(before, clocks), grace)
    return bool(rows.marked(cause, clocks.now, last, 1))


def _mark_due(writer: Writer, cause: Cause, clocks: Clocks) -> TimePassed:
    """Record the time that has passed, and mark the memories to which a cause applies now."""
    rows = writer.expiry
    time = count_time(rows.time_passed(), clocks)
    rows.set_time_passed(time)
    # The clock was ahead when these memories were marked.
    _mark(writer, rows.marked_too_early(clocks.now, MISSING_FILE) or (), None)
    _mark(writer, rows.unmarked(cause, clocks.now, _MOST_MARKED), time.passed)
    return time


def _mark(writer: Writer, found: Iterable[Lapsed], mark: int | None) -> None:
    writer.memories.change(
        [MemoryChange(each.memory_no, {"lapsed_at": mark}, indexed=False) for each in found]
    )
