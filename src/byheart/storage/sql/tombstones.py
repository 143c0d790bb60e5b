"""Keep the hashes of texts that were erased."""

from __future__ import annotations

from collections.abc import Iterable

from byheart.contracts import TextKey, TombstoneRecord
from byheart.model.times import to_micros
from byheart.storage.sql.connection import Connection


class SqlTombstoneRows:
    """Find, add and remove tombstones within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, keys: Iterable[TextKey]) -> set[TextKey]:
        """Find which of the texts have a tombstone."""
        asked = list(keys)
        found = self._connection.get_many(
            "SELECT 1 FROM tombstones WHERE space = ? AND content_hash = ?",
            ((key.space, bytes.fromhex(key.content_hash)) for key in asked),
        )
        return {key for key, there in zip(asked, found, strict=True) if there is not None}

    def add(self, tombstones: Iterable[TombstoneRecord]) -> int:
        """Add tombstones, and count them; an older tombstone of the same text stays."""
        return sum(
            self._connection.count(
                "INSERT INTO tombstones (space, content_hash, at) VALUES (?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (each.space, bytes.fromhex(each.content_hash), to_micros(each.at)),
            )
            for each in tombstones
        )

    def remove(self, keys: Iterable[TextKey]) -> None:
        """Remove the tombstones of texts."""
        self._connection.run_many(
            "DELETE FROM tombstones WHERE space = ? AND content_hash = ?",
            ((key.space, bytes.fromhex(key.content_hash)) for key in keys),
        )
