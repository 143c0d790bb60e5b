"""Read the turns of a session in order, its running summary, and pinned memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byheart.contracts import SaidTurn
from byheart.model import Filter, Memory
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.filters import where_clause
from byheart.storage.sql.rows import MEMORY, to_memory

_SUMMARY = f"""
    SELECT {MEMORY} FROM memories m
    WHERE m.space = ? AND m.session_id = ? AND m.client_id = '' AND m.version_of IS NULL"""


def turns(
    connection: Connection,
    where: Filter,
    roles: Sequence[str],
    limit: int,
    offset: int,
    now: int,
    *,
    latest: bool,
) -> list[Memory]:
    """List turns, oldest first; with `latest`, `offset` counts from the end."""
    clause, values = _turns(where, roles, now)
    order = "DESC" if latest else "ASC"
    # Pick rows by number first: otherwise SQLite would load every text to sort the rows.
    rows: Any = connection.each(
        f"SELECT {MEMORY} FROM memories m WHERE m.memory_no IN (SELECT m.memory_no "
        f"FROM memories m WHERE {clause} ORDER BY m.turn_no {order}, m.memory_no {order} "
        "LIMIT ? OFFSET ?) ORDER BY m.turn_no, m.memory_no",
        [*values, limit, offset],
    )
    return [to_memory(row) for row in rows]


def count_turns(connection: Connection, where: Filter, roles: Sequence[str], now: int) -> int:
    """Count the turns that match."""
    clause, values = _turns(where, roles, now)
    return int(connection.get(f"SELECT count(*) FROM memories m WHERE {clause}", values))


def salient_turns(
    connection: Connection, where: Filter, roles: Sequence[str], limit: int, now: int
) -> list[SaidTurn]:
    """Pick the first turn and the most important turns, in order."""
    clause, values = _turns(where, roles, now)
    rows: list[Any] = connection.all(
        "SELECT role, summary FROM (SELECT role, summary, row_number() "
        "OVER (ORDER BY turn_no, memory_no) AS place, row_number() "
        "OVER (ORDER BY importance DESC, turn_no, memory_no) AS rank "
        f"FROM memories m WHERE {clause} AND EXISTS (SELECT 1 FROM chunks c "
        "WHERE c.memory_no = m.memory_no AND c.chunk_type NOT IN ('aside', 'echo'))) "
        "WHERE place = 1 OR rank <= ? ORDER BY place",
        [*values, limit],
    )
    return [SaidTurn(role, summary) for role, summary in rows]


def _turns(where: Filter, roles: Sequence[str], now: int) -> tuple[str, list[object]]:
    clause, values = where_clause(where, now)
    clause += " AND m.role IS NOT NULL"
    if roles:
        clause += f" AND m.role IN ({', '.join('?' * len(roles))})"
        values += roles
    return clause, values


def running_summary(connection: Connection, session_id: str, space: str) -> Memory | None:
    """Fetch the summary of a session, hidden or not."""
    row = connection.get(_SUMMARY, (space, session_id))
    return None if row is None else to_memory(row)


def pinned(connection: Connection, where: Filter, now: int) -> list[Memory]:
    """List the pinned memories, in the order in which they were pinned."""
    clause, values = where_clause(where, now)
    rows: Any = connection.each(
        f"SELECT {MEMORY} FROM memories m INDEXED BY memories_by_pin "
        f"WHERE {clause} AND m.pinned_at IS NOT NULL ORDER BY m.pinned_at, m.memory_id",
        values,
    )
    return [to_memory(row) for row in rows]
