"""Check that a PostgreSQL store is whole: its rows, its indexes, and its doctor."""

from __future__ import annotations

import psycopg

from byheart.storage.postgres.address import Address
from byheart.store import MemoryStore

_MISSING = "SELECT count(*) FROM {} WHERE {} NOT IN (SELECT {} FROM {})"
_RELATIONS = {
    f"{table}.{column} in {home}.{key}": _MISSING.format(table, column, key, home)
    for table, column, key, home in (
        ("chunks", "memory_no", "memory_no", "memories"),
        ("memories", "memory_no", "memory_no", "chunks"),
        ("chunk_words", "chunk_no", "chunk_no", "chunks"),
        ("chunks", "chunk_no", "chunk_no", "chunk_words"),
        ("vectors", "chunk_no", "chunk_no", "chunks"),
        ("pending_vectors", "chunk_no", "chunk_no", "chunks"),
        ("tags", "memory_no", "memory_no", "memories"),
        ("memory_entities", "memory_no", "memory_no", "memories"),
        ("history", "memory_no", "memory_no", "memories"),
        ("memories", "memory_no", "memory_no", "changes"),
        ("memories", "space", "name", "spaces"),
    )
} | {
    "memories without a history": (
        "SELECT count(*) FROM memories WHERE version_of IS NULL "
        "AND memory_no NOT IN (SELECT memory_no FROM history)"
    ),
    "both a vector and none": (
        "SELECT count(*) FROM pending_vectors JOIN vectors USING (chunk_no)"
    ),
    "rows of another space": (
        "SELECT count(*) FROM memories JOIN spaces ON name = space "
        "WHERE memory_no >> 36 <> space_no OR memories.part <> spaces.part"
    ),
}


def check_rows(address: Address) -> None:
    """Fail if a row belongs to nothing."""
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(f"SET search_path = {address.schema}".encode())
        for name, statement in _RELATIONS.items():
            assert connection.execute(statement.encode()).fetchone() == (0,), name


def check_whole(store: MemoryStore, address: Address) -> None:
    """Fail if rows are missing, or if the doctor finds anything wrong."""
    check_rows(address)
    wrong = [each for each in store.admin.doctor() if not each.ok]
    assert not wrong, wrong
