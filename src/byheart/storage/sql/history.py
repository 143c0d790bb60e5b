"""Read the history of a memory, and find the rows of its earlier texts."""

from __future__ import annotations

import json

from byheart.model import HistoryEntry, text_id
from byheart.model.times import from_micros
from byheart.model.workspaces import FILE_KIND
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import CONTENT


def history(connection: Connection, memory_id: str, space: str) -> list[HistoryEntry]:
    """List the events of a memory's life, oldest first; fill in the texts where they changed."""
    own = connection.get(
        "SELECT memory_no FROM memories WHERE memory_id = ? AND space = ? AND version_of IS NULL",
        (memory_id, space),
    )
    entries = []
    for operation, at, who, version, reason, changes in connection.each(
        "SELECT operation, at, who, version, reason, changes FROM history "
        "WHERE memory_no = ? ORDER BY history_no",
        (own,),
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
        "SELECT memory_id FROM memories WHERE space || '' = ?1 "
        "AND (memory_id = ?2 OR version_of = ?2) AND version >= ?3 "
        # Earlier texts of files are not kept: a later text must not be returned instead.
        f"AND (version = ?3 OR kind != '{FILE_KIND}' OR role IS NOT NULL OR client_id IS NULL) "
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
