"""Read a store: one transaction, one view of the index, and the rows of that moment."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import apsw

from byheart.contracts import (
    Double,
    FoundChunk,
    Model,
    SaidTurn,
    Standing,
)
from byheart.index.candidates import ArraySearch
from byheart.index.index import Index
from byheart.model import (
    Entity,
    Filter,
    Heading,
    HistoryEntry,
    Memory,
    Session,
    SessionStats,
    Similar,
)
from byheart.model.damage import DamagedRow
from byheart.model.ids import parse_text_id
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sqlite import conversation, entities, sessions, shown_passages, versions
from byheart.storage.sqlite.filters import where_clause
from byheart.storage.sqlite.index_lookup import SqliteIndexLookup
from byheart.storage.sqlite.index_source import SqliteIndexSource
from byheart.storage.sqlite.rows import (
    FOUND,
    MEMORY,
    headings_json,
    to_found_chunk,
    to_headings,
    to_memory,
)

_Row = TypeVar("_Row")


def _all_of(found: list[_Row], wanted: Sequence[int]) -> list[_Row]:
    """Give the rows found, and fail if one is missing: the index names only existing rows."""
    if len(found) != len(wanted):
        raise DamagedRow(f"{len(wanted) - len(found)} rows that the index names are missing")
    return found


class AheadOfSnapshot(Exception):
    """Report that the index is ahead of this transaction: begin a new transaction."""


class SqliteReader:
    """Read a consistent view of the store, for as long as its transaction lasts."""

    def __init__(self, connection: apsw.Connection, index: Index) -> None:
        self._connection = connection
        self._index = index
        self._now = now_micros()

    @cached_property
    def index(self) -> ArraySearch:
        """Update the index to the moment of this transaction, and return it."""
        view = self._index.view(SqliteIndexSource(self._connection))
        if view is None:
            raise AheadOfSnapshot
        return ArraySearch(view, SqliteIndexLookup(self._connection), self._now)

    def resembling(self, memory_id: str, space: str, least: float, limit: int) -> list[Similar]:
        """Find memories that say almost the same and are visible where this one is, best first."""
        number = self._connection.execute(
            "SELECT memory_no FROM memories WHERE memory_id = ? AND space = ?", (memory_id, space)
        ).get
        if number is None:
            return []
        found = self.index.resembling(number, least, limit)
        # Turns are left out: a turn stays as it was said, and is never merged or replaced.
        select = "SELECT memory_id, summary FROM memories WHERE memory_no = ? AND role IS NULL"
        rows = ((self._connection.execute(select, (no,)).get, score) for no, score in found)
        return [Similar(row[0], score, row[1]) for row, score in rows if row is not None]

    def doubles(self, where: Filter, least: float) -> list[Double]:
        """Pair memories of one kind and session that say almost the same, best first."""
        found = self.index.doubles(where, least)
        numbers = sorted({number for first, second, _ in found for number in (first, second)})
        names = dict(
            self._connection.execute(
                "SELECT memory_no, memory_id FROM json_each(?) wanted "
                "CROSS JOIN memories ON memory_no = value AND role IS NULL",
                (json.dumps(numbers),),
            )
        )
        return [
            Double(names[first], names[second], alike)
            for first, second, alike in found
            if first in names and second in names  # turns are never merged, however similar
        ]

    def entities(
        self, space: str, prefix: str | None, limit: int, offset: int
    ) -> tuple[list[Entity], int]:
        """List the entities that memories name now, the most used first, and count them all."""
        return entities.list_entities(self._connection, space, prefix, limit, offset)

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings above each chunk."""
        rows = self._connection.execute(
            "SELECT headings FROM json_each(?) wanted CROSS JOIN chunks ON chunk_no = value "
            "ORDER BY wanted.key",
            (json.dumps(list(chunk_nos)),),
        )
        return _all_of([to_headings(row[0]) for row in rows], chunk_nos)

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        rows = self._connection.execute(
            f"SELECT {FOUND} FROM json_each(?) wanted CROSS JOIN chunks c ON c.chunk_no = value "
            "CROSS JOIN memories m USING (memory_no) ORDER BY wanted.key",
            (json.dumps(list(chunk_nos)),),
        )
        return _all_of([to_found_chunk(row) for row in rows], chunk_nos)

    def sample(self, where: Filter, count: int, seed: int) -> list[FoundChunk]:
        """Fetch some chunks at random, the same ones for the same seed while nothing changes."""
        return self.chunks(self.index.sample(where, count, seed))

    def chunks_of(self, memory_id: str, space: str, part: range | None = None) -> list[FoundChunk]:
        """Fetch every chunk of a memory in order, or the chunks whose index is in `part`."""
        first, behind = (0, None) if part is None else (part.start, part.stop)
        rows = self._connection.execute(
            f"SELECT {FOUND} FROM memories m JOIN chunks c USING (memory_no) "
            "WHERE m.memory_id = ?1 AND m.space = ?2 AND m.forgotten_at IS NULL "
            "AND chunk_index >= ?3 AND (?4 IS NULL OR chunk_index < ?4) ORDER BY chunk_index",
            (self._text_row(memory_id, space), space, first, behind),
        )
        return [to_found_chunk(row) for row in rows]

    def chunks_under(
        self, memory_id: str, space: str, headings: Sequence[Heading], *, below: bool
    ) -> list[FoundChunk]:
        """Fetch a memory's chunks under exactly these headings, in order.

        With `below`, include the chunks under deeper headings.
        """
        exactly = headings_json(headings)
        further = exactly[:-1] + ("," if headings else "") if below else None
        rows = self._connection.execute(
            f"SELECT {FOUND} FROM memories m JOIN chunks c USING (memory_no) "
            "WHERE m.memory_id = ?1 AND m.space = ?2 AND m.forgotten_at IS NULL "
            "AND (headings = ?3 OR substr(headings, 1, length(?4)) = ?4) ORDER BY chunk_index",
            (self._text_row(memory_id, space), space, exactly, further),
        )
        return [to_found_chunk(row) for row in rows]

    def memory(self, memory_id: str, space: str) -> Memory | None:
        """Fetch one memory whole."""
        row = self._connection.execute(
            f"SELECT {MEMORY} FROM memories m "
            "WHERE m.memory_id = ? AND m.space = ? AND m.forgotten_at IS NULL",
            (self._text_row(memory_id, space), space),
        ).get
        return None if row is None else to_memory(row)

    def at_path(self, path: str, space: str) -> str | None:
        """Name the memory that a path belongs to, the latest if there are several."""
        return self._connection.execute(  # type: ignore[no-any-return]
            "SELECT memory_id FROM memories WHERE space = ? AND path = ? "
            "AND forgotten_at IS NULL AND version_of IS NULL ORDER BY memory_no DESC LIMIT 1",
            (space, path),
        ).get

    def files_ending(
        self, ending: str, space: str, sessions: Collection[str | None] | None, limit: int
    ) -> dict[str, str]:
        """Find the memories of workspace files whose paths end in the given folders and name.

        With `sessions`, return only memories of these sessions.
        """
        rows: Any = self._connection.execute(
            "SELECT m.path, m.memory_id FROM workspace_files f JOIN workspaces w USING "
            "(workspace_no) CROSS JOIN memories m ON m.memory_id = f.memory_id "
            "WHERE w.space = ?1 AND substr(w.root || '/' || f.path, -length(?2)) = ?2 "
            "AND gone_at IS NULL AND m.forgotten_at IS NULL AND m.version_of IS NULL "
            "AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(?3) WHERE value IS m.session_id)) "
            "LIMIT ?4",
            (space, f"/{ending}", None if sessions is None else json.dumps(list(sessions)), limit),
        )
        return dict(rows)

    def _text_row(self, name: str, space: str) -> str:
        """Name the row with the text of a version: a row carries the last version it had."""
        memory_id, version = parse_text_id(name)
        return (
            name
            if version is None
            else versions.row_of(self._connection, memory_id, space, version)
        )

    def token_counts(self, text_ids: Sequence[str]) -> dict[str, int]:
        """Give the numbers of tokens in texts of memories, as counted when they were saved."""
        rows: Any = self._connection.execute(
            "SELECT memory_id, (SELECT sum(token_count) FROM chunks c "
            "WHERE c.memory_no = m.memory_no) FROM json_each(?) "
            "CROSS JOIN memories m ON memory_id = value",
            (json.dumps(list(text_ids)),),
        )
        return dict(rows)

    def standings(self, memory_nos: Sequence[int]) -> list[Standing]:
        """Fetch the fields that recall weighs, in the order asked."""
        rows = self._connection.execute(
            "SELECT ifnull(version_of, memory_id), memory_id, summary, importance, "
            "ifnull(accessed_at, updated_at), access_count "
            "FROM json_each(?) wanted CROSS JOIN memories ON memory_no = value "
            "ORDER BY wanted.key",
            (json.dumps(list(memory_nos)),),
        )
        found = [
            Standing(memory_id, text_id, summary, importance, from_micros(used), accesses)
            for memory_id, text_id, summary, importance, used, accesses in rows
        ]
        return _all_of(found, memory_nos)

    def memories(
        self, where: Filter, limit: int, offset: int, *, by_iteration: bool
    ) -> tuple[list[Memory], int]:
        """List memories, latest first, or by iteration and then latest first; count all of them."""
        clause, values = where_clause(where, self._now)
        total = self._connection.execute(
            f"SELECT count(*) FROM memories m WHERE {clause}", values
        ).get
        iteration = "m.session_iter DESC NULLS LAST, " if by_iteration else ""
        order = f"ORDER BY {iteration}m.created_at DESC, m.memory_no DESC"
        # Sort the numbers first: otherwise SQLite would load every text to sort the rows.
        rows = self._connection.execute(
            f"SELECT {MEMORY} FROM memories m WHERE m.memory_no IN (SELECT m.memory_no "
            f"FROM memories m WHERE {clause} {order} LIMIT ? OFFSET ?) {order}",
            [*values, limit, offset],
        )
        return [to_memory(row) for row in rows], total

    def turns(
        self, where: Filter, roles: Sequence[str], limit: int, offset: int, *, latest: bool
    ) -> list[Memory]:
        """List turns, oldest first; with `latest`, `offset` counts from the end."""
        return conversation.turns(
            self._connection, where, roles, limit, offset, self._now, latest=latest
        )

    def count_turns(self, where: Filter, roles: Sequence[str]) -> int:
        """Count the turns that match."""
        return conversation.count_turns(self._connection, where, roles, self._now)

    def salient_turns(self, where: Filter, roles: Sequence[str], limit: int) -> list[SaidTurn]:
        """Pick the first turn and the most important turns, in order."""
        return conversation.salient_turns(self._connection, where, roles, limit, self._now)

    def running_summary(self, session_id: str, space: str) -> Memory | None:
        """Fetch the summary of a session, hidden or not."""
        return conversation.running_summary(self._connection, session_id, space)

    def emitted(self, space: str, session_id: str) -> list[str]:
        """Give the texts that a session was lately given and still finds, latest first."""
        return shown_passages.emitted(self._connection, space, session_id, self._now)

    def given_since(self, space: str, session_id: str, since: datetime | None) -> frozenset[int]:
        """Name the chunks that were lately given to this very session, since a moment."""
        at = 0 if since is None else to_micros(since)
        return shown_passages.given_since(self._connection, space, session_id, at)

    def pinned(self, where: Filter) -> list[Memory]:
        """List the pinned memories, in the order in which they were pinned."""
        return conversation.pinned(self._connection, where, self._now)

    def ids(self, where: Filter, untouched_since: datetime | None = None) -> list[str]:
        """List the ids of all memories that match, oldest first."""
        clause, values = where_clause(where, self._now)
        if untouched_since is not None:
            clause += " AND max(m.updated_at, ifnull(m.accessed_at, 0)) < ?"
            values.append(to_micros(untouched_since))
        rows = self._connection.execute(
            f"SELECT m.memory_id FROM memories m WHERE {clause} ORDER BY m.created_at, m.memory_no",
            values,
        )
        return [row[0] for row in rows]

    def history(self, memory_id: str, space: str) -> list[HistoryEntry]:
        """List the events of a memory's life, oldest first; an unknown memory has none."""
        return versions.history(self._connection, memory_id, space)

    def created(self, memory_ids: Sequence[str], space: str) -> dict[str, datetime]:
        """Say when memories were made, including forgotten ones; leave out unknown ids."""
        rows = self._connection.execute(
            "SELECT memory_id, created_at FROM json_each(?) CROSS JOIN memories "
            "ON memory_id = value WHERE space = ? AND version_of IS NULL",
            (json.dumps(list(memory_ids)), space),
        )
        return {memory_id: from_micros(at) for memory_id, at in rows}

    def forgotten_at(self, memory_id: str, space: str) -> datetime | None:
        """Say when a memory was hidden; give `None` for a visible one."""
        at = self._connection.execute(
            "SELECT forgotten_at FROM memories WHERE memory_id = ? AND space = ?",
            (memory_id, space),
        ).get
        return None if at is None else from_micros(at)

    def sessions_of(self, text_ids: Sequence[str], space: str) -> dict[str, str | None]:
        """Name the session of each text, also of a forgotten memory; leave out unknown ids."""
        found = {}
        for text_id in text_ids:
            row = self._connection.execute(
                "SELECT session_id FROM memories WHERE memory_id = ? AND space = ?",
                (self._text_row(text_id, space), space),
            ).fetchone()
            if row is not None:
                found[text_id] = row[0]
        return found

    def sessions(
        self, space: str, agent_id: str | None, limit: int, offset: int
    ) -> tuple[list[Session], int]:
        """List sessions by agent, latest activity first, and count them all."""
        return sessions.list_sessions(self._connection, space, agent_id, limit, offset, self._now)

    def session_stats(self, where: Filter) -> SessionStats:
        """Count the contents of a session, or of all sessions; global memories belong to none."""
        return sessions.stats(self._connection, where, self._now)

    def latest(self, where: Filter, task_code: str | None, limit: int) -> list[Memory]:
        """List memories, latest first; with a task, the memories of that task and of no task."""
        return sessions.latest(self._connection, where, task_code, limit, self._now)

    def copies_of(self, memory_ids: Sequence[str], space: str) -> list[tuple[str, str]]:
        """List the valid copies that memories were promoted to: each copy and its source."""
        return sessions.copies_of(self._connection, memory_ids, space, self._now)

    def model(self) -> Model | None:
        """Name the model whose vectors are ranked."""
        row = self._connection.execute(
            "SELECT name, dimensions FROM models "
            "WHERE name = (SELECT value FROM store WHERE key = 'model')"
        ).get
        return None if row is None else Model(*row)

    def count_scopes(self, space: str) -> tuple[int, int]:
        """Count the spaces of the store, and the sessions of one of them."""
        return self._connection.execute(  # type: ignore[no-any-return]
            "SELECT (SELECT count(DISTINCT space) FROM memories WHERE forgotten_at IS NULL), "
            "(SELECT count(DISTINCT session_id) FROM memories WHERE space = ? "
            "AND forgotten_at IS NULL AND replaced_at IS NULL)",
            (space,),
        ).get
