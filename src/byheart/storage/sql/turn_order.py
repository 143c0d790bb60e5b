"""Order the memories of a session: each has a place that does not depend on the clock.

A place is a number. The next place is a step after the last, which leaves room between two. A
memory with a time given by the caller is placed after the last memory that is not later.
"""

from __future__ import annotations

from typing import Any

from byheart.storage.sql.changes import record_change
from byheart.storage.sql.connection import Connection

STEP = 1 << 20
# A turn is placed in the first part of a gap, so that later turns fit into the rest.
_PART = 64

_SESSION = "FROM memories WHERE space = ? AND session_id = ? AND replaced_at IS NULL"


def place(connection: Connection, space: str, session_id: str | None, at: int | None) -> int | None:
    """Choose the place of a memory in its session: by a given time, or else after all others."""
    if session_id is None:
        return None
    if at is None:
        return _last(connection, space, session_id) + STEP
    found = _between(connection, space, session_id, at)
    if found is None:
        _spread(connection, space, session_id)
        found = _between(connection, space, session_id, at)
        assert found is not None, "there is room now"
    return found


def _last(connection: Connection, space: str, session_id: str) -> int:
    last = connection.get(f"SELECT max(turn_no) {_SESSION}", (space, session_id))
    return int(last or 0)


def _between(connection: Connection, space: str, session_id: str, at: int) -> int | None:
    """Find a place after the last memory that is not later; `None` if there is no room."""
    # Begin at the end: most turns are later than all others. A plain `created_at` would make SQLite
    # read and sort the whole session. The running summary is left out: it is made automatically, at
    # a time that is unrelated to the turns.
    before = connection.get(
        f"SELECT turn_no {_SESSION} AND +created_at <= ? AND client_id IS NOT '' "
        "ORDER BY turn_no DESC LIMIT 1",
        (space, session_id, at),
    )
    behind = ("", ()) if before is None else ("AND turn_no > ?", (before,))
    after = connection.get(
        f"SELECT min(turn_no) {_SESSION} {behind[0]}", (space, session_id, *behind[1])
    )
    if after is None:
        return int(before or 0) + STEP
    if before is None:
        return int(after) - STEP
    gap = int(after) - int(before)
    return None if gap < 2 else int(before) + max(1, gap // _PART)


def _spread(connection: Connection, space: str, session_id: str) -> None:
    """Renumber the places of a session, a step apart; keep the order."""
    connection.run(
        "UPDATE memories SET turn_no = ordered.place FROM (SELECT memory_id AS name, "
        f"{STEP} * row_number() OVER (ORDER BY turn_no, memory_no) AS place FROM memories "
        "WHERE space = ?1 AND session_id = ?2 AND replaced_at IS NULL) AS ordered "
        "WHERE space = ?1 AND session_id = ?2 AND ordered.name = ifnull(version_of, memory_id)",
        (space, session_id),
    )
    rows: Any = connection.all(
        "SELECT memory_no FROM memories WHERE space = ? AND session_id = ?", (space, session_id)
    )
    record_change(connection, [row[0] for row in rows])
