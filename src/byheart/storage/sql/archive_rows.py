"""Write memories as another store had them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from byheart.contracts import LostLink, StoredText, Window
from byheart.model import UNEMBEDDED, HistoryEntry, text_id, to_wire
from byheart.model.times import to_micros
from byheart.storage.sql import writing
from byheart.storage.sql.changes import record_change
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.model_rows import NAME_IN_USE
from byheart.storage.sql.rows import columns_of, life_of

SPACE_OF = "SELECT space FROM memories WHERE memory_id = ?"
_HAS_PLACE = """
    SELECT 1 FROM memories
    WHERE space = ? AND session_id = ? AND replaced_at IS NULL AND turn_no = ?"""
_LOST_LINKS = """
    SELECT memory_no, superseded_by FROM memories m WHERE space = ? AND superseded_by IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM memories t
            WHERE t.memory_id = m.superseded_by AND t.space = m.space)"""


class _KnownModel(NamedTuple):
    model_no: int
    dimensions: int
    is_active: bool


class SqlArchiveRows:
    """Write records within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def space_of(self, memory_id: str) -> str | None:
        """Name the space that uses an id; `None` if no space of this transaction does."""
        return self._connection.get(SPACE_OF, (memory_id,))  # type: ignore[no-any-return]

    def has_place(self, space: str, session_id: str, turn_no: int) -> bool:
        """Say whether a memory of a session has this place."""
        return self._connection.get(_HAS_PLACE, (space, session_id, turn_no)) is not None

    def insert(self, text: StoredText, turn_no: int | None) -> int:
        """Insert a text as it was, with the vectors of known models, and give its number."""
        connection, memory = self._connection, text.memory
        memory_no = writing.insert_row(connection, {**_columns(text), "turn_no": turn_no})
        for chunk, vectors in zip(text.chunks, text.vectors, strict=True):
            chunk_no = writing.insert_chunk(connection, memory_no, chunk)
            writing.insert_words(connection, chunk_no, chunk, memory.title, memory.summary)
            embedded = self._insert_vectors(chunk_no, vectors)
            if not embedded and chunk.chunk_type not in UNEMBEDDED:
                connection.run("INSERT INTO pending_vectors (chunk_no) VALUES (?)", (chunk_no,))
        writing.insert_labels(connection, memory_no, memory)
        record_change(connection, [memory_no])
        return memory_no

    def _insert_vectors(self, chunk_no: int, vectors: Mapping[str, Sequence[Window]]) -> bool:
        """Write the vectors of known models; say whether the active model is among them."""
        complete = False
        for name, windows in vectors.items():
            model = self._models.get(name)
            if model is not None and _fits(windows, model.dimensions):
                made = writing.insert_vectors(self._connection, chunk_no, model.model_no, windows)
                complete = complete or (made and bool(model.is_active))
        return complete

    @cached_property
    def _models(self) -> dict[str, _KnownModel]:
        rows = self._connection.each(
            f"SELECT name, model_no, dimensions, name = {NAME_IN_USE} FROM models"
        )
        return {name: _KnownModel(*rest) for name, *rest in rows}

    def add_history(self, memory_no: int, entries: Iterable[HistoryEntry]) -> None:
        """Add entries to the history of a memory, each with the version that it has."""
        self._connection.run_many(
            "INSERT INTO history (memory_no, operation, at, who, version, reason, changes) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((memory_no, *_history_columns(entry)) for entry in entries),
        )

    def lost_links(self, space: str) -> list[LostLink]:
        """List the memories that are superseded by an id which their space does not have."""
        return [LostLink(*row) for row in self._connection.all(_LOST_LINKS, (space,))]


def _fits(windows: Sequence[Window], dimensions: int) -> bool:
    return all(each.vector is not None and each.vector.size == dimensions for each in windows)


def _columns(text: StoredText) -> dict[str, Any]:
    memory = text.memory
    earlier = memory.replaced_at is not None
    return {
        **columns_of(memory, memory.derived),
        **life_of(text),
        "memory_id": text_id(memory.memory_id, memory.version if earlier else None),
        "version_of": memory.memory_id if earlier else None,
    }


def _history_columns(entry: HistoryEntry) -> tuple[Any, ...]:
    changes = json.dumps(to_wire(entry.changes), ensure_ascii=False, sort_keys=True)
    return entry.operation, to_micros(entry.at), entry.who, entry.version, entry.reason, changes
