"""List, count and sum up sessions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from byheart.contracts import Listing, SaidTurn
from byheart.model import Filter, Session, SessionStats
from byheart.model.times import from_micros
from byheart.storage.sql import listings
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.filters import where_clause
from byheart.storage.sql.rows import IS_NO_SUMMARY, IS_SUMMARY, UNEMBEDDED_TYPES, text_list

# The running summary belongs to the session: it counts as work of the last speaker.
_AGENT = (
    f"CASE WHEN m.{IS_SUMMARY} THEN (SELECT o.agent_id FROM memories o WHERE o.space = m.space "
    f"AND o.session_id = m.session_id AND o.{IS_NO_SUMMARY} ORDER BY o.turn_no DESC LIMIT 1) "
    "ELSE m.agent_id END"
)
# A turn counts as activity when it was said, not when it was imported. A summary does not count,
# because it is made automatically.
_LATEST = (
    f"ifnull(max(CASE WHEN m.{IS_SUMMARY} THEN NULL WHEN m.role IS NULL THEN m.updated_at "
    "ELSE m.created_at END), max(m.updated_at))"
)
_CHARS = "(SELECT max(end_char) FROM chunks c WHERE c.memory_no = m.memory_no)"


def list_sessions(
    connection: Connection,
    space: str,
    agent_id: str | None,
    limit: int,
    offset: int,
    now: int,
) -> tuple[list[Session], int]:
    """List sessions by agent, latest activity first, and count them all."""
    clause, values = where_clause(Filter(space=space), now)
    grouped = (
        f"SELECT session_id, {_AGENT} AS agent, count(*) AS memory_count, max(session_iter), "
        f"min(created_at), {_LATEST} AS latest, json_group_array(DISTINCT kind) "
        f"FROM memories m WHERE {clause} AND session_id IS NOT NULL "
        "GROUP BY session_id, agent"
    )
    if agent_id is not None:
        grouped = f"SELECT * FROM ({grouped}) AS counted WHERE agent = ?"
        values.append(agent_id)
    total = connection.get(f"SELECT count(*) FROM ({grouped}) AS counted", values)
    rows: Any = connection.each(
        f"{grouped} ORDER BY latest DESC, session_id, agent NULLS FIRST LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )
    return [_to_session(row) for row in rows], total


def _to_session(row: tuple[Any, ...]) -> Session:
    session_id, agent_id, count, latest_iter, first, latest, kinds = row
    return Session(
        session_id,
        agent_id,
        count,
        latest_iter,
        from_micros(first),
        from_micros(latest),
        tuple(sorted(json.loads(kinds))),
    )


def stats(connection: Connection, where: Filter, now: int) -> SessionStats:
    """Count the contents of one session, or of all sessions; global memories belong to none."""
    clause, values = where_clause(where, now)
    own = f"FROM memories m WHERE {clause} AND m.session_id IS NOT NULL"
    row: Any = connection.get(
        "SELECT count(*), count(role), count(pinned_at), count(DISTINCT agent_id), "
        "count(DISTINCT session_id), count(DISTINCT task_code), max(session_iter), "
        f"avg(ifnull({_CHARS}, 0)), sum(access_count), min(created_at), {_LATEST} {own}",
        values,
    )
    first, latest = row[9:]
    return SessionStats(
        session_id=where.session_id,
        total_memories=row[0],
        turns=row[1],
        pinned=row[2],
        unique_agents=row[3],
        unique_sessions=row[4],
        unique_tasks=row[5],
        max_session_iter=row[6],
        avg_content_length=round(row[7] or 0.0, 1),
        total_access_count=row[8] or 0,
        kinds=_counts(connection, "kind", own, values),
        origins=_counts(connection, "origin", own, values),
        first_activity=None if first is None else from_micros(first),
        latest_activity=None if latest is None else from_micros(latest),
    )


def _counts(connection: Connection, column: str, own: str, values: list[object]) -> dict[str, int]:
    rows: Any = connection.each(
        f"SELECT {column}, count(*) {own} GROUP BY {column} ORDER BY {column}", values
    )
    return dict(rows)


def copies_of(
    connection: Connection, memory_ids: Sequence[str], space: str, now: int
) -> list[tuple[str, str]]:
    """Find the global copies of memories by the source recorded in the copies' metadata."""
    clause, values = where_clause(Filter(space=space, superseded=False), now)
    rows: Any = connection.each(
        "SELECT m.memory_id, json_extract(m.metadata, '$.promoted_from') FROM memories m "
        f"WHERE {clause} AND m.session_id IS NULL "
        "AND json_extract(m.metadata, '$.promoted_from') IN (SELECT value FROM json_each(?))",
        [*values, text_list(memory_ids)],
    )
    return list(rows)


def salient_turns(
    connection: Connection, where: Filter, roles: Sequence[str], limit: int, now: int
) -> list[SaidTurn]:
    """Pick the first turn and the most important turns, in order."""
    source, values = listings.source(Listing(where, roles=roles), now)
    rows: list[Any] = connection.all(
        "SELECT role, summary, text FROM (SELECT role, summary, (SELECT content FROM chunks c "
        f"WHERE c.memory_no = m.memory_no AND c.chunk_type NOT IN {UNEMBEDDED_TYPES} "
        "ORDER BY c.chunk_no LIMIT 1) AS text, row_number() "
        "OVER (ORDER BY turn_no, memory_no) AS place, row_number() "
        "OVER (ORDER BY importance DESC, turn_no, memory_no) AS rank "
        f"{source} AND EXISTS (SELECT 1 FROM chunks c "
        f"WHERE c.memory_no = m.memory_no AND c.chunk_type NOT IN {UNEMBEDDED_TYPES})) AS ranked "
        "WHERE place = 1 OR rank <= ? ORDER BY place",
        [*values, limit],
    )
    return [SaidTurn(role, summary, text or "") for role, summary, text in rows]
