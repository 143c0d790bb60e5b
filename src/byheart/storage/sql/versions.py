"""Hide and remove memories with all their texts, and read their history and earlier texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from byheart.contracts import key_of
from byheart.model import HistoryEntry, Memory, text_id, to_wire
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sql import writing
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import CONTENT

# The reason recorded when an expired memory is hidden.
_SAID_AGAIN = "it had run out, and the same was saved again"


def forget(
    connection: Connection, memory_ids: Iterable[str], space: str, who: str, reason: str | None
) -> list[str]:
    """Hide memories with all their texts; give the ids of those that were not hidden before."""
    now, hidden = now_micros(), []
    for memory_id in memory_ids:
        rows = _texts_of(connection, memory_id, space, "forgotten_at IS NULL")
        if rows:
            _set_forgotten(connection, rows, now)
            record(connection, rows[0], "forget", now, who, reason)
            hidden.append(memory_id)
    return hidden


def set_aside(connection: Connection, memory: Memory, who: str) -> None:
    """Hide an expired memory whose text is about to be saved again as a new memory."""
    expired = writing.find_live(connection, key_of(memory))
    if expired is not None:
        forget(connection, [expired[1]], memory.space, who, _SAID_AGAIN)


def _set_forgotten(connection: Connection, rows: Sequence[int], at: int | None) -> None:
    connection.run_many(
        "UPDATE memories SET forgotten_at = ?, lapsed_at = NULL WHERE memory_no = ?",
        ((at, row) for row in rows),
    )
    writing.record_change(connection, rows)


def remove(
    connection: Connection, memory_ids: Iterable[str], space: str, *, tombstones: bool
) -> dict[str, int]:
    """Remove memories with all their texts, and count the removed rows."""
    counts = dict.fromkeys(COUNTED, 0)
    for memory_id in memory_ids:
        rows = _texts_of(connection, memory_id, space, "1")
        counts["memories"] += bool(rows)
        counts["texts"] += len(rows)
        for row in rows:
            for table, query in _BELONGINGS.items():
                counts[table] += connection.get(query, (row,))
            if tombstones:
                connection.run(
                    "INSERT OR IGNORE INTO tombstones (space, content_hash, at) "
                    "SELECT space, content_hash, ? FROM memories WHERE memory_no = ?",
                    (now_micros(), row),
                )
            writing.remove(connection, row)
    return counts


COUNTED = ("memories", "texts", "chunks", "vectors", "history")
_BELONGINGS = {
    "chunks": "SELECT count(*) FROM chunks WHERE memory_no = ?",
    "vectors": "SELECT count(*) FROM chunks JOIN vectors USING (chunk_no) WHERE memory_no = ?",
    "history": "SELECT count(*) FROM history WHERE memory_no = ?",
}


def record(
    connection: Connection,
    memory_no: int,
    operation: str,
    at: Any,
    who: str,
    reason: str | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Add an event to the history: the action, its author, and the changes."""
    connection.run(
        "INSERT INTO history (memory_no, operation, at, who, reason, changes, version) "
        "SELECT ?1, ?2, ?3, ?4, ?5, ?6, version FROM memories WHERE memory_no = ?1",
        (
            memory_no,
            operation,
            at if isinstance(at, int) else to_micros(at),
            who,
            reason,
            json.dumps(to_wire(changes or {}), ensure_ascii=False, sort_keys=True),
        ),
    )


def history(connection: Connection, memory_id: str, space: str) -> list[HistoryEntry]:
    """List the events of a memory's life, oldest first; fill in the texts where they changed."""
    rows = _texts_of(connection, memory_id, space, "1")
    entries = []
    for operation, at, who, version, reason, changes in connection.each(
        "SELECT operation, at, who, version, reason, changes FROM history "
        "WHERE memory_no = ? ORDER BY history_no",
        (rows[0] if rows else None,),
    ):
        loaded = json.loads(changes)
        if "content" in loaded:
            loaded["content"] = {
                "from": _text_at(connection, memory_id, space, version - 1),
                "to": _text_at(connection, memory_id, space, version),
            }
        entries.append(HistoryEntry(operation, from_micros(at), who, version, reason, loaded))
    return entries


def row_of(connection: Connection, memory_id: str, space: str, version: int) -> str:
    """Name the row with the text of a version; give an id that no row has if there is none."""
    found = connection.get(
        # A plain `space` would make SQLite scan the whole space.
        "SELECT memory_id FROM memories WHERE +space = ?1 "
        "AND (memory_id = ?2 OR version_of = ?2) AND version >= ?3 "
        # Earlier texts of files are not kept: a later text must not be returned instead.
        "AND (version = ?3 OR kind != 'file' OR role IS NOT NULL OR client_id IS NULL) "
        "ORDER BY version LIMIT 1",
        (space, memory_id, version),
    )
    return text_id(memory_id, version) if found is None else str(found)


def _text_at(connection: Connection, memory_id: str, space: str, version: int) -> str:
    text: str = connection.get(
        f"SELECT {CONTENT} FROM memories m WHERE memory_id = ?",
        (row_of(connection, memory_id, space, version),),
    )
    return text


def _texts_of(connection: Connection, memory_id: str, space: str, condition: str) -> list[int]:
    """List the rows of a memory, the current text first."""
    own = connection.get(
        f"SELECT memory_no FROM memories WHERE memory_id = ? AND space = ? "
        f"AND version_of IS NULL AND {condition}",
        (memory_id, space),
    )
    if own is None:
        return []
    earlier = connection.each(
        "SELECT memory_no FROM memories WHERE version_of = ? AND space = ?", (memory_id, space)
    )
    return [own, *chain.from_iterable(earlier)]
