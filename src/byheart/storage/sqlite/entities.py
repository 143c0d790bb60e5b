"""Store entities: the subjects of memories, each with one name and any number of aliases.

A spelling is either the name or an alias of one entity, never both: saving, searching and renaming
under any spelling refer to the same entity. No function here crosses the space boundary.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from byheart.errors import Conflict, Do, Hint, NotFound
from byheart.model import Entity, Filter
from byheart.model.times import from_micros, now_micros
from byheart.storage.sqlite.filters import where_clause

_ALIASES = """(SELECT json_group_array(name) FROM
    (SELECT name FROM entity_aliases a WHERE a.entity_no = e.entity_no ORDER BY key))"""
_BEGINS = """(substr(e.key, 1, length(?)) = ? OR EXISTS (
    SELECT 1 FROM entity_aliases a
    WHERE a.entity_no = e.entity_no AND substr(a.key, 1, length(?)) = ?))"""


class _Named(NamedTuple):
    """An entity as it is stored."""

    entity_no: int
    key: str
    name: str


def list_entities(
    connection: apsw.Connection, space: str, prefix: str | None, limit: int, offset: int
) -> tuple[list[Entity], int]:
    """List the entities that memories name now, the most used first, and count them all."""
    live, values = where_clause(Filter(space=space), now_micros())
    begins = ""
    if prefix:
        begins = f"AND {_BEGINS}"
        values = [*values, *[prefix.casefold()] * 4]
    # Begin with the entities: most stores have many memories that name no entity.
    rows: list[Any] = connection.execute(
        f"SELECT e.name, count(*) AS memories, min(m.created_at), max(m.updated_at), {_ALIASES}, "
        "count(*) OVER () FROM entities e CROSS JOIN memory_entities me USING (entity_no) "
        f"CROSS JOIN memories m USING (memory_no) WHERE e.space = ? AND {live} {begins} "
        "GROUP BY e.entity_no ORDER BY memories DESC, e.key LIMIT ? OFFSET ?",
        [space, *values, limit, offset],
    ).fetchall()
    if rows or not offset:
        return [_to_entity(row[:-1]) for row in rows], rows[0][-1] if rows else 0
    # After the last page there is no row with the total count.
    return [], list_entities(connection, space, prefix, 1, 0)[1]


def rename(connection: apsw.Connection, name: str, new_name: str, space: str) -> Entity:
    """Give an entity another name; the old name stays as an alias."""
    entity = _require(connection, name, space)
    other = _find(connection, new_name, space)
    if other is not None and other.entity_no != entity.entity_no:
        raise Conflict(
            f"{new_name} is another entity already; nothing was changed",
            Hint("make one of the two: ", Do("merge_entities", name, into=new_name)),
        )
    _set_name(connection, entity, new_name, space)
    return _describe(connection, entity.entity_no, space)


def merge(connection: apsw.Connection, names: Sequence[str], into: str, space: str) -> Entity:
    """Merge several entities into one; the other names stay as aliases."""
    sources = [_require(connection, name, space) for name in names]
    target = _find(connection, into, space)
    if target is None:
        # The first entity takes the new name, which no entity has yet.
        target = sources[0]
        _set_name(connection, target, into, space)
    elif target in sources:
        _set_name(connection, target, into, space)
    for source in sources:
        # The caller may have named the same entity twice, by two of its spellings.
        if source.entity_no != target.entity_no and _exists(connection, source.entity_no):
            _absorb(connection, source, target.entity_no, space)
    return _describe(connection, target.entity_no, space)


def _absorb(connection: apsw.Connection, source: _Named, target_no: int, space: str) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO memory_entities (entity_no, memory_no) "
        "SELECT ?, memory_no FROM memory_entities WHERE entity_no = ?",
        (target_no, source.entity_no),
    )
    connection.execute(
        "UPDATE entity_aliases SET entity_no = ? WHERE entity_no = ?",
        (target_no, source.entity_no),
    )
    connection.execute("DELETE FROM entities WHERE entity_no = ?", (source.entity_no,))
    _add_alias(connection, source, target_no, space)


def _set_name(connection: apsw.Connection, entity: _Named, new_name: str, space: str) -> None:
    key = new_name.casefold()
    connection.execute("DELETE FROM entity_aliases WHERE space = ? AND key = ?", (space, key))
    connection.execute(
        "UPDATE entities SET key = ?, name = ? WHERE entity_no = ?",
        (key, new_name, entity.entity_no),
    )
    if key != entity.key:
        _add_alias(connection, entity, entity.entity_no, space)


def _add_alias(connection: apsw.Connection, old: _Named, entity_no: int, space: str) -> None:
    connection.execute(
        "INSERT INTO entity_aliases (space, key, name, entity_no) VALUES (?, ?, ?, ?)",
        (space, old.key, old.name, entity_no),
    )


def _find(connection: apsw.Connection, name: str, space: str) -> _Named | None:
    row = connection.execute(
        "SELECT entity_no, key, name FROM entities WHERE entity_no IN ("
        "SELECT entity_no FROM entities WHERE space = ?1 AND key = ?2 UNION "
        "SELECT entity_no FROM entity_aliases WHERE space = ?1 AND key = ?2)",
        (space, name.casefold()),
    ).get
    return None if row is None else _Named(*row)


def _require(connection: apsw.Connection, name: str, space: str) -> _Named:
    entity = _find(connection, name, space)
    if entity is None:
        raise NotFound(
            f"there is no entity {name} in this space", Hint("look for it with: ", Do("entities"))
        )
    return entity


def _exists(connection: apsw.Connection, entity_no: int) -> bool:
    return bool(connection.execute("SELECT 1 FROM entities WHERE entity_no = ?", (entity_no,)).get)


def _describe(connection: apsw.Connection, entity_no: int, space: str) -> Entity:
    live, values = where_clause(Filter(space=space), now_micros())
    return _to_entity(
        connection.execute(
            "SELECT e.name, count(m.memory_no), min(m.created_at), max(m.updated_at), "
            f"{_ALIASES} FROM entities e LEFT JOIN memory_entities me USING (entity_no) "
            f"LEFT JOIN memories m ON m.memory_no = me.memory_no AND {live} "
            "WHERE e.entity_no = ?",
            [*values, entity_no],
        ).get
    )


def _to_entity(row: Any) -> Entity:
    name, memories, first, last, aliases = row
    return Entity(
        name,
        memories,
        None if first is None else from_micros(first),
        None if last is None else from_micros(last),
        tuple(json.loads(aliases)),
    )
