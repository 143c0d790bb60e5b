"""Read the whole contents of a store as records, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from byheart.contracts import (
    EntityRecord,
    MemoryRecord,
    Model,
    Models,
    Record,
    StoredText,
    TombstoneRecord,
    Window,
)
from byheart.model import HistoryEntry
from byheart.model.times import from_micros
from byheart.startup.late_numpy import np
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.model_rows import SqlModelRows
from byheart.storage.sql.rows import CHUNK, MEMORY, to_chunk, to_memory

_TEXT = f"""
    SELECT m.memory_no, m.since_at, m.superseded_at, m.turn_no, m.feedback, {MEMORY}
    FROM memories m"""
_IS_CURRENT = "m.version_of IS NULL AND (m.space = ?1 OR ?1 IS NULL)"
_CHOSEN = "IN (SELECT value FROM json_each(?2))"
_EARLIER = f"{_TEXT} WHERE m.version_of = ? AND m.space = ? ORDER BY m.version"
_CHUNKS = f"SELECT {CHUNK} FROM chunks c WHERE memory_no = ? ORDER BY chunk_index"
_VECTORS = """
    SELECT chunk_no, name, text_hash, embedding
    FROM chunks JOIN vectors USING (chunk_no) JOIN models USING (model_no)
    WHERE memory_no = ? ORDER BY chunk_no, model_no, window_index"""
_HISTORY = """
    SELECT operation, at, who, version, reason, changes FROM history
    WHERE memory_no = ? ORDER BY history_no"""
_ENTITIES = """
    SELECT space, name, (SELECT json_group_array(name) FROM
        (SELECT name FROM entity_aliases a WHERE a.entity_no = e.entity_no ORDER BY key) AS spelled)
    FROM entities e WHERE (space = ?1 OR ?1 IS NULL)"""
_OF_CHOSEN = f"""
    AND entity_no IN (SELECT entity_no FROM memory_entities JOIN memories m USING (memory_no)
        WHERE m.memory_id {_CHOSEN} OR m.version_of {_CHOSEN})"""
_TOMBSTONES = """
    SELECT space, lower(hex(content_hash)), at FROM tombstones
    WHERE space = ?1 OR ?1 IS NULL ORDER BY space, content_hash"""


class SqlDump:
    """Read everything within one transaction; only the record at hand is in memory."""

    def __init__(
        self,
        connection: Connection,
        space: str | None,
        vectors: bool,
        memory_ids: Sequence[str] | None,
    ) -> None:
        self._connection = connection
        self._space = space
        self._vectors = vectors
        self._is_part = memory_ids is not None
        self._values: tuple[str | None, ...] = (space,)
        self._where = _IS_CURRENT
        if memory_ids is not None:
            self._values = (space, json.dumps(memory_ids))
            self._where += f" AND m.memory_id {_CHOSEN}"
        # An import writes space by space, so the order of rows of different spaces would change.
        self._order = "memory_no" if space is not None else "space, memory_no"

    @property
    def models(self) -> Sequence[Model]:
        """List the models in the order in which the store met them."""
        return [known.model for known in self._known.known]

    @property
    def model(self) -> str | None:
        """Name the model that the store searches with."""
        return self._known.active

    @cached_property
    def _known(self) -> Models:
        return SqlModelRows(self._connection).read()

    @cached_property
    def memory_count(self) -> int:
        """Count the memories."""
        return int(
            self._connection.get(
                f"SELECT count(*) FROM memories m WHERE {self._where}", self._values
            )
        )

    def records(self) -> Iterator[Record]:
        """Give entities, then memories, then tombstones, each space by space.

        Entities come first, so that they keep their order. Tombstones come last, so that they do
        not refuse the same text in another session. Some memories come with the entities that they
        name, and without tombstones.
        """
        tombstones = () if self._is_part else self._tombstones()
        return chain(self._entities(), self._memories(), tombstones)

    def _entities(self) -> Iterator[EntityRecord]:
        statement = f"{_ENTITIES}{_OF_CHOSEN * self._is_part} ORDER BY space, entity_no"
        for space, name, aliases in self._connection.each(statement, self._values):
            yield EntityRecord(str(space), str(name), tuple(json.loads(str(aliases))))

    def _memories(self) -> Iterator[MemoryRecord]:
        rows: Any = self._connection.stream(
            f"{_TEXT} WHERE {self._where} ORDER BY {self._order}", self._values
        )
        for row in rows:
            text = self._text(row)
            memory = text.memory
            earlier: Any = ()
            if memory.version > 1:
                key = (memory.memory_id, memory.space)
                earlier = map(self._text, self._connection.all(_EARLIER, key))
            yield MemoryRecord(text, tuple(earlier), tuple(self._history(row[0])))

    def _text(self, row: Any) -> StoredText:
        memory_no, since_at, superseded_at, turn_no, feedback = row[:5]
        chunk_rows: Any = self._connection.all(_CHUNKS, (memory_no,))
        vectors: dict[int, dict[str, tuple[Window, ...]]] = {each[0]: {} for each in chunk_rows}
        if self._vectors:
            for chunk_no, model, text_hash, embedding in self._vector_rows(memory_no):
                window = Window(text_hash, np.frombuffer(embedding, "<f4"))
                made = vectors[chunk_no]
                made[model] = (*made.get(model, ()), window)
        return StoredText(
            memory=to_memory(row[5:]),
            since_at=from_micros(since_at),
            superseded_at=None if superseded_at is None else from_micros(superseded_at),
            chunks=tuple(to_chunk(each[1:]) for each in chunk_rows),
            vectors=tuple(vectors.values()),
            turn_no=turn_no,
            feedback=feedback,
        )

    def _vector_rows(self, memory_no: int) -> Any:
        return self._connection.each(_VECTORS, (memory_no,))

    def _history(self, memory_no: int) -> Iterator[HistoryEntry]:
        rows: Any = self._connection.each(_HISTORY, (memory_no,))
        for operation, at, who, version, reason, changes in rows:
            yield HistoryEntry(
                operation, from_micros(at), who, version, reason, json.loads(changes)
            )

    def _tombstones(self) -> Iterator[TombstoneRecord]:
        rows: Any = self._connection.each(_TOMBSTONES, (self._space,))
        for space, content_hash, at in rows:
            yield TombstoneRecord(space, content_hash, from_micros(at))
