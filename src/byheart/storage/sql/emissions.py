"""Record which passages a session was lately given, to recognize replies that repeat them.

Emissions are recorded like accesses: without waiting for the disk or for other writers. They are
kept in the store and not in the process: one process may ask and another may log the reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from byheart.contracts import Emission, EmittedText
from byheart.model import ECHO
from byheart.model.times import to_micros
from byheart.storage.sql.connection import Connection

# The number of passages remembered for a session, and for one memory that was given whole.
MOST_REMEMBERED, _MOST_OF_ONE = 96, 16
# The oldest passages are removed only when this many more are stored, not with every note.
_SLACK = 32
# The number of passages per statement: databases limit the values of one.
_MOST_AT_A_TIME = 1000


class _Emitted(NamedTuple):
    space: str
    session_id: str
    text_id: str
    chunk_index: int | None


def write(connection: Connection, notes: Sequence[Emission]) -> None:
    """Record the passages that were put into prompts."""
    if not notes:
        return
    waiting = dict(map(_read, notes))
    held = {
        place: connection.get(
            "SELECT count(*), ifnull(max(at), 0) FROM emitted WHERE space = ? AND session_id = ?",
            place,
        )
        for place in {(key.space, key.session_id) for key in waiting}
    }
    latest = {place: last + 1 for place, (_, last) in held.items()}
    dated = [(*key, _date(at, (key.space, key.session_id), latest)) for key, at in waiting.items()]
    # Usually one statement.
    for at in range(0, len(dated), _MOST_AT_A_TIME):
        _insert(connection, dated[at : at + _MOST_AT_A_TIME])
    for place, (before, _) in held.items():
        added = sum(
            1 if key.chunk_index is not None else _MOST_OF_ONE
            for key in waiting
            if (key.space, key.session_id) == place
        )
        if before + added > MOST_REMEMBERED + _SLACK:
            connection.run(
                # A note may add less: a passage that is recorded already, or a short memory.
                "DELETE FROM emitted WHERE space = ?1 AND session_id = ?2 AND (SELECT count(*) "
                "FROM emitted WHERE space = ?1 AND session_id = ?2) > ?4 AND chunk_no NOT IN "
                "(SELECT chunk_no FROM emitted WHERE space = ?1 AND session_id = ?2 "
                "ORDER BY at DESC, chunk_no LIMIT ?3)",
                (*place, MOST_REMEMBERED, MOST_REMEMBERED + _SLACK),
            )


def _date(at: int, place: tuple[str, str], latest: dict[tuple[str, str], int]) -> int:
    """Date a note after the earlier ones of its session, even if the clock was set back."""
    latest[place] = at if at >= latest[place] else latest[place] + 1
    return latest[place]


def _insert(connection: Connection, dated: Sequence[tuple[object, ...]]) -> None:
    noted = ", ".join(["(?, ?, ?, ?, ?)"] * len(dated))
    connection.run(
        f"WITH noted (space, session_id, text_id, chunk_index, at) AS (VALUES {noted}) "
        "INSERT INTO emitted (space, session_id, chunk_no, at) "
        # A passage may be noted twice: alone, and with the whole memory.
        "SELECT m.space, n.session_id, chunk_no, max(CAST(n.at AS BIGINT)) FROM noted n "
        "CROSS JOIN memories m ON m.memory_id = n.text_id AND m.space || '' = n.space "
        "CROSS JOIN chunks c ON c.memory_no = m.memory_no AND c.chunk_index BETWEEN "
        "ifnull(CAST(n.chunk_index AS BIGINT), 0) "
        f"AND ifnull(CAST(n.chunk_index AS BIGINT), {_MOST_OF_ONE - 1}) "
        f"WHERE chunk_type <> '{ECHO}' GROUP BY m.space, n.session_id, chunk_no "
        "ON CONFLICT (space, session_id, chunk_no) DO UPDATE SET at = excluded.at",
        [value for row in dated for value in row],
    )


def _read(note: Emission) -> tuple[_Emitted, int]:
    text_id, _, index = note.passage.partition("#")
    place = note.space, note.session_id or ""
    return _Emitted(*place, text_id, int(index) if index else None), to_micros(note.at)


def emitted(connection: Connection, space: str, session_id: str, now: int) -> list[EmittedText]:
    """Give the texts lately given to this session or to no named session.

    Leave out texts of other sessions, forgotten texts and expired texts: a reply that repeats such
    a text is the only visible text that says it, and has to be found.
    """
    rows = connection.each(
        "SELECT ifnull(m.version_of, m.memory_id), content FROM emitted e "
        "JOIN chunks USING (chunk_no) JOIN memories m USING (memory_no) "
        "WHERE e.space = ?1 AND e.session_id IN (?2, '') "
        "AND (e.session_id <> '' OR m.session_id IS NULL OR m.session_id = ?2) "
        "AND m.forgotten_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > ?3) "
        "ORDER BY at DESC, chunk_no",
        (space, session_id, now),
    )
    return [EmittedText(str(row[0]), str(row[1])) for row in rows]


def given_since(connection: Connection, space: str, session_id: str, since: int) -> frozenset[int]:
    """Name the passages that were given to this very session since a moment."""
    rows = connection.each(
        "SELECT chunk_no FROM emitted WHERE space = ? AND session_id = ? AND at >= ?",
        (space, session_id, since),
    )
    return frozenset(int(row[0]) for row in rows)


def forget(connection: Connection, space: str, session_id: str) -> None:
    """Remove the records of a session."""
    connection.run("DELETE FROM emitted WHERE space = ? AND session_id = ?", (space, session_id))
