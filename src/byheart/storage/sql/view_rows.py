"""Read lists without texts, earlier texts, and counts over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from byheart.contracts import ChangeMark, DayCount, NamedField, TimeSpan
from byheart.model import Brief, ChangedMemory, Filter, Lane, TextVersion
from byheart.model.memories import Operation
from byheart.model.times import from_micros, now_micros
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.filters import where_clause
from byheart.storage.sql.rows import CONTENT, read_fields, select_fields, text_list

_BRIEF_NAMES = tuple(each.name for each in fields(Brief))
_DAY_MICROS = 86_400_000_000
# Integer division rounds towards zero, also before 1970.
_DAY = (
    f"(m.created_at + ?) / {_DAY_MICROS} "
    f"- CASE WHEN (m.created_at + ?) % {_DAY_MICROS} < 0 THEN 1 ELSE 0 END"
)
# An update of a text makes a row for the earlier text, whose number may be higher than the mark's.
_CHANGED = """
    SELECT m.memory_id, m.session_id, m.kind,
        (SELECT h.operation FROM history h WHERE h.memory_no = m.memory_no
         ORDER BY h.history_no DESC LIMIT 1),
        m.memory_no > ?4 AND NOT EXISTS (
            SELECT 1 FROM memories e
            WHERE e.version_of = m.memory_id AND e.space = m.space AND e.memory_no <= ?4)
    FROM (SELECT memory_no, max(change_no) AS latest FROM changes
          WHERE change_no > ?1 AND change_no <= ?2 GROUP BY memory_no) AS changed
    JOIN memories m ON m.memory_no = changed.memory_no
    WHERE m.space = ?3 AND m.version_of IS NULL
    ORDER BY changed.latest DESC LIMIT ?5"""
_TEXTS = "FROM memories m WHERE m.space = ?1 AND (m.memory_id = ?2 OR m.version_of = ?2)"


class SqlViewRows:
    """Read what people look at within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def briefs(self, memory_ids: Sequence[str], space: str) -> list[Brief]:
        """Fetch memories in brief, in the order asked, forgotten ones too; skip unknown ids."""
        rows = self._connection.each(
            f"SELECT {select_fields(_BRIEF_NAMES)} FROM json_each(?) wanted "
            "CROSS JOIN memories m ON m.memory_id = wanted.value "
            "WHERE m.space = ? AND m.version_of IS NULL ORDER BY wanted.key",
            (text_list(memory_ids), space),
        )
        return [Brief(*read_fields(_BRIEF_NAMES, row)) for row in rows]

    def versions(
        self, memory_id: str, space: str, limit: int, offset: int
    ) -> tuple[list[TextVersion], int]:
        """Fetch the texts of a memory, the current one first, and count them all."""
        total = int(self._connection.get(f"SELECT count(*) {_TEXTS}", (space, memory_id)))
        rows: Any = self._connection.each(
            f"SELECT m.version, m.title, {CONTENT}, m.since_at, m.replaced_at {_TEXTS} "
            "ORDER BY m.version DESC LIMIT ?3 OFFSET ?4",
            (space, memory_id, limit, offset),
        )
        found = [
            TextVersion(
                version,
                title,
                content,
                from_micros(since),
                None if replaced is None else from_micros(replaced),
            )
            for version, title, content, since, replaced in rows
        ]
        return found, total

    def days(self, where: Filter, offset_micros: int) -> list[DayCount]:
        """Count the memories of each day and kind; a day begins `offset_micros` before UTC."""
        clause, values = where_clause(where, now_micros())
        rows: Any = self._connection.each(
            f"SELECT {_DAY} AS day, m.kind, count(*) FROM memories m WHERE {clause} "
            "GROUP BY day, m.kind ORDER BY day, m.kind",
            [offset_micros, offset_micros, *values],
        )
        return [DayCount(int(day), kind, number) for day, kind, number in rows]

    def languages(self, where: Filter) -> dict[str, int]:
        """Count the memories in each language."""
        clause, values = where_clause(where, now_micros())
        rows: Any = self._connection.each(
            f"SELECT m.language, count(*) FROM memories m WHERE {clause} GROUP BY m.language",
            values,
        )
        return {tag: int(number) for tag, number in rows}

    def span(self, where: Filter) -> TimeSpan:
        """Give the moments of the first and the last memory."""
        clause, values = where_clause(where, now_micros())
        row: Any = self._connection.get(
            f"SELECT min(m.created_at), max(m.created_at) FROM memories m WHERE {clause}", values
        )
        first, last = row
        if first is None:
            return TimeSpan(None, None)
        return TimeSpan(from_micros(first), from_micros(last))

    def lanes(self, where: Filter, limit: int, offset: int) -> tuple[list[Lane], int]:
        """List the sessions with memories, the latest first, and count them all."""
        clause, values = where_clause(where, now_micros())
        own = f"FROM memories m WHERE {clause} AND m.session_id IS NOT NULL"
        total = self._connection.get(f"SELECT count(DISTINCT m.session_id) {own}", values)
        rows: Any = self._connection.each(
            "SELECT m.session_id, json_group_array(DISTINCT m.agent_id), count(*), count(m.role), "
            f"min(m.created_at), max(m.created_at) AS latest {own} GROUP BY m.session_id "
            "ORDER BY latest DESC, m.session_id LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [_to_lane(row) for row in rows], int(total)

    def names(
        self, field: NamedField, where: Filter, prefix: str, limit: int
    ) -> tuple[list[str], int]:
        """List the values of a field that begin with a prefix, the latest first; count them all."""
        clause, values = where_clause(where, now_micros())
        name = "t.tag" if field == "tag" else f"m.{field}"
        tags = "JOIN tags t ON t.memory_no = m.memory_no " if field == "tag" else ""
        own = f"FROM memories m {tags}WHERE {clause} AND substr({name}, 1, length(?)) = ?"
        values = [*values, prefix, prefix]
        total = self._connection.get(f"SELECT count(DISTINCT {name}) {own}", values)
        rows: Any = self._connection.each(
            f"SELECT {name}, max(m.created_at) AS latest {own} GROUP BY {name} "
            f"ORDER BY latest DESC, {name} LIMIT ?",
            [*values, limit],
        )
        return [value for value, _ in rows], int(total)

    def mark(self) -> ChangeMark:
        """Give the mark of this moment, in the space of this view."""
        numbers = self._connection.numbers
        between = (numbers.start - 1, numbers[-1])
        last_change, last_memory = (
            self._connection.get(
                f"SELECT max({name}) FROM {table} WHERE {name} > ? AND {name} <= ?", between
            )
            for table, name in (("changes", "change_no"), ("memories", "memory_no"))
        )
        return ChangeMark(last_change or 0, last_memory or 0)

    def changed_since(self, mark: ChangeMark, space: str, limit: int) -> list[ChangedMemory]:
        """List memories that changed after a mark and still exist, the latest change first."""
        numbers = self._connection.numbers
        first = max(mark.change_no, numbers.start - 1)
        rows: Any = self._connection.each(
            _CHANGED, (first, numbers[-1], space, mark.memory_no, limit)
        )
        return [
            ChangedMemory(memory_id, _operation(last, is_new), session_id, kind)
            for memory_id, session_id, kind, last, is_new in rows
        ]


def _operation(last: Operation | None, is_new: bool) -> Operation:
    if is_new:
        return "create"
    return "update" if last in (None, "create") else last


def _to_lane(row: tuple[Any, ...]) -> Lane:
    session_id, agents, memories, turns, first, last = row
    named = tuple(sorted(filter(None, json.loads(agents))))
    return Lane(session_id, named, memories, turns, from_micros(first), from_micros(last))
