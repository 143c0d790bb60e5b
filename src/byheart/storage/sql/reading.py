"""Read a store: one transaction, one view of the index, and the rows of that moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar

from byheart.contracts import (
    DedupKey,
    EmittedText,
    FoundChunk,
    Listing,
    MemoryState,
    SaidTurn,
    Section,
    TextKey,
    TextState,
    TextSummary,
)
from byheart.index.array_search import ArraySearch
from byheart.model import (
    Entity,
    Filter,
    Heading,
    HistoryEntry,
    IndexedFile,
    Memory,
    Session,
    SessionStats,
)
from byheart.model.damage import DamagedRow
from byheart.model.ids import parse_text_id
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sql import emissions, entities, listings, memory_counts, sessions
from byheart.storage.sql.archive_rows import SPACE_OF
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.dump import SqlDump
from byheart.storage.sql.history import history as read_history
from byheart.storage.sql.history import row_of
from byheart.storage.sql.memory_rows import SqlMemoryRows
from byheart.storage.sql.rows import (
    FOUND,
    INDEXED_FILE,
    MEMORY,
    headings_json,
    text_list,
    to_found_chunk,
    to_headings,
    to_indexed_file,
    to_memory,
)
from byheart.storage.sql.shared_rows import SharedRows
from byheart.storage.sql.tombstones import SqlTombstoneRows

_Row = TypeVar("_Row")


def _all_of(found: list[_Row], wanted: Sequence[int]) -> list[_Row]:
    """Give the rows found, and fail if one is missing: the index names only existing rows."""
    if len(found) != len(wanted):
        raise DamagedRow(f"{len(wanted) - len(found)} rows that the index names are missing")
    return found


# These step from one name to the next in an index, instead of reading every memory of a store.
_COUNT_SPACES = """
    WITH RECURSIVE found (space) AS (
        SELECT min(space) FROM memories
        UNION ALL
        SELECT (SELECT min(m.space) FROM memories m WHERE m.space > found.space)
        FROM found WHERE found.space IS NOT NULL)
    SELECT count(*) FROM found WHERE found.space IS NOT NULL AND EXISTS (
        SELECT 1 FROM memories m WHERE m.space = found.space AND m.forgotten_at IS NULL)"""
_COUNT_SESSIONS = """
    WITH RECURSIVE found (session_id) AS (
        SELECT min(session_id) FROM memories WHERE space = ?1
        UNION ALL
        SELECT (SELECT min(m.session_id) FROM memories m
                WHERE m.space = ?1 AND m.session_id > found.session_id)
        FROM found WHERE found.session_id IS NOT NULL)
    SELECT count(*) FROM found WHERE found.session_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM memories m WHERE m.space = ?1 AND m.session_id = found.session_id
        AND m.forgotten_at IS NULL AND m.replaced_at IS NULL)"""


class SqlReader(SharedRows):
    """Read a consistent view of the store, for as long as its transaction lasts.

    `attach` gives the index at the moment of the transaction, to be asked at the given time.
    `is_remote` says whether every question is a round trip.
    """

    def __init__(
        self,
        connection: Connection,
        attach: Callable[[int], ArraySearch],
        *,
        is_remote: bool = False,
    ) -> None:
        super().__init__(connection)
        self._attach = attach
        self._is_remote = is_remote
        self._now = now_micros()

    @cached_property
    def index(self) -> ArraySearch:
        """Update the index to the moment of this transaction, and return it."""
        return self._attach(self._now)

    def entities(
        self, space: str, prefix: str | None, limit: int, offset: int
    ) -> tuple[list[Entity], int]:
        """List the entities that memories name now, the most used first, and count them all."""
        return entities.list_entities(self._connection, space, prefix, limit, offset)

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings above each chunk."""
        rows = self._connection.each(
            "SELECT headings FROM json_each(?) wanted "
            "CROSS JOIN chunks ON chunk_no = CAST(value AS BIGINT) ORDER BY wanted.key",
            (json.dumps(list(chunk_nos)),),
        )
        return _all_of([to_headings(row[0]) for row in rows], chunk_nos)

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        rows = self._connection.each(
            f"SELECT {FOUND} FROM json_each(?) wanted CROSS JOIN chunks c "
            "ON c.chunk_no = CAST(value AS BIGINT) "
            "CROSS JOIN memories m USING (memory_no) ORDER BY wanted.key",
            (json.dumps(list(chunk_nos)),),
        )
        return _all_of([to_found_chunk(row) for row in rows], chunk_nos)

    def chunks_of(
        self,
        memory_id: str,
        space: str,
        part: range | None = None,
        under: Section | None = None,
    ) -> list[FoundChunk]:
        """Fetch the chunks of a memory in order: all, those in `part`, or those of a section."""
        condition = ""
        values: list[object] = []
        if part is not None:
            condition, values = " AND chunk_index >= ? AND chunk_index < ?", [part.start, part.stop]
        if under is not None:
            exactly = headings_json(under.headings)
            further = exactly[:-1] + ("," if under.headings else "") if under.below else None
            condition += " AND (headings = ? OR substr(headings, 1, length(?)) = ?)"
            values += [exactly, further, further]
        rows = self._connection.each(
            f"SELECT {FOUND} FROM memories m JOIN chunks c USING (memory_no) "
            f"WHERE m.memory_id = ? AND m.space = ? AND m.forgotten_at IS NULL{condition} "
            "ORDER BY chunk_index",
            (self._text_row(memory_id, space), space, *values),
        )
        return [to_found_chunk(row) for row in rows]

    def find(self, keys: Sequence[DedupKey]) -> dict[DedupKey, MemoryState]:
        """Find the memories that already hold texts, expired or not."""
        rows = SqlMemoryRows(self._connection)
        self.prefetch(*(partial(rows.find, key) for key in keys))
        found = {key: rows.find(key) for key in keys}
        return {key: held for key, held in found.items() if held is not None}

    def tombstoned(self, keys: Iterable[TextKey]) -> set[TextKey]:
        """Find which texts were erased and must not come back unasked."""
        return SqlTombstoneRows(self._connection).find(keys)

    def taken(self, memory_ids: Iterable[str]) -> set[str]:
        """Find which ids are in use, in any space, hidden or not."""
        asked = list(memory_ids)
        found = self._connection.get_many(SPACE_OF, ((each,) for each in asked))
        return {each for each, space in zip(asked, found, strict=True) if space is not None}

    def dump(
        self, space: str | None, *, vectors: bool, memory_ids: Sequence[str] | None = None
    ) -> SqlDump:
        """Give the contents of one space, of all, or of some memories; read while this is open."""
        return SqlDump(self._connection, space, vectors, memory_ids)

    def memory(self, memory_id: str, space: str, *, hidden: bool = False) -> Memory | None:
        """Fetch one memory whole; with `hidden`, even if it is forgotten."""
        visible = "" if hidden else " AND m.forgotten_at IS NULL"
        row = self._connection.get(
            f"SELECT {MEMORY} FROM memories m WHERE m.memory_id = ? AND m.space = ?{visible}",
            (self._text_row(memory_id, space), space),
        )
        return None if row is None else to_memory(row)

    def named(self, client_id: str, session_id: str, space: str) -> Memory | None:
        """Fetch the memory of a session that has a client id, forgotten or not."""
        row = self._connection.get(
            f"SELECT {MEMORY} FROM memories m WHERE m.space = ? AND m.session_id = ? "
            "AND m.client_id = ? AND m.version_of IS NULL",
            (space, session_id, client_id),
        )
        return None if row is None else to_memory(row)

    def memories(self, listing: Listing) -> list[Memory]:
        """Fetch the memories of a listing, in its order."""
        chosen, values, order = self._select(listing)
        rows = self._connection.each(
            f"SELECT {MEMORY} FROM memories m WHERE m.memory_no IN ({chosen}) {order}", values
        )
        return [to_memory(row) for row in rows]

    def ids(self, listing: Listing) -> list[str]:
        """Name the memories of a listing, in its order."""
        chosen, values, order = self._select(listing)
        rows = self._connection.each(
            f"SELECT m.memory_id FROM memories m WHERE m.memory_no IN ({chosen}) {order}", values
        )
        return [row[0] for row in rows]

    def _select(self, listing: Listing) -> tuple[str, list[object], str]:
        # A database server has statistics of its own, and another question would take longer.
        by_labels = not self._is_remote and listings.is_of_few(self._connection, listing)
        return listings.select(listing, self._now, by_labels=by_labels)

    def count(self, listing: Listing) -> int:
        """Count the memories of a listing, whatever its limit."""
        return memory_counts.count(self._connection, listing, self._now)

    def states(self, text_ids: Sequence[str], space: str) -> dict[str, TextState]:
        """Give the states of texts, forgotten or not; leave out unknown ids."""
        names = {self._text_row(text_id, space): text_id for text_id in text_ids}
        rows = self._connection.each(
            "SELECT memory_id, memory_no, created_at, session_id, forgotten_at, version_of IS NULL "
            "FROM json_each(?) CROSS JOIN memories ON memory_id = value WHERE space = ?",
            (text_list(names), space),
        )
        return {
            names[name]: TextState(
                number,
                from_micros(created),
                session_id,
                None if forgotten is None else from_micros(forgotten),
                bool(current),
            )
            for name, number, created, session_id, forgotten, current in rows
        }

    def ids_beginning(
        self, beginnings: Sequence[str], space: str, limit: int
    ) -> dict[str, list[str]]:
        """Name the memories whose ids begin so, forgotten or not: at most `limit` for each."""
        # U+10FFFF follows every other character, so the range is a look-up in the index of ids.
        rows = self._connection.each(
            "SELECT value, (SELECT json_group_array(memory_id) FROM (SELECT memory_id FROM "
            "memories WHERE memory_id >= value AND memory_id < value || ?2 AND space = ?3 "
            "AND version_of IS NULL ORDER BY memory_id LIMIT ?4) AS found) FROM json_each(?1)",
            (text_list(beginnings), "\U0010ffff", space, limit),
        )
        return {beginning: json.loads(found or "[]") for beginning, found in rows}

    def at_path(self, path: str, space: str) -> str | None:
        """Name the memory that a path belongs to, the latest if there are several."""
        return self._connection.get(  # type: ignore[no-any-return]
            "SELECT memory_id FROM memories WHERE space = ? AND path = ? "
            "AND forgotten_at IS NULL AND version_of IS NULL ORDER BY memory_no DESC LIMIT 1",
            (space, path),
        )

    def files_ending(
        self, ending: str, space: str, sessions: Collection[str | None] | None, limit: int
    ) -> dict[str, str]:
        """Find the memories of workspace files whose paths end in the given folders and name.

        With `sessions`, return only memories of these sessions.
        """
        rows: Any = self._connection.each(
            "SELECT m.path, m.memory_id FROM workspace_files f JOIN workspaces w USING "
            "(workspace_no) CROSS JOIN memories m ON m.memory_id = f.memory_id "
            "WHERE w.space = ?1 AND m.space = ?1 AND substr(w.root || '/' || f.path, "
            "length(w.root || '/' || f.path) - length(?2) + 1) = ?2 "
            "AND gone_at IS NULL AND m.forgotten_at IS NULL AND m.version_of IS NULL "
            "AND (EXISTS (SELECT 1 FROM json_each(CAST(?3 AS TEXT)) "
            "WHERE value IS NOT DISTINCT FROM m.session_id) OR ?3 IS NULL) "
            "LIMIT ?4",
            (space, f"/{ending}", None if sessions is None else text_list(sessions), limit),
        )
        return dict(rows)

    def _text_row(self, name: str, space: str) -> str:
        """Name the row with the text of a version: a row carries the last version it had."""
        memory_id, version = parse_text_id(name)
        return name if version is None else row_of(self._connection, memory_id, space, version)

    def token_counts(self, text_ids: Sequence[str], space: str) -> dict[str, int]:
        """Give the numbers of tokens in texts of memories, as counted when they were saved."""
        rows: Any = self._connection.each(
            "SELECT memory_id, (SELECT sum(token_count) FROM chunks c "
            "WHERE c.memory_no = m.memory_no) FROM json_each(?) "
            "CROSS JOIN memories m ON memory_id = value WHERE m.space = ?",
            (text_list(text_ids), space),
        )
        return dict(rows)

    def summaries(self, memory_nos: Sequence[int]) -> list[TextSummary]:
        """Name texts and sum them up, in the order asked."""
        if not memory_nos:
            return []
        rows = self._connection.each(
            "SELECT ifnull(version_of, memory_id), memory_id, summary, role IS NOT NULL, "
            f"{INDEXED_FILE} "
            "FROM json_each(?) wanted CROSS JOIN memories m ON memory_no = CAST(value AS BIGINT) "
            "ORDER BY wanted.key",
            (json.dumps(list(memory_nos)),),
        )
        found = [
            TextSummary(memory_id, text_id, summary, bool(turn), to_indexed_file(file))
            for memory_id, text_id, summary, turn, file in rows
        ]
        return _all_of(found, memory_nos)

    def indexed_files(self, memory_ids: Sequence[str], space: str) -> dict[str, IndexedFile]:
        """Find the files of workspaces that memories were made of, by their ids."""
        rows: Any = self._connection.each(
            f"SELECT m.memory_id, {INDEXED_FILE} FROM json_each(?) "
            "CROSS JOIN memories m ON m.memory_id = value WHERE m.space = ?",
            (text_list(memory_ids), space),
        )
        found = {memory_id: to_indexed_file(file) for memory_id, file in rows}
        return {memory_id: file for memory_id, file in found.items() if file is not None}

    def salient_turns(self, where: Filter, roles: Sequence[str], limit: int) -> list[SaidTurn]:
        """Pick the first turn and the most important turns, in order."""
        return sessions.salient_turns(self._connection, where, roles, limit, self._now)

    def emitted(self, space: str, session_id: str) -> list[EmittedText]:
        """Give the texts that a session was lately given and still finds, latest first."""
        return emissions.emitted(self._connection, space, session_id, self._now)

    def given_since(self, space: str, session_id: str, since: datetime | None) -> frozenset[int]:
        """Name the chunks that were lately given to this very session, since a moment."""
        at = 0 if since is None else to_micros(since)
        return emissions.given_since(self._connection, space, session_id, at)

    def history(self, memory_id: str, space: str) -> list[HistoryEntry]:
        """List the events of a memory's life, oldest first; an unknown memory has none."""
        return read_history(self._connection, memory_id, space)

    def sessions(
        self, space: str, agent_id: str | None, limit: int, offset: int
    ) -> tuple[list[Session], int]:
        """List sessions by agent, latest activity first, and count them all."""
        return sessions.list_sessions(self._connection, space, agent_id, limit, offset, self._now)

    def session_stats(self, where: Filter) -> SessionStats:
        """Count the contents of a session, or of all sessions; global memories belong to none."""
        return sessions.stats(self._connection, where, self._now)

    def copies_of(self, memory_ids: Sequence[str], space: str) -> list[tuple[str, str]]:
        """List the valid copies that memories were promoted to: each copy and its source."""
        return sessions.copies_of(self._connection, memory_ids, space, self._now)

    def count_spaces(self) -> int:
        """Count the spaces of the store that have a visible memory."""
        return int(self._connection.get(_COUNT_SPACES))

    def count_sessions(self, space: str) -> int:
        """Count the sessions of a space."""
        return int(self._connection.get(_COUNT_SESSIONS, (space,)))
