"""Read the rows that a review looks at, and record its decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from byheart.contracts import ReviewedText, TextStamp
from byheart.model import Filter
from byheart.model.times import now_micros, to_micros
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.filters import where_clause
from byheart.storage.sql.rows import read_fields, select_fields

# The number of the row comes first and is no field of a memory.
_COMPARED = ReviewedText._fields[1:]
_MOST_AT_A_TIME = 500


class SqlReviewRows:
    """Read texts for a review, and record decisions, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def stamps(self, where: Filter) -> list[TextStamp]:
        """Name the rows of all texts that satisfy a filter, in the order of their numbers."""
        clause, values = where_clause(where, now_micros())
        rows: Any = self._connection.each(
            "SELECT m.memory_no, m.version, m.kind, m.role IS NOT NULL FROM memories m "
            f"WHERE {clause} ORDER BY m.memory_no",
            values,
        )
        return [
            TextStamp(number, version, kind, bool(turn)) for number, version, kind, turn in rows
        ]

    def texts(self, memory_nos: Sequence[int]) -> list[ReviewedText]:
        """Fetch texts by the numbers of their rows, in that order; leave out unknown ones."""
        found = []
        for at in range(0, len(memory_nos), _MOST_AT_A_TIME):
            rows: Any = self._connection.each(
                f"SELECT m.memory_no, {select_fields(_COMPARED)} FROM json_each(?) wanted "
                "CROSS JOIN memories m ON m.memory_no = CAST(wanted.value AS BIGINT) "
                "ORDER BY wanted.key",
                (json.dumps(list(memory_nos[at : at + _MOST_AT_A_TIME])),),
            )
            found += [ReviewedText(row[0], *read_fields(_COMPARED, row[1:])) for row in rows]
        return found

    def kept(self, space: str) -> set[str]:
        """Name the items of a space that somebody decided to keep."""
        rows = self._connection.each(
            "SELECT DISTINCT item_id FROM kept_items WHERE space = ?", (space,)
        )
        return {row[0] for row in rows}

    def keep(
        self, space: str, item_id: str, memory_ids: Sequence[str], at: datetime, who: str
    ) -> bool:
        """Record that an item is kept as it is; say whether this is new."""
        if self._is_kept(space, item_id):
            return False
        self._connection.run_many(
            "INSERT INTO kept_items (space, item_id, memory_id, at, who) VALUES (?, ?, ?, ?, ?)",
            ((space, item_id, each, to_micros(at), who) for each in memory_ids),
        )
        return True

    def unkeep(self, space: str, item_id: str) -> bool:
        """Remove the decision about an item; say whether there was one."""
        if not self._is_kept(space, item_id):
            return False
        self._connection.run(
            "DELETE FROM kept_items WHERE space = ? AND item_id = ?", (space, item_id)
        )
        return True

    def _is_kept(self, space: str, item_id: str) -> bool:
        found = self._connection.get(
            "SELECT 1 FROM kept_items WHERE space = ? AND item_id = ? LIMIT 1", (space, item_id)
        )
        return found is not None


def remove_of_memory(connection: Connection, memory_no: int) -> None:
    """Remove the decisions that are about a memory."""
    connection.run(
        "DELETE FROM kept_items WHERE item_id IN (SELECT item_id FROM kept_items "
        "WHERE memory_id = (SELECT ifnull(version_of, memory_id) FROM memories "
        "WHERE memory_no = ?))",
        (memory_no,),
    )
