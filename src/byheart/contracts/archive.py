"""Define the rows that an import writes and an erasure leaves: whole records, and tombstones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from byheart.contracts.embedders import Model
from byheart.contracts.records import EntityRecord, StoredText, TextKey, TombstoneRecord
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
    """Write memories, entities and models as another store had them."""

    def space_of(self, memory_id: str) -> str | None:
        """Name the space that uses an id, for a hidden memory too; `None` if the id is free."""
        ...

    def has_place(self, space: str, session_id: str, turn_no: int) -> bool:
        """Say whether a memory of a session has this place."""
        ...

    def insert(self, text: StoredText, turn_no: int | None) -> int:
        """Insert a text as it was, with the vectors of known models, and give its number.

        Its chunks wait for vectors of the active model if it brings none.
        """
        ...

    def add_history(self, memory_no: int, entries: Iterable[HistoryEntry]) -> None:
        """Add entries to the history of a memory, each with the version that it has."""
        ...

    def lost_links(self) -> list[LostLink]:
        """List the memories that are superseded by an id which their space does not have."""
        ...

    def spellings(self, space: str, names: Iterable[str]) -> set[str]:
        """Find which names are a name or an alias of an entity here; give them case-folded."""
        ...

    def add_entity(self, entity: EntityRecord) -> None:
        """Add an entity with aliases; a name that is known adds the aliases to its entity."""
        ...

    def remove_unnamed(self, entities: Iterable[EntityRecord]) -> None:
        """Remove those of the entities that no memory names."""
        ...

    def active_model(self) -> str | None:
        """Name the model that the store searches with."""
        ...

    def add_models(self, models: Sequence[Model], active: str | None) -> None:
        """Record models, and which of them the store searches with; `None` leaves that as it is."""
        ...
