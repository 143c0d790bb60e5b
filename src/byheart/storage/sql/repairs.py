"""Repair rows: derive keywords, queue and history again from texts, metadata and vectors.

Every repair goes to each part of the store in turn.
"""

from __future__ import annotations

import json
from typing import Any

from byheart.storage.sql import writing
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.model_rows import NAME_IN_USE
from byheart.storage.sql.rows import CHUNK, UNEMBEDDED_TYPES, to_chunk

_BATCH = 2000
_TEXTS = (
    f"SELECT {CHUNK}, m.title, m.summary FROM chunks c JOIN memories m ON m.memory_no = c.memory_no"
)
_UNEMBEDDED = f"""
    SELECT chunk_no FROM chunks WHERE chunk_type NOT IN {UNEMBEDDED_TYPES}
    EXCEPT SELECT chunk_no FROM vectors JOIN models USING (model_no) WHERE name = {NAME_IN_USE}"""
_UNUSED_ENTITIES = "SELECT entity_no FROM entities EXCEPT SELECT entity_no FROM memory_entities"
_WITHOUT_HISTORY = """
    SELECT memory_no FROM memories WHERE version_of IS NULL
    EXCEPT SELECT memory_no FROM history"""


def insert_all_words(connection: Connection) -> None:
    """Insert the keyword entries of all chunks of a transaction, which has none yet."""
    last = connection.numbers.start - 1
    while rows := connection.all(
        f"{_TEXTS} WHERE c.chunk_no > ? AND c.chunk_no <= ? ORDER BY c.chunk_no LIMIT {_BATCH}",
        (last, connection.numbers[-1]),
    ):
        _insert_words(connection, rows)
        last = rows[-1][0]


def add_missing_words(connection: Connection, missing: str) -> None:
    """Add the keyword entries of the chunks that a query names."""
    for _ in connection.parts():
        numbers = [row[0] for row in connection.all(missing)]
        for start in range(0, len(numbers), _BATCH):
            listed = (json.dumps(numbers[start : start + _BATCH]),)
            rows = connection.all(
                f"{_TEXTS} WHERE c.chunk_no IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
                listed,
            )
            _insert_words(connection, rows)


def _insert_words(connection: Connection, rows: list[Any]) -> None:
    for row in rows:
        writing.insert_words(connection, row[0], to_chunk(row[1:10]), row[10], row[11])


def rebuild_pending(connection: Connection) -> None:
    """Queue exactly the chunks that lack vectors of the store's model."""
    for _ in connection.parts():
        connection.run("DELETE FROM pending_vectors")
        connection.run(f"INSERT INTO pending_vectors (chunk_no) {_UNEMBEDDED}")


def drop_ill_sized_vectors(connection: Connection) -> None:
    """Remove vectors whose length differs from their model's; they are made again later."""
    for _ in connection.parts():
        connection.run(
            "DELETE FROM vectors WHERE (chunk_no, model_no) IN "
            "(SELECT chunk_no, model_no FROM vectors JOIN models USING (model_no) "
            " WHERE length(embedding) != 4 * dimensions)"
        )
    rebuild_pending(connection)


def drop_unused_entities(connection: Connection) -> None:
    """Remove entities that no memory names."""
    for _ in connection.parts():
        connection.run(f"DELETE FROM entities WHERE entity_no IN ({_UNUSED_ENTITIES})")


def begin_history(connection: Connection) -> None:
    """Add the first event to the history of memories that lack it."""
    for _ in connection.parts():
        connection.run(
            "INSERT INTO history (memory_no, operation, at, who) "
            "SELECT memory_no, 'create', created_at, ifnull(agent_id, source) FROM memories "
            f"WHERE memory_no IN ({_WITHOUT_HISTORY})"
        )
