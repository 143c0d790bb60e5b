"""Record which passages a session was lately given, to recognize replies that repeat them.

Emissions are recorded like accesses: without waiting for the disk or for other writers. They are
kept in the store and not in the process: one process may ask and another may log the reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import apsw

from byheart.model.times import now_micros
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.deferred_writes import DeferredWrites

# The number of passages remembered for a session, and for one memory that was given whole.
MOST_REMEMBERED, _MOST_OF_ONE = 96, 16
# The oldest passages are removed only when this many more are stored, not with every note.
_SLACK = 32


class _Emitted(NamedTuple):
    space: str
    session_id: str
    text_id: str
    chunk_index: int | None


class ShownPassages:
    """Record the passages that were put into prompts."""

    def __init__(self, database: Database) -> None:
        self._notes = DeferredWrites[_Emitted, int](database, _write)
        self.flush = self._notes.flush

    def add(self, chunk_ids: Sequence[str], space: str, session_id: str | None) -> None:
        """Record passages by their ids, or whole memories by their ids."""
        now = now_micros()

        def note(waiting: dict[_Emitted, int]) -> None:
            for each in chunk_ids:
                text_id, _, index = each.partition("#")
                key = _Emitted(space, session_id or "", text_id, int(index) if index else None)
                waiting[key] = now

        self._notes.add(note)

    def settle(self) -> None:
        """Write waiting records, unless another process is writing now."""
        self._notes.add(lambda _waiting: None)


def _write(connection: apsw.Connection, waiting: Mapping[_Emitted, int]) -> None:
    waiting = _after_the_last(connection, waiting)
    # One statement, because a search waits for it.
    connection.execute(
        "INSERT INTO emitted (space, session_id, chunk_no, at) "
        "SELECT m.space, value ->> 1, chunk_no, value ->> 4 FROM json_each(?) "
        "CROSS JOIN memories m ON m.memory_id = value ->> 2 AND +m.space = value ->> 0 "
        "CROSS JOIN chunks c ON c.memory_no = m.memory_no AND chunk_index BETWEEN "
        f"ifnull(value ->> 3, 0) AND ifnull(value ->> 3, {_MOST_OF_ONE - 1}) "
        "WHERE chunk_type <> 'echo' "
        "ON CONFLICT (space, session_id, chunk_no) DO UPDATE SET at = excluded.at",
        (json.dumps([(*key, at) for key, at in waiting.items()]),),
    )
    for place in {(key.space, key.session_id) for key in waiting}:
        held = connection.execute(
            "SELECT count(*) FROM emitted WHERE space = ? AND session_id = ?", place
        ).get
        if held > MOST_REMEMBERED + _SLACK:
            connection.execute(
                "DELETE FROM emitted WHERE space = ?1 AND session_id = ?2 AND chunk_no NOT IN "
                "(SELECT chunk_no FROM emitted WHERE space = ?1 AND session_id = ?2 "
                "ORDER BY at DESC, chunk_no LIMIT ?3)",
                (*place, MOST_REMEMBERED),
            )


def _after_the_last(
    connection: apsw.Connection, waiting: Mapping[_Emitted, int]
) -> dict[_Emitted, int]:
    """Date new notes after the earlier ones of their session, even if the clock was set back."""
    places = {(key.space, key.session_id) for key in waiting}
    last = {
        place: connection.execute(
            "SELECT max(at) FROM emitted WHERE space = ? AND session_id = ?", place
        ).get
        for place in places
    }
    return {key: max(at, (last[key.space, key.session_id] or 0) + 1) for key, at in waiting.items()}


def emitted(connection: apsw.Connection, space: str, session_id: str, now: int) -> list[str]:
    """Give the texts lately given to this session or to no named session.

    Leave out texts of other sessions, forgotten texts and expired texts: a reply that repeats such
    a text is the only visible text that says it, and has to be found.
    """
    rows = connection.execute(
        "SELECT content FROM emitted e JOIN chunks USING (chunk_no) "
        "JOIN memories m USING (memory_no) WHERE e.space = ?1 AND e.session_id IN (?2, '') "
        "AND (e.session_id <> '' OR m.session_id IS NULL OR m.session_id = ?2) "
        "AND m.forgotten_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?3) "
        "ORDER BY at DESC, chunk_no",
        (space, session_id, now),
    )
    return [str(row[0]) for row in rows]


def given_since(
    connection: apsw.Connection, space: str, session_id: str, since: int
) -> frozenset[int]:
    """Name the passages that were given to this very session since a moment."""
    rows = connection.execute(
        "SELECT chunk_no FROM emitted WHERE space = ? AND session_id = ? AND at >= ?",
        (space, session_id, since),
    )
    return frozenset(int(row[0]) for row in rows)


def forget(connection: apsw.Connection, space: str, session_id: str) -> None:
    """Remove the records of a session."""
    connection.execute(
        "DELETE FROM emitted WHERE space = ? AND session_id = ?", (space, session_id)
    )
