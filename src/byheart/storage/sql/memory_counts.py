"""Count the memories of a listing without reading them.

The table `memory_counts` holds how many memories each space has, by kind and by whether they belong
to a session. Triggers keep it right within every transaction, whatever writes to `memories`.
Expired memories are still counted there, because no transaction writes when a memory expires: an
index lists the few that have expired and were not erased yet.
"""

from __future__ import annotations

from dataclasses import replace

from byheart.contracts import Listing
from byheart.model import Filter
from byheart.storage.sql import listings
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.filters import where_clause

_COUNTED = """
    SELECT space, CASE WHEN session_id IS NULL THEN 0 ELSE 1 END AS in_session, kind,
        count(*) AS memories
    FROM memories WHERE forgotten_at IS NULL AND replaced_at IS NULL GROUP BY 1, 2, 3"""
_HELD = "SELECT space, in_session, kind, memories FROM memory_counts"
# The counts that differ from the memories, on either side.
WRONG_COUNTS = f"""
    SELECT space, in_session, kind, memories FROM
        (SELECT * FROM ({_COUNTED}) AS counted EXCEPT {_HELD}) AS missing
    UNION ALL SELECT space, in_session, kind, memories FROM
        ({_HELD} EXCEPT SELECT * FROM ({_COUNTED}) AS counted) AS surplus"""
# An index for each half of the memories that may have expired.
_EXPIRED = (
    "memories m INDEXED BY memories_by_expiry WHERE m.expires_at <= ? AND m.lapsed_at IS NULL "
    "AND m.version_of IS NULL AND {}",
    "memories m INDEXED BY memories_lapsed WHERE m.expires_at <= ? AND m.lapsed_at IS NOT NULL "
    "AND {}",
)


def count(connection: Connection, listing: Listing, now: int) -> int:
    """Count the memories of a listing, whatever its limit; read rows only if it asks for more."""
    where = listing.where
    if where.session_id is not None and where.include_global and where.scope is None:
        # A session has few memories, and all others may be global.
        own = replace(listing, where=replace(where, include_global=False))
        rest = replace(listing, where=replace(where, session_id=None, scope="global"))
        return count(connection, own, now) + count(connection, rest, now)
    if _asks_for_more(listing):
        source, values = listings.source(listing, now, by_labels=True)
        return int(connection.get(f"SELECT count(*) {source}", values))
    clause, values = "space = ?", [where.space]
    if where.kind:
        clause += f" AND kind IN ({', '.join('?' * len(where.kind))})"
        values += where.kind
    if where.scope is not None:
        clause += f" AND in_session = {int(where.scope != 'global')}"
    held = connection.get(f"SELECT sum(memories) FROM memory_counts WHERE {clause}", values)
    total = int(held or 0)
    if total and not where.include_expired:
        total -= _count_expired(connection, where, now)
    return total


def _asks_for_more(listing: Listing) -> bool:
    """Return whether a listing has conditions beyond a space, kinds and a scope."""
    where = listing.where
    counted = Filter(
        where.space, kind=where.kind, scope=where.scope, include_expired=where.include_expired
    )
    return where != counted or listing != Listing(
        where, listing.order, listing.limit, listing.offset
    )


def _count_expired(connection: Connection, where: Filter, now: int) -> int:
    clause, values = where_clause(replace(where, include_expired=True), now)
    queries = (f"SELECT count(*) FROM {source.format(clause)}" for source in _EXPIRED)
    return sum(int(connection.get(query, (now, *values))) for query in queries)


def count_again(connection: Connection) -> None:
    """Count all memories of a store again."""
    for _ in connection.parts():
        connection.run("DELETE FROM memory_counts")
        connection.run(f"INSERT INTO memory_counts (space, in_session, kind, memories) {_COUNTED}")
