"""Decide how entities are renamed and merged.

A spelling is either the name or an alias of one entity, never both: saving, searching and renaming
under any spelling refer to the same entity.
"""

from __future__ import annotations

from collections.abc import Sequence

from byheart.contracts import EntityRow, EntityRows, Storage, one_transaction
from byheart.errors import Conflict, Do, Hint, NotFound
from byheart.model import Entity
from byheart.model.spellings import spelling_key


def with_name(entity: EntityRow, new_name: str) -> EntityRow:
    """Give an entity another name; the old name stays as an alias, unless it is a spelling."""
    key = spelling_key(new_name)
    spellings = (*entity.aliases, entity.name)
    aliases = tuple(each for each in spellings if spelling_key(each) != key)
    return EntityRow(entity.entity_no, new_name, aliases)


def rename(entity: EntityRow, other: EntityRow | None, new_name: str, asked: str) -> EntityRow:
    """Give an entity another name, unless `other` already has it; `asked` is how it was called."""
    if other is not None and other.entity_no != entity.entity_no:
        raise Conflict(
            f"{new_name} is another entity already; nothing was changed",
            Hint("make one of the two: ", Do("entities.merge", asked, into=new_name)),
        )
    return with_name(entity, new_name)


def merge(
    sources: Sequence[EntityRow], target: EntityRow | None, into: str
) -> tuple[EntityRow, list[int]]:
    """Merge entities into one; their names stay as aliases. Give the numbers of those absorbed.

    Without a `target`, the first source takes the new name, which no entity has yet.
    """
    if target is None:
        target = with_name(sources[0], into)
    elif target in sources:
        target = with_name(target, into)
    # The caller may have named the same entity twice, by two of its spellings.
    others = {each.entity_no: each for each in sources if each.entity_no != target.entity_no}
    spellings = [spelling for each in others.values() for spelling in (*each.aliases, each.name)]
    return target._replace(aliases=(*target.aliases, *spellings)), list(others)


@one_transaction
def rename_stored(storage: Storage, name: str, new_name: str, space: str) -> Entity:
    """Rename an entity of a store in one transaction."""
    with storage.writing(space) as writer:
        rows = writer.entities
        entity = _require(rows, name, space)
        rows.put(rename(entity, rows.find(new_name, space), new_name, name))
        return rows.describe(entity.entity_no, space)


@one_transaction
def merge_stored(storage: Storage, names: Sequence[str], into: str, space: str) -> Entity:
    """Merge entities of a store in one transaction."""
    with storage.writing(space) as writer:
        rows = writer.entities
        sources = [_require(rows, name, space) for name in names]
        target, absorbed = merge(sources, rows.find(into, space), into)
        for entity_no in absorbed:
            rows.absorb(entity_no, target.entity_no)
        rows.put(target)
        return rows.describe(target.entity_no, space)


def _require(rows: EntityRows, name: str, space: str) -> EntityRow:
    entity = rows.find(name, space)
    if entity is None:
        raise NotFound(
            f"there is no entity {name} in this space",
            Hint("look for it with: ", Do("entities.list")),
        )
    return entity
