"""Define the rows of entities, which are the subjects of memories."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from byheart.model import Entity


class EntityRow(NamedTuple):
    """An entity of a space, with its name and its aliases."""

    entity_no: int
    name: str
    aliases: tuple[str, ...] = ()


class EntityRows(Protocol):
    """Look up and change entities. A spelling is the name or an alias of one entity, never both."""

    def find(self, name: str, space: str) -> EntityRow | None:
        """Find an entity of a space by any of its spellings."""
        ...

    def add(self, name: str, space: str) -> EntityRow:
        """Find an entity by any of its spellings, or add it without memories.

        A known name takes the longer spelling.
        """
        ...

    def put(self, entity: EntityRow) -> None:
        """Give an entity its name and exactly these aliases."""
        ...

    def absorb(self, entity_no: int, into: int) -> None:
        """Give the memories of one entity to another, and remove the entity with its aliases."""
        ...

    def remove_unnamed(self, name: str, space: str) -> None:
        """Remove the entity of a name, unless a memory names it."""
        ...

    def describe(self, entity_no: int, space: str) -> Entity:
        """Describe an entity with the number of its visible memories."""
        ...
