"""Store entities: the subjects of memories, each with one name and any number of aliases.

No function here crosses the space boundary.
"""

from __future__ import annotations

import json
from typing import Any

from byheart.contracts import EntityRow
from byheart.model import Entity, Filter
from byheart.model.spellings import spelling_key
from byheart.model.times import from_micros, now_micros
from byheart.storage.sql import writing
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.filters import where_clause

_ALIASES = """(SELECT json_group_array(name) FROM
    (SELECT name FROM entity_aliases a WHERE a.entity_no = e.entity_no ORDER BY key) AS spelled)"""
_BEGINS = """(substr(e.key, 1, length(?)) = ? OR EXISTS (
    SELECT 1 FROM entity_aliases a
    WHERE a.entity_no = e.entity_no AND substr(a.key, 1, length(?)) = ?))"""


def list_entities(
    connection: Connection, space: str, prefix: str | None, limit: int, offset: int
) -> tuple[list[Entity], int]:
    """List the entities that memories name now, the most used first, and count them all."""
    live, values = where_clause(Filter(space=space), now_micros())
    begins = ""
    if prefix:
        begins = f"AND {_BEGINS}"
        values = [*values, *[spelling_key(prefix)] * 4]
    # Begin with the entities: most stores have many memories that name no entity.
    rows: list[Any] = connection.all(
        f"SELECT e.name, count(*) AS memories, min(m.created_at), max(m.updated_at), {_ALIASES}, "
        "count(*) OVER () FROM entities e CROSS JOIN memory_entities me USING (entity_no) "
        f"CROSS JOIN memories m USING (memory_no) WHERE e.space = ? AND {live} {begins} "
        "GROUP BY e.entity_no, e.name, e.key ORDER BY memories DESC, e.key LIMIT ? OFFSET ?",
        [space, *values, limit, offset],
    )
    if rows or not offset:
        return [_to_entity(row[:-1]) for row in rows], rows[0][-1] if rows else 0
    # After the last page there is no row with the total count.
    return [], list_entities(connection, space, prefix, 1, 0)[1]


class SqlEntityRows:
    """Look up and change entities within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, name: str, space: str) -> EntityRow | None:
        """Find an entity of a space by any of its spellings."""
        row = self._connection.get(
            f"SELECT entity_no, name, {_ALIASES} FROM entities e WHERE entity_no IN ("
            "SELECT entity_no FROM entities WHERE space = ?1 AND key = ?2 UNION "
            "SELECT entity_no FROM entity_aliases WHERE space = ?1 AND key = ?2)",
            (space, spelling_key(name)),
        )
        return None if row is None else EntityRow(row[0], row[1], tuple(json.loads(row[2])))

    def add(self, name: str, space: str) -> EntityRow:
        """Find an entity by any of its spellings, or add it without memories."""
        [number] = writing.entity_numbers(self._connection, space, [name])
        row = self._connection.get(
            f"SELECT name, {_ALIASES} FROM entities e WHERE entity_no = ?", (number,)
        )
        return EntityRow(number, row[0], tuple(json.loads(row[1])))

    def put(self, entity: EntityRow) -> None:
        """Give an entity its name and exactly these aliases."""
        number = entity.entity_no
        self._connection.run("DELETE FROM entity_aliases WHERE entity_no = ?", (number,))
        self._connection.run(
            "UPDATE entities SET key = ?, name = ? WHERE entity_no = ?",
            (spelling_key(entity.name), entity.name, number),
        )
        self._connection.run_many(
            "INSERT INTO entity_aliases (space, key, name, entity_no) "
            "SELECT space, ?, ?, entity_no FROM entities WHERE entity_no = ?",
            ((spelling_key(alias), alias, number) for alias in entity.aliases),
        )

    def absorb(self, entity_no: int, into: int) -> None:
        """Give the memories of one entity to another, and remove the entity with its aliases."""
        self._connection.run(
            "INSERT INTO memory_entities (entity_no, memory_no) "
            "SELECT CAST(? AS BIGINT), memory_no FROM memory_entities WHERE entity_no = ? "
            "ON CONFLICT DO NOTHING",
            (into, entity_no),
        )
        self._connection.run("DELETE FROM entities WHERE entity_no = ?", (entity_no,))

    def remove_unnamed(self, name: str, space: str) -> None:
        """Remove the entity of a name, unless a memory names it."""
        self._connection.run(
            "DELETE FROM entities WHERE space = ? AND key = ? AND NOT EXISTS "
            "(SELECT 1 FROM memory_entities m WHERE m.entity_no = entities.entity_no)",
            (space, spelling_key(name)),
        )

    def describe(self, entity_no: int, space: str) -> Entity:
        """Describe an entity with the number of its visible memories."""
        live, values = where_clause(Filter(space=space), now_micros())
        return _to_entity(
            self._connection.get(
                "SELECT e.name, count(m.memory_no), min(m.created_at), max(m.updated_at), "
                f"{_ALIASES} FROM entities e LEFT JOIN memory_entities me USING (entity_no) "
                f"LEFT JOIN memories m ON m.memory_no = me.memory_no AND {live} "
                "WHERE e.entity_no = ? GROUP BY e.entity_no, e.name",
                [*values, entity_no],
            )
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
