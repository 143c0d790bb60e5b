"""Define the rows that an import writes and an erasure leaves: whole records, and tombstones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from byheart.contracts.records import StoredText, TextKey, TombstoneRecord
from byheart.model import HistoryEntry


class LostLink(NamedTuple):
    """A memory, by the row of its text, that is superseded by an id its space does not have."""

    memory_no: int
    superseded_by: str


class TombstoneRows(Protocol):
    """Record which texts were erased; a space has at most one tombstone for a text."""

    def find(self, keys: Iterable[TextKey]) -> set[TextKey]:
        """Find which of the texts have a tombstone."""
        ...

    def add(self, tombstones: Iterable[TombstoneRecord]) -> int:
        """Add tombstones, and count them; an older tombstone of the same text stays."""
        ...

    def remove(self, keys: Iterable[TextKey]) -> None:
        """Remove the tombstones of texts."""
        ...


class ArchiveRows(Protocol):
    """Write memories as another store had them."""

    def space_of(self, memory_id: str) -> str | None:
        """Name the space that uses an id, for a hidden memory too.

        `None` means that no space which this transaction sees uses it.
        """
        ...

    def has_place(self, space: str, session_id: str, turn_no: int) -> bool:
        """Say whether a memory of a session has this place."""
        ...

    def insert(self, text: StoredText, turn_no: int | None) -> int:
        """Insert a text as it was, with the vectors of known models, and give its number.

        Its chunks wait for vectors of the active model if it brings none. The known models are
        those that the store had when the first text was inserted in this transaction.
        """
        ...

    def add_history(self, memory_no: int, entries: Iterable[HistoryEntry]) -> None:
        """Add entries to the history of a memory, each with the version that it has."""
        ...

    def lost_links(self, space: str) -> list[LostLink]:
        """List the memories that are superseded by an id which their space does not have."""
        ...
