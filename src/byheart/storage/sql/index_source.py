"""Read the database for the array index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from byheart.contracts import ActiveModel, Change, ChangedMemories, ChunkText, IndexSource, Lookup
from byheart.index.columns import MEMORY_TYPES
from byheart.model.fields import FIELDS
from byheart.model.memories import is_message
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.model_rows import NAME_IN_USE
from byheart.storage.sql.rows import UNEMBEDDED_TYPES

# One value for each array of the index, in the order of `index/columns.py`.
_OWN_VALUES = {
    "memory_nos": "memory_no",
    "present": "forgotten_at IS NULL",
    "turn": "turn_no",
}
_VALUES = _OWN_VALUES | {field.array: field.name for field in FIELDS if field.array}
assert list(MEMORY_TYPES)[-1] == "turn"
_NUMBER_AT = list(MEMORY_TYPES).index("memory_nos")
_PAGE = 2000
# The last four values decide together whether the memory has a place among the turns: `_to_row`.
_MEMORIES = (
    f"SELECT {', '.join(_VALUES[name] for name in MEMORY_TYPES)}, role, kind, client_id "
    "FROM memories"
)
_CHUNKS = """
    SELECT chunk_no, memory_no, chunk_index, content, headings, title, summary, derived,
           chunk_type
    FROM chunks JOIN memories USING (memory_no)
    WHERE chunk_no > ? AND chunk_no <= ? ORDER BY chunk_no LIMIT ?"""
_LISTED = "IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
_VECTORS = """
    SELECT vector_no, chunk_no, embedding FROM vectors
    WHERE vector_no > ? AND vector_no <= ? AND model_no = ? ORDER BY vector_no LIMIT ?"""


class SqlIndexSource:
    """The queries of the index on one transaction, about the space of that transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = connection.numbers[-1]
        self._before = connection.numbers.start - 1

    def prefetch(self, *calls: Lookup) -> None:
        """Send the first question of each call, without waiting for the answer."""
        self._connection.prefetch(*calls)

    def store_id(self) -> str:
        """Name the store."""
        return self._get("SELECT value FROM store WHERE key = 'store_id'")  # type: ignore[no-any-return]

    def last_change(self) -> Change:
        """Give the last change that this transaction sees."""
        row = self._get(
            "SELECT change_no, stamp FROM changes WHERE change_no > ? AND change_no <= ? "
            "ORDER BY change_no DESC LIMIT 1",
            self._before,
            self._last,
        )
        return Change(*(row or (0, 0)))

    def stamp_of(self, change_no: int) -> int | None:
        """Give the stamp of a change, if the log still reaches back to it."""
        return self._get("SELECT stamp FROM changes WHERE change_no = ?", change_no)  # type: ignore[no-any-return]

    def active_model(self) -> ActiveModel | None:
        """Give the model whose vectors are searched."""
        row = self._get(f"SELECT model_no, dimensions FROM models WHERE name = {NAME_IN_USE}")
        return None if row is None else ActiveModel(*row)

    def model_switched_since(self, change_no: int) -> bool:
        """Say whether another model was put in use after a change."""
        found = (
            "SELECT 1 FROM changes WHERE change_no > ? AND change_no <= ? AND memory_no = 0 LIMIT 1"
        )
        return self._get(found, self._after(change_no), self._last) is not None

    def changed_since(self, change_no: int, last_memory_no: int) -> ChangedMemories:
        """Give the memories up to a number that changed after a change."""
        numbers = [
            row[0]
            for row in self._connection.each(
                "SELECT DISTINCT memory_no FROM changes WHERE change_no > ? AND change_no <= ? "
                "AND memory_no BETWEEN 1 AND ? ORDER BY memory_no",
                (self._after(change_no), self._last, last_memory_no),
            )
        ]
        if not numbers:
            return ChangedMemories((), (), ())
        listed = (json.dumps(numbers),)
        rows = self._connection.each(
            f"{_MEMORIES} WHERE memory_no {_LISTED} ORDER BY memory_no", listed
        )
        chunks = self._connection.all(
            f"SELECT chunk_no FROM chunks WHERE memory_no {_LISTED}", listed
        )
        return ChangedMemories(numbers, [*map(_to_row, rows)], [row[0] for row in chunks])

    def memories_after(self, memory_no: int) -> Iterator[Sequence[Any]]:
        """Give the rows of memories behind a number, in order."""
        while True:
            values = (self._after(memory_no), self._last, _PAGE)
            rows: Any = self._connection.all(
                f"{_MEMORIES} WHERE memory_no > ? AND memory_no <= ? ORDER BY memory_no LIMIT ?",
                values,
            )
            yield from map(_to_row, rows)
            if len(rows) < _PAGE:
                break
            memory_no = rows[-1][_NUMBER_AT]

    def chunks_after(self, chunk_no: int, limit: int) -> Sequence[ChunkText]:
        """Give the chunks behind a number, in order."""
        rows: Any = self._connection.each(_CHUNKS, (self._after(chunk_no), self._last, limit))
        return [ChunkText(*row) for row in rows]

    def vectors_after(
        self, vector_no: int, model_no: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        """Give number, chunk and bytes of a model's vectors behind a number, in order."""
        values = (self._after(vector_no), self._last, model_no, limit)
        rows: Any = self._connection.all(_VECTORS, values)
        return rows  # type: ignore[no-any-return]

    def last_vector_no(self) -> int:
        """Give the highest number of any vector."""
        last = "SELECT max(vector_no) FROM vectors WHERE vector_no > ? AND vector_no <= ?"
        return self._get(last, self._before, self._last) or 0

    def chunks_without_vectors(self) -> Iterable[int]:
        """Name the chunks that never get vectors."""
        rows = self._connection.each(
            f"SELECT chunk_no FROM chunks WHERE chunk_no > ? AND chunk_no <= ? "
            f"AND chunk_type IN {UNEMBEDDED_TYPES}",
            (self._before, self._last),
        )
        return (row[0] for row in rows)

    def _after(self, number: int) -> int:
        return max(number, self._before)

    def _get(self, query: str, *values: Any) -> Any:
        return self._connection.get(query, values)


def _to_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give the values of the arrays; only a message has a place among the turns."""
    turn_no, role, kind, client_id = row[-4:]
    said = turn_no is not None and is_message(role, kind, client_id)
    return *row[:-4], turn_no if said else None


class SqlIndexedDatabase:
    """The database that the index of a space, or of the whole store, is derived from."""

    def __init__(self, backend: Backend, space: str | None) -> None:
        self._backend = backend
        self._space = space

    @property
    def writable(self) -> bool:
        """Say whether files may be written beside the database."""
        return self._backend.writable

    @contextmanager
    def snapshot(self) -> Iterator[IndexSource]:
        """Open a snapshot of everything committed so far."""
        with self._backend.reading(self._space) as connection:
            yield SqlIndexSource(connection)

    def prepare_publishing(self) -> int:
        """Prepare the folder for a new index file, and give the file mode of that file."""
        return self._backend.prepare_publishing()
