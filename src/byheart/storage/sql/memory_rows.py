"""Look up and change the rows of memories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from byheart.contracts import (
    DedupKey,
    Inserted,
    MemoryChange,
    MemoryState,
    Model,
    NewText,
    Places,
    TextRow,
    Window,
)
from byheart.model import Memory, to_wire
from byheart.model.times import from_micros, to_micros
from byheart.storage.sql import writing
from byheart.storage.sql.changes import record_change
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.model_rows import number_in_use
from byheart.storage.sql.rows import (
    CHUNK,
    IS_NO_SUMMARY,
    MEMORY,
    encode_fields,
    to_chunk,
    to_memory,
)

_HELD = """
    SELECT m.memory_no, m.memory_id, m.space, m.session_id, m.kind, lower(hex(m.content_hash)),
        m.role IS NOT NULL, m.client_id, m.version, m.created_at, m.since_at, m.expires_at,
        m.forgotten_at, CASE WHEN m.forgotten_at IS NOT NULL THEN (
            SELECT who FROM history h WHERE h.memory_no = m.memory_no AND operation = 'forget'
            ORDER BY history_no DESC LIMIT 1) END,
        m.superseded_by, m.superseded_at, m.pinned_at, m.untrusted_at, m.valid_from,
        m.valid_until, m.accessed_at, m.access_count, m.turn_no, m.feedback,
        (SELECT count(*) FROM chunks c WHERE c.memory_no = m.memory_no),
        (SELECT count(*) FROM chunks c JOIN pending_vectors USING (chunk_no)
         WHERE c.memory_no = m.memory_no)
    FROM memories m"""
_SAME_TEXT = """
    WHERE space = ? AND ifnull(session_id, '') = ? AND kind = ? AND content_hash = ?
        AND forgotten_at IS NULL AND replaced_at IS NULL AND role IS NULL AND client_id IS NULL"""
_HIDDEN_LAST = """
    WHERE m.space = ?1 AND m.session_id = ?2 AND m.version_of IS NULL AND m.forgotten_at = (
        SELECT forgotten_at FROM memories JOIN history USING (memory_no)
        WHERE space = ?1 AND session_id = ?2 AND version_of IS NULL AND forgotten_at IS NOT NULL
            AND operation = 'forget' ORDER BY history_no DESC LIMIT 1)
    ORDER BY m.memory_no"""
_SESSION = "FROM memories WHERE space = ? AND session_id = ? AND replaced_at IS NULL"
_TEXT = """
    SELECT m.memory_no, lower(hex(m.content_hash)),
        (SELECT count(*) FROM chunks c WHERE c.memory_no = m.memory_no),
        (SELECT count(*) FROM chunks c JOIN vectors USING (chunk_no)
         WHERE c.memory_no = m.memory_no),
        (SELECT count(*) FROM history h WHERE h.memory_no = m.memory_no)
    FROM memories m"""
_COPY_VECTORS = (
    "INSERT INTO vectors (chunk_no, model_no, window_index, text_hash, embedding) "
    "SELECT ?, model_no, window_index, text_hash, embedding FROM vectors WHERE chunk_no = ?",
    "INSERT INTO pending_vectors (chunk_no) SELECT ? FROM pending_vectors WHERE chunk_no = ?",
)


class SqlMemoryRows:
    """Look up and change the rows of memories within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers: dict[Model, int] = {}

    def find(self, key: DedupKey) -> MemoryState | None:
        """Find the visible memory that holds a text, expired or not."""
        condition, values = _same(key)
        row = self._connection.get(_HELD + condition, values)
        return None if row is None else _to_held(row)

    def named(self, space: str, session_id: str | None, client_id: str) -> list[MemoryState]:
        """Give all memories with a client id, hidden or not, oldest first."""
        condition, values = _same_client_id(space, session_id, client_id)
        rows = self._connection.all(f"{_HELD} {condition} ORDER BY memory_no", values)
        return [_to_held(row) for row in rows]

    def held(self, memory_ids: Iterable[str], space: str) -> list[MemoryState]:
        """Give memories, hidden or not, in the order asked; leave out unknown ids."""
        condition = " WHERE memory_id = ? AND space = ? AND version_of IS NULL"
        values = ((memory_id, space) for memory_id in memory_ids)
        rows = self._connection.get_many(_HELD + condition, values)
        return [_to_held(row) for row in rows if row is not None]

    def texts(self, memory_id: str, space: str) -> list[TextRow]:
        """Give the rows of all texts of a memory, the present one first; none if it is unknown."""
        own, key = " WHERE memory_id = ? AND space = ? AND version_of IS NULL", (memory_id, space)
        present = self._connection.all(_TEXT + own, key)
        if not present:
            return []
        earlier = self._connection.all(f"{_TEXT} WHERE version_of = ? AND space = ?", key)
        return [TextRow(*row) for row in (*present, *earlier)]

    def superseded_by(self, memory_id: str, space: str) -> list[MemoryState]:
        """Give the memories that one memory supersedes."""
        condition = " WHERE superseded_by = ? AND space = ? AND version_of IS NULL"
        return [
            _to_held(row) for row in self._connection.all(_HELD + condition, (memory_id, space))
        ]

    def hidden_last(self, session_id: str, space: str) -> list[MemoryState]:
        """Give the memories of a session that were hidden last, all at one moment."""
        return [
            _to_held(row) for row in self._connection.all(_HELD + _HIDDEN_LAST, (space, session_id))
        ]

    def memory(self, memory_no: int) -> Memory:
        """Give the whole memory of a row."""
        row = self._connection.get(
            f"SELECT {MEMORY} FROM memories m WHERE m.memory_no = ?", (memory_no,)
        )
        return to_memory(row)

    def places(self, space: str, session_id: str, at: datetime | None) -> Places:
        """Give the last place of a session, and the places before and after a moment."""
        get, session = self._connection.get, (space, session_id)
        if at is None:
            return Places(get(f"SELECT max(turn_no) {_SESSION}", session), None, None)
        # Begin at the end: most turns are later than all others. A plain `created_at` would make
        # SQLite read and sort the whole session. The running summary is left out: it is made
        # automatically, at a time that is unrelated to the turns.
        before = get(
            f"SELECT turn_no {_SESSION} AND created_at + 0 <= ? AND {IS_NO_SUMMARY} "
            "ORDER BY turn_no DESC LIMIT 1",
            (*session, to_micros(at)),
        )
        behind = ("", ()) if before is None else ("AND turn_no > ?", (before,))
        after = get(f"SELECT min(turn_no) {_SESSION} {behind[0]}", (*session, *behind[1]))
        return Places(None, before, after)

    def space_out(self, space: str, session_id: str, step: int) -> None:
        """Number the places of a session again, a step apart, in the same order."""
        self._connection.run(
            "UPDATE memories SET turn_no = ordered.place FROM (SELECT memory_id AS name, "
            "?3 * row_number() OVER (ORDER BY turn_no, memory_no) AS place FROM memories "
            "WHERE space = ?1 AND session_id = ?2 AND replaced_at IS NULL) AS ordered "
            "WHERE space = ?1 AND session_id = ?2 AND ordered.name = ifnull(version_of, memory_id)",
            (space, session_id, step),
        )
        rows = self._connection.all(
            "SELECT memory_no FROM memories WHERE space = ? AND session_id = ?", (space, session_id)
        )
        record_change(self._connection, [row[0] for row in rows])

    def prefetch_insert(self, memory: Memory, chunks: int, model: Model | None) -> None:
        """Ask ahead for what `insert` has to know about a memory of so many chunks."""
        connection = self._connection
        connection.expect_chunks(chunks)
        connection.prefetch(
            lambda: self._number_of(model),
            lambda: writing.entity_numbers(connection, memory.space, memory.entities),
        )

    def insert(self, text: NewText, model: Model | None) -> Inserted:
        """Insert a text with its chunks, keywords, vectors, tags and entities."""
        model_no = self._number_of(model)
        return writing.insert_text(self._connection, text, model_no)

    def _number_of(self, model: Model | None) -> int | None:
        """Give the number of a model if it is the one in use; look it up once."""
        if model is None:
            return None
        known = self._numbers.get(model)
        if known is None:
            known = number_in_use(self._connection, model)
            if known is not None:  # a model that comes into use stays in use in this transaction
                self._numbers[model] = known
        return known

    def change(self, changes: Sequence[MemoryChange]) -> None:
        """Set fields, replace labels and add events."""
        for change in changes:
            texts = [change.memory_no]
            if change.every_text:
                texts += self._earlier(change.memory_no)
            if change.fields:
                self._set(texts, encode_fields(change.fields))
            if change.labels is not None:
                writing.replace_labels(self._connection, change.memory_no, change.labels)
            if change.event is not None:
                self._record(change)
            if change.indexed:
                record_change(self._connection, texts)

    def _earlier(self, memory_no: int) -> list[int]:
        rows = self._connection.all(
            "SELECT e.memory_no FROM memories m JOIN memories e ON e.version_of = m.memory_id "
            "AND e.space = m.space WHERE m.memory_no = ?",
            (memory_no,),
        )
        return [row[0] for row in rows]

    def _set(self, memory_nos: Sequence[int], columns: dict[str, Any]) -> None:
        self._connection.run_many(
            f"UPDATE memories SET {', '.join(f'{name} = ?' for name in columns)} "
            "WHERE memory_no = ?",
            ((*columns.values(), memory_no) for memory_no in memory_nos),
        )

    def _record(self, change: MemoryChange) -> None:
        event = change.event
        assert event is not None
        self._connection.run(
            "INSERT INTO history (memory_no, operation, at, who, reason, changes, version) "
            "SELECT ?1, ?2, ?3, ?4, ?5, ?6, version FROM memories WHERE memory_no = ?1",
            (
                change.memory_no,
                event.operation,
                to_micros(event.at),
                event.who,
                event.reason,
                json.dumps(to_wire(event.changes), ensure_ascii=False, sort_keys=True),
            ),
        )

    def rewrite_chunks(
        self,
        memory_no: int,
        memory: Memory,
        windows: Sequence[Sequence[Window]] | None,
        model: Model | None,
    ) -> None:
        """Write the chunks of a memory again, under its title and summary, which have changed."""
        connection = self._connection
        model_no = self._number_of(model)
        rows = connection.all(
            f"SELECT {CHUNK}, ifnull(c.checksum, -1) FROM chunks c WHERE memory_no = ? "
            "ORDER BY chunk_index",
            (memory_no,),
        )
        connection.run(
            "UPDATE chunks SET chunk_index = -1 - chunk_index WHERE memory_no = ?", (memory_no,)
        )
        for at, row in enumerate(rows):
            chunk = to_chunk(row[1:10])
            # A damaged passage must not look sound because it was written again.
            chunk_no = writing.insert_chunk(connection, memory_no, chunk, checksum=row[10])
            writing.insert_words(connection, chunk_no, chunk, memory.title, memory.summary)
            if windows is not None:
                writing.embed_chunk(connection, chunk_no, chunk, model_no, windows[at])
            else:
                for statement in _COPY_VECTORS:
                    connection.run(statement, (chunk_no, row[0]))
            writing.remove_chunk(connection, row[0])

    def move_history(self, memory_no: int, to: int) -> None:
        """Give the history of one row to another."""
        self._connection.run(
            "UPDATE history SET memory_no = ? WHERE memory_no = ?", (to, memory_no)
        )

    def remove_text(self, memory_no: int, *, every_text: bool = False) -> None:
        """Remove a row with all that belongs to it; with `every_text`, the earlier rows as well."""
        for each in (memory_no, *(self._earlier(memory_no) if every_text else ())):
            writing.remove(self._connection, each)


def _same(key: DedupKey) -> tuple[str, tuple[object, ...]]:
    if key.client_id is not None:
        # Without a session, a hidden memory may have the client id of a visible one.
        condition, values = _same_client_id(key.space, key.session_id, key.client_id)
        return f" {condition} ORDER BY forgotten_at IS NOT NULL, memory_no LIMIT 1", values
    values = (key.space, key.session_id or "", key.kind, bytes.fromhex(key.content_hash))
    # The same words said twice are two turns.
    return _SAME_TEXT + (" AND 1 = 0" if key.is_turn else ""), values


def _same_client_id(
    space: str, session_id: str | None, client_id: str
) -> tuple[str, tuple[object, ...]]:
    """Give the condition for a client id: it names a memory even if that is hidden or expired."""
    session = "session_id IS NULL" if session_id is None else "session_id = ?"
    values = (space, client_id) if session_id is None else (space, client_id, session_id)
    return f"WHERE space = ? AND client_id = ? AND version_of IS NULL AND {session}", values


def _to_held(row: Any) -> MemoryState:
    number, memory_id, space, session_id, kind, content_hash, is_turn, client_id = row[:8]
    version, created, since, expires, forgotten, hidden_by = row[8:14]
    superseded_by, superseded, pinned, untrusted, begins, ends, accessed, *rest = row[14:]
    return MemoryState(
        number,
        memory_id,
        DedupKey(space, session_id, kind, content_hash, bool(is_turn), client_id),
        version,
        from_micros(created),
        from_micros(since),
        _moment(expires),
        _moment(forgotten),
        hidden_by,
        superseded_by,
        _moment(superseded),
        _moment(pinned),
        _moment(untrusted),
        _moment(begins),
        _moment(ends),
        _moment(accessed),
        *rest,
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
