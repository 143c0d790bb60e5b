"""Read the database for the array index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from byheart.contracts import ActiveModel, Change, ChangedMemories, ChunkText, IndexSource
from byheart.index.columns import MEMORY_TYPES
from byheart.model.fields import FIELDS
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import UNEMBEDDED_TYPES

# One value for each array of the index, in the order of `index/columns.py`.
_OWN_VALUES = {
    "memory_nos": "memory_no",
    "present": "forgotten_at IS NULL",
    "turn": "CASE WHEN role = 'tool' OR kind = 'tool_output' OR client_id = '' THEN NULL "
    "ELSE turn_no END",
}
_VALUES = _OWN_VALUES | {field.array: field.name for field in FIELDS if field.array}
_MEMORIES = f"SELECT {', '.join(_VALUES[name] for name in MEMORY_TYPES)} FROM memories"
_CHUNKS = """
    SELECT chunk_no, memory_no, chunk_index, content, headings, title, summary, derived,
           chunk_type
    FROM chunks JOIN memories USING (memory_no)
    WHERE chunk_no > ? ORDER BY chunk_no LIMIT ?"""
_VECTORS = """
    SELECT vector_no, chunk_no, embedding FROM vectors
    WHERE vector_no > ? AND model_no = ? ORDER BY vector_no LIMIT ?"""


class SqlIndexSource:
    """The queries of the index on one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def store_id(self) -> str:
        """Name the store."""
        return self._get("SELECT value FROM store WHERE key = 'store_id'")  # type: ignore[no-any-return]

    def last_change(self) -> Change:
        """Give the last change that this transaction sees."""
        row = self._get("SELECT change_no, stamp FROM changes ORDER BY change_no DESC LIMIT 1")
        return Change(*(row or (0, 0)))

    def stamp_of(self, change_no: int) -> int | None:
        """Give the stamp of a change, if the log still reaches back to it."""
        return self._get("SELECT stamp FROM changes WHERE change_no = ?", change_no)  # type: ignore[no-any-return]

    def active_model(self) -> ActiveModel | None:
        """Give the model whose vectors are searched."""
        row = self._get(
            "SELECT model_no, dimensions FROM models "
            "WHERE name = (SELECT value FROM store WHERE key = 'model')"
        )
        return None if row is None else ActiveModel(*row)

    def model_switched_since(self, change_no: int) -> bool:
        """Say whether another model was put in use after a change."""
        found = "SELECT 1 FROM changes WHERE change_no > ? AND memory_no = 0 LIMIT 1"
        return self._get(found, change_no) is not None

    def changed_since(self, change_no: int, last_memory_no: int) -> ChangedMemories:
        """Give the memories up to a number that changed after a change."""
        numbers = [
            row[0]
            for row in self._connection.each(
                "SELECT DISTINCT memory_no FROM changes "
                "WHERE change_no > ? AND memory_no BETWEEN 1 AND ? ORDER BY memory_no",
                (change_no, last_memory_no),
            )
        ]
        rows: list[Any] = []
        chunks: list[Any] = []
        for number in numbers:
            row = self._get(f"{_MEMORIES} WHERE memory_no = ?", number)
            if row is not None:
                rows.append(row)
            chunks += self._connection.all(
                "SELECT chunk_no FROM chunks WHERE memory_no = ?", (number,)
            )
        return ChangedMemories(numbers, rows, [row[0] for row in chunks])

    def memories_after(self, memory_no: int) -> Iterator[Sequence[Any]]:
        """Give the rows of memories behind a number, in order."""
        return self._connection.each(
            f"{_MEMORIES} WHERE memory_no > ? ORDER BY memory_no", (memory_no,)
        )

    def chunks_after(self, chunk_no: int, limit: int) -> Sequence[ChunkText]:
        """Give the chunks behind a number, in order."""
        rows: Any = self._connection.each(_CHUNKS, (chunk_no, limit))
        return [ChunkText(*row) for row in rows]

    def vectors_after(
        self, vector_no: int, model_no: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        """Give number, chunk and bytes of a model's vectors behind a number, in order."""
        rows: Any = self._connection.all(_VECTORS, (vector_no, model_no, limit))
        return rows  # type: ignore[no-any-return]

    def last_vector_no(self) -> int:
        """Give the highest number of any vector."""
        return self._get("SELECT max(vector_no) FROM vectors") or 0

    def chunks_without_vectors(self) -> Iterable[int]:
        """Name the chunks that never get vectors."""
        rows = self._connection.each(
            f"SELECT chunk_no FROM chunks WHERE chunk_type IN {UNEMBEDDED_TYPES}"
        )
        return (row[0] for row in rows)

    def _get(self, query: str, *values: Any) -> Any:
        return self._connection.get(query, values)


class SqlIndexedDatabase:
    """The database that an index is derived from."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def writable(self) -> bool:
        """Say whether files may be written beside the database."""
        return self._backend.writable

    @contextmanager
    def snapshot(self) -> Iterator[IndexSource]:
        """Open a snapshot of everything committed so far."""
        with self._backend.reading() as connection:
            yield SqlIndexSource(connection)

    def prepare_publishing(self) -> int:
        """Prepare the folder for a new index file, and give the file mode of that file."""
        return self._backend.prepare_publishing()
