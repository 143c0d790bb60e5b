"""Reading: one transaction, one view of the index, and the rows that belong to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import apsw

from byheart.contracts import FoundChunk, Ranked, Vectors
from byheart.model import Filter, Heading, IndexState, Memory, Session
from byheart.storage.sqlite import syntax
from byheart.storage.sqlite.filters import memories_among, where_clause
from byheart.storage.sqlite.index.index import Index
from byheart.storage.sqlite.index.view import Selection, View
from byheart.storage.sqlite.rows import FOUND, MEMORY, to_found_chunk, to_headings, to_memory
from byheart.storage.sqlite.times import from_micros, now_micros


class AheadOfSnapshot(Exception):
    """Say that the index has moved past this transaction: begin a new one."""


class SqliteReader:
    """A consistent view of the store, for as long as its transaction lasts."""

    def __init__(self, connection: apsw.Connection, index: Index) -> None:
        self._connection = connection
        self._index = index
        self._now = now_micros()
        self._selections: dict[Filter, Selection] = {}

    @cached_property
    def _view(self) -> View:
        view = self._index.view(self._connection)
        if view is None:
            raise AheadOfSnapshot
        return view

    def attach(self) -> None:
        """Bring the index to this transaction's moment now, while a retry is still possible."""
        _ = self._view

    def _select(self, where: Filter) -> Selection:
        if where not in self._selections:
            among = memories_among(self._connection, where)
            self._selections[where] = self._view.select(where, self._now, among)
        return self._selections[where]

    def rank_by_words(self, terms: Sequence[str], where: Filter, limit: int) -> Ranked:
        """Rank the chunks that have any of the terms by BM25, best first, ties by age."""
        return self._view.rank_by_words(terms, self._select(where), limit)

    def rank_by_vector(self, vector: Vectors, where: Filter, limit: int) -> Ranked:
        """Rank the chunks that have vectors by the cosine of their best window, best first."""
        return self._view.rank_by_vector(vector, self._select(where), limit)

    def rank_by_syntax(self, query: str, where: Filter, limit: int) -> Ranked:
        """Rank the chunks that a raw FTS5 query matches, best first."""
        return syntax.rank(self._connection, query, self._view, self._select(where), limit)

    def similarities(self, vector: Vectors, chunk_nos: Sequence[int]) -> dict[int, float]:
        """Give the cosine of each chunk's best window; chunks without vectors are left out."""
        return self._view.similarities(vector, chunk_nos)

    def weigh_terms(self, terms: Sequence[str], chunk_no: int, where: Filter) -> dict[str, float]:
        """Tell what each term contributed to a chunk's BM25 score."""
        view = self._view
        return view.weigh_terms(terms, view.slot_of(chunk_no), self._select(where))

    def owners(self, chunk_nos: Sequence[int]) -> list[int]:
        """Name the memory of each chunk by its internal number."""
        return self._view.owners(chunk_nos)

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings that each chunk stands under."""
        rows = self._connection.execute(
            "SELECT headings FROM json_each(?) wanted CROSS JOIN chunks ON chunk_no = value "
            "ORDER BY wanted.key",
            (json.dumps(list(chunk_nos)),),
        )
        return [to_headings(row[0]) for row in rows]

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        rows = self._connection.execute(
            f"SELECT {FOUND} FROM json_each(?) wanted CROSS JOIN chunks c ON c.chunk_no = value "
            "CROSS JOIN memories m USING (memory_no) ORDER BY wanted.key",
            (json.dumps(list(chunk_nos)),),
        )
        return [to_found_chunk(row) for row in rows]

    def chunks_of(self, memory_id: str, space: str) -> list[FoundChunk]:
        """Fetch every chunk of a memory in order."""
        rows = self._connection.execute(
            f"SELECT {FOUND} FROM memories m JOIN chunks c USING (memory_no) "
            "WHERE m.memory_id = ? AND m.space = ? AND m.forgotten_at IS NULL ORDER BY chunk_index",
            (memory_id, space),
        )
        return [to_found_chunk(row) for row in rows]

    def memory(self, memory_id: str, space: str) -> Memory | None:
        """Fetch one memory whole."""
        row = self._connection.execute(
            f"SELECT {MEMORY} FROM memories m "
            "WHERE m.memory_id = ? AND m.space = ? AND m.forgotten_at IS NULL",
            (memory_id, space),
        ).get
        return None if row is None else to_memory(row)

    def memories(self, where: Filter, limit: int, offset: int) -> tuple[list[Memory], int]:
        """List memories, latest iteration and latest first, and count all that match."""
        clause, values = where_clause(where, self._now)
        total = self._connection.execute(
            f"SELECT count(*) FROM memories m WHERE {clause}", values
        ).get
        rows = self._connection.execute(
            f"SELECT {MEMORY} FROM memories m WHERE {clause} "
            "ORDER BY m.session_iter DESC NULLS LAST, m.created_at DESC, m.memory_no DESC "
            "LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [to_memory(row) for row in rows], total

    def sessions(
        self, space: str, agent_id: str | None, limit: int, offset: int
    ) -> tuple[list[Session], int]:
        """List sessions by agent, latest activity first, and count them all."""
        clause, values = where_clause(Filter(space=space, agent_id=agent_id), self._now)
        grouped = (
            "SELECT session_id, agent_id, count(*) AS memory_count, max(session_iter), "
            "min(created_at), max(updated_at) AS latest, json_group_array(DISTINCT kind) "
            f"FROM memories m WHERE {clause} AND session_id IS NOT NULL "
            "GROUP BY session_id, agent_id"
        )
        total = self._connection.execute(f"SELECT count(*) FROM ({grouped})", values).get
        rows = self._connection.execute(
            f"{grouped} ORDER BY latest DESC, session_id, agent_id LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [_to_session(row) for row in rows], total

    def state(self, space: str) -> IndexState:
        """Count what a space holds."""
        held = self._view.space(space, self._now)
        model = self._connection.execute("SELECT value FROM store WHERE key = 'model'").get
        return IndexState(held.memory_count, held.selection.total, held.bare_chunks, model)


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
