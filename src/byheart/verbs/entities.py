"""Define the verbs about the entities that memories name: `store.entities`."""

from __future__ import annotations

from collections.abc import Sequence

from byheart.errors import InvalidInput
from byheart.memory import entities
from byheart.model import Entity, EntityPage
from byheart.model import checks as check
from byheart.system.forks import RefusedInChild
from byheart.verbs.engine import Engine

Text = str | None


class EntityVerbs(RefusedInChild):
    """List, rename and merge entities."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(
        self, prefix: Text = None, limit: int = 100, offset: int = 0, space: Text = None
    ) -> EntityPage:
        """List the entities that memories name, the most used first."""
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        begins = check.check_optional_label("prefix", prefix)
        where = self._engine.space(space)
        with self._engine.storage.reading(where) as reader:
            found, total = reader.entities(where, begins, limit, offset)
        return EntityPage(tuple(found), total, offset + len(found) < total)

    def rename(self, name: str, new_name: str, space: Text = None) -> Entity:
        """Rename an entity; the old spelling stays an alias."""
        return entities.rename_stored(
            self._engine.storage,
            check.check_label("name", name),
            check.check_label("new_name", new_name),
            self._engine.space(space),
        )

    def merge(self, names: str | Sequence[str], into: str, space: Text = None) -> Entity:
        """Merge several entities into one; the old spellings stay aliases."""
        given = check.check_labels("names", [names] if isinstance(names, str) else names)
        if not given:
            raise InvalidInput("names are missing", "name the entities to be merged")
        target = check.check_label("into", into)
        return entities.merge_stored(self._engine.storage, given, target, self._engine.space(space))
