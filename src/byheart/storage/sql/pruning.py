"""Erase memories that have expired, or whose files are missing, after a grace period.

The grace period is not measured by the wall clock, which may be wrong for a while. The store counts
the time it has seen pass: while the machine runs, by its uptime; across a restart, by the wall
clock, but at most one day. The period begins when pruning first finds that a memory may be erased,
and is cancelled if the memory becomes valid again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from byheart.model.times import now_micros
from byheart.storage.sql import versions
from byheart.storage.sql.connection import Connection, Database
from byheart.system import clock

_KEY = "time_passed"
_MICROSECOND = timedelta(microseconds=1)
# The longest time that a restart of the machine counts for.
_LONGEST_RESTART = timedelta(days=1) // _MICROSECOND
# The number of memories that are marked at a time.
_MOST_NOTICED = 1000


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The time that the store has seen pass, and the values of the clocks at that moment."""

    passed: int
    at: int
    running: int
    boot: str

    @property
    def is_of_this_run(self) -> bool:
        """Say whether the machine has been running ever since, as far as the clocks show."""
        return self.boot == clock.boot_id() and self.running <= clock.running_micros()

    def now(self) -> TimePassed:
        """Add the time that has certainly passed since then."""
        at, running, boot = now_micros(), clock.running_micros(), clock.boot_id()
        by_wall, by_running = max(0, at - self.at), running - self.running
        if not self.is_of_this_run:
            since = min(by_wall, _LONGEST_RESTART)
        elif boot:
            since = by_running
        else:  # the machine was perhaps restarted, or is another machine
            since = min(by_wall, by_running)
        return TimePassed(self.passed + since, at, running, boot)


def read_time(connection: Connection) -> TimePassed:
    """Read how much time had passed when it was last recorded; 0 if it never was."""
    written = connection.get("SELECT value FROM store WHERE key = ?", (_KEY,))
    if written is None:
        return TimePassed(0, now_micros(), clock.running_micros(), clock.boot_id())
    return TimePassed(**json.loads(written))


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason to erase memories: a condition on `memories m`, with the present moment as `?1`."""

    condition: str


def prune(database: Database, cause: Cause, grace: timedelta, limit: int) -> list[str]:
    """Mark memories that may be erased; erase some marked a grace period ago and give their ids."""
    with database.reading() as connection:
        if not _has_work(connection, cause, grace):
            return []
    with database.writing() as connection:
        return _prune(connection, cause, grace, limit)


def _has_work(connection: Connection, cause: Cause, grace: timedelta) -> bool:
    now = now_micros()
    if connection.get(_UNNOTICED % cause.condition, (now, 1)) is not None:
        return True
    if connection.get("SELECT 1 FROM memories WHERE lapsed_at IS NOT NULL LIMIT 1") is None:
        return False
    before = read_time(connection)
    # Time across a restart counts as soon as it is recorded.
    return (
        not before.is_of_this_run
        or _found_early(connection, now)
        or bool(_due(connection, cause, now, _end(before.now(), grace), 1))
    )


def _prune(connection: Connection, cause: Cause, grace: timedelta, limit: int) -> list[str]:
    now, time = now_micros(), read_time(connection).now()
    connection.run("INSERT OR REPLACE INTO store VALUES (?, ?)", (_KEY, json.dumps(asdict(time))))
    # The clock was ahead when these memories were marked.
    connection.run(f"UPDATE memories SET lapsed_at = NULL WHERE {_NOTICED_EARLY}", (now,))
    connection.run(
        f"UPDATE memories SET lapsed_at = ?3 WHERE memory_no IN ({_UNNOTICED % cause.condition})",
        (now, _MOST_NOTICED, time.passed),
    )
    due = _due(connection, cause, now, _end(time, grace), limit)
    for space, memory_id in due:
        versions.remove(connection, [memory_id], space, tombstones=False)
    return [memory_id for _, memory_id in due]


# The memory of a missing file may be erased before it expires.
_NOTICED_EARLY = (
    "lapsed_at IS NOT NULL AND expires_at > ? AND NOT (kind = 'file' AND forgotten_at IS NOT NULL)"
)
_UNNOTICED = "SELECT m.memory_no FROM memories m WHERE m.lapsed_at IS NULL AND %s LIMIT ?2"


def _found_early(connection: Connection, now: int) -> bool:
    return bool(connection.get(f"SELECT 1 FROM memories WHERE {_NOTICED_EARLY} LIMIT 1", (now,)))


def _due(connection: Connection, cause: Cause, now: int, noticed_by: int, limit: int) -> list[Any]:
    """List memories marked by some moment that may still be erased: space and id, oldest first."""
    return connection.all(
        "SELECT m.space, m.memory_id FROM memories m "
        f"WHERE m.lapsed_at <= ?2 AND {cause.condition} ORDER BY m.lapsed_at, m.memory_no LIMIT ?3",
        (now, noticed_by, limit),
    )


def _end(time: TimePassed, grace: timedelta) -> int:
    return time.passed - grace // _MICROSECOND
