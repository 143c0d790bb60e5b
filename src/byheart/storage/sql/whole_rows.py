"""Read and write whole rows, as a copy of a store needs them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from byheart.contracts.copies import COPY_MARK, OF_MEMORIES, OF_SPACE, OF_STORE, TableRows
from byheart.storage.sql import writing
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import to_chunk
from byheart.storage.sql.store_values import SET_VALUE

# These numbers carry the space of their row; all other numbers are the same in every database.
_WITHIN_SPACE = ("memory_no", "chunk_no", "vector_no")
_LISTED = "IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
_BY_CHUNK = f"FROM chunks c CROSS JOIN %s t ON t.chunk_no = c.chunk_no WHERE c.memory_no {_LISTED}"
_SOURCES = {
    "vectors": "FROM chunks c CROSS JOIN vectors t ON t.chunk_no = c.chunk_no "
    f"JOIN models ON models.model_no = t.model_no WHERE c.memory_no {_LISTED}",
    "pending_vectors": _BY_CHUNK % "pending_vectors",
    "emitted": _BY_CHUNK % "emitted",
    "workspace_files": "FROM workspaces w JOIN workspace_files t "
    "ON t.workspace_no = w.workspace_no WHERE w.space = ?",
    # The time that has passed, by which expired memories are erased.
    "store": "FROM store t WHERE t.key = 'time_passed'",
    "tokens": "FROM tokens t",
}
# A model has another number in each store, so its name stands in for it.
_SPELLED = {"model_no": "models.name"}
_MODEL_NO = "(SELECT model_no FROM models WHERE name = ?)"
_SPACES = " UNION ".join(
    f"SELECT space FROM {table}"
    for table in (
        "memories",
        "entities",
        "tombstones",
        "workspaces",
        "bookmarks",
        "receipts",
        "kept_items",
    )
)


class SqlWholeRows:
    """Read and write whole rows within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def store_id(self) -> str:
        """Name the store."""
        return str(self._value("store_id"))

    def mark(self) -> str | None:
        """Give the mark that a copy left in this store."""
        return self._value(COPY_MARK)

    def now_micros(self) -> int:
        """Give the time of the store's clock, in microseconds."""
        return self._connection.now_micros()

    def _value(self, key: str) -> str | None:
        value: str | None = self._connection.get("SELECT value FROM store WHERE key = ?", (key,))
        return value

    def spaces(self) -> list[str]:
        """List the spaces that have any rows, in order."""
        return sorted(row[0] for row in self._connection.each(_SPACES))

    def numbers(self, space: str) -> list[int]:
        """List the numbers of all texts of a space, earlier and forgotten ones too, in order."""
        first = self._first()
        rows = self._connection.each("SELECT memory_no FROM memories WHERE space = ?", (space,))
        return sorted(row[0] - first for row in rows)

    def of_memories(self, numbers: Sequence[int]) -> TableRows:
        """Give the rows of texts, and of all that belongs to them."""
        first = self._first()
        listed = json.dumps([first + each for each in numbers])
        return {table: self._read(table, (listed,)) for table in OF_MEMORIES}

    def of_space(self, space: str) -> TableRows:
        """Give the rows of a space that belong to no memory."""
        return {table: self._read(table, (space,)) for table in OF_SPACE}

    def of_store(self) -> TableRows:
        """Give the rows that belong to no space, except for the models."""
        return {table: self._read(table, ()) for table in OF_STORE}

    def changed_by_others(self, stamp: int) -> bool:
        """Say whether the log has changes with another stamp than that of a copy."""
        found = self._connection.get("SELECT 1 FROM changes WHERE stamp <> ? LIMIT 1", (stamp,))
        return found is not None

    def _first(self) -> int:
        return self._connection.numbers.start

    def _read(self, table: str, values: tuple[object, ...]) -> Sequence[tuple[object, ...]]:
        columns = _columns(table)
        spelled = ", ".join(_SPELLED.get(each, f"t.{each}") for each in columns)
        where = f"t.memory_no {_LISTED}" if table in OF_MEMORIES else "t.space = ?"
        source = _SOURCES.get(table, f"FROM {table} t WHERE {where}")
        rows = self._connection.each(f"SELECT {spelled} {source}", values)
        first = self._first() if table in OF_MEMORIES else 0
        # Sorted here: two databases may not agree on the order of texts.
        return sorted(_moved(columns, rows, -first))

    def set_mark(self, mark: str) -> None:
        """Set the mark of a copy."""
        self._connection.run(SET_VALUE, (COPY_MARK, mark))

    def add_memories(self, rows: TableRows, stamp: int) -> None:
        """Add texts with all that belongs to them; log the changes with the stamp of the copy."""
        first = self._first()
        self._skip_numbers(rows)
        for table, columns in OF_MEMORIES.items():
            self._insert(table, _moved(columns, rows[table], first))
            if table == "chunks":
                self._insert_words(rows)
        self._log([first + _number(each) for each in rows["memories"]], stamp)

    def _insert_words(self, rows: TableRows) -> None:
        first = self._first()
        texts = {_number(row): row for row in rows["memories"]}
        columns = OF_MEMORIES["memories"]
        title, summary = columns.index("title"), columns.index("summary")
        for row in rows["chunks"]:
            number, memory_no, *values = row
            text: Any = texts[_number((memory_no,))]
            words = writing.word_columns(to_chunk(values[:-1]), text[title], text[summary])
            self._connection.insert_words(first + _number((number,)), words)

    def remove_memories(self, numbers: Sequence[int], stamp: int) -> None:
        """Remove texts with all that belongs to them, except for their entities."""
        chosen = [self._first() + each for each in numbers]
        listed = (json.dumps(chosen),)
        chunks = self._connection.all(
            f"SELECT chunk_no FROM chunks WHERE memory_no {_LISTED}", listed
        )
        self._connection.remove_words([row[0] for row in chunks])
        self._connection.run(f"DELETE FROM memories WHERE memory_no {_LISTED}", listed)
        self._log(chosen, stamp)

    def replace_space(self, space: str, rows: TableRows) -> None:
        """Replace the rows of a space that belong to no memory."""
        # The rows of aliases go with their entities, those of files with their workspaces, and
        # the names of memories with their receipts.
        for table in (
            "entities",
            "tombstones",
            "workspaces",
            "bookmarks",
            "receipts",
            "kept_items",
        ):
            self._connection.run(f"DELETE FROM {table} WHERE space = ?", (space,))
        self._skip_numbers(rows)
        for table in OF_SPACE:
            self._insert(table, rows[table])

    def replace_store(self, rows: TableRows) -> None:
        """Replace the rows that belong to no space, except for the models."""
        self._connection.run("DELETE FROM tokens")
        self._insert("tokens", rows["tokens"])
        for row in rows["store"]:
            self._connection.run(SET_VALUE, row)

    def renew_id(self) -> None:
        """Give the store another id, so that every index of it is built anew."""
        self._connection.run(SET_VALUE, ("store_id", uuid.uuid4().hex))

    def _skip_numbers(self, rows: TableRows) -> None:
        """Keep the numbers of rows that are about to be inserted from being given again."""
        numbers = [
            int(row[at])  # type: ignore[call-overload]
            for table in rows
            for at, column in enumerate(_columns(table))
            if column.endswith("_no") and column not in ("turn_no", "model_no")
            for row in rows[table]
        ]
        self._connection.skip_numbers(max(numbers, default=0))

    def _insert(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        columns = _columns(table)
        marks = ", ".join(_MODEL_NO if each == "model_no" else "?" for each in columns)
        self._connection.run_many(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows
        )

    def _log(self, memory_nos: Sequence[int], stamp: int) -> None:
        self._connection.run_many(
            "INSERT INTO changes (memory_no, stamp) VALUES (?, ?)",
            ((each, stamp) for each in memory_nos),
        )


def _columns(table: str) -> tuple[str, ...]:
    return OF_MEMORIES.get(table) or OF_SPACE.get(table) or OF_STORE[table]


def _number(row: Sequence[object]) -> int:
    number = row[0]
    assert isinstance(number, int), f"{number!r} is no number of a row"
    return number


def _moved(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], by: int
) -> Iterable[tuple[object, ...]]:
    """Add to the numbers that carry a space, and give truth values as such."""
    places = [at for at, column in enumerate(columns) if column in _WITHIN_SPACE]
    truths = [at for at, column in enumerate(columns) if column == "may_pass"]
    for row in rows:
        values = list(row)
        for at in places:
            values[at] += by
        for at in truths:
            values[at] = bool(values[at])
        yield tuple(values)
