"""Look up memories that may be erased, and store the time that has passed."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

from byheart.contracts import Cause, Lapsed, ServerClocks, TimePassed
from byheart.model.times import to_micros
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.store_values import SET_VALUE

_KEY = "time_passed"
_LAPSED = "SELECT m.memory_no, m.memory_id, m.space FROM memories m WHERE"


class SqlExpiryRows:
    """Look up memories that may be erased within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def server_clocks(self) -> ServerClocks | None:
        """Give the clocks of the server; `None` where the machine itself keeps the store."""
        return self._connection.server_clocks()

    def time_passed(self) -> TimePassed | None:
        """Give the time that was recorded last."""
        written = self._connection.get("SELECT value FROM store WHERE key = ?", (_KEY,))
        return None if written is None else TimePassed(**json.loads(written))

    def unmarked(self, cause: Cause, now: datetime, limit: int) -> list[Lapsed]:
        """List memories to which a cause applies, and which have no mark."""
        rows = self._connection.all(
            f"{_LAPSED} m.lapsed_at IS NULL AND {_condition(cause)} LIMIT ?2",
            (to_micros(now), limit),
        )
        return [Lapsed(*row) for row in rows]

    def marked(
        self, cause: Cause, now: datetime, by: int, limit: int, space: str | None = None
    ) -> list[Lapsed]:
        """List memories to which a cause applies, and whose mark is at most `by`, oldest first.

        With `space`, list only memories of this space.
        """
        rows = self._connection.all(
            # With `OR`, SQLite still finds the rows by their marks, not all rows of the space.
            f"{_LAPSED} m.lapsed_at <= ?2 AND {_condition(cause)} "
            "AND (m.space = ?4 OR ?4 IS NULL) ORDER BY m.lapsed_at, m.memory_no LIMIT ?3",
            (to_micros(now), by, limit, space),
        )
        return [Lapsed(*row) for row in rows]

    def marked_too_early(self, now: datetime, unless: Cause) -> list[Lapsed] | None:
        """List memories that have a mark and expire later; give `None` if none has a mark."""
        marked = self._connection.get("SELECT 1 FROM memories WHERE lapsed_at IS NOT NULL LIMIT 1")
        if marked is None:
            return None
        rows = self._connection.all(
            f"{_LAPSED} m.lapsed_at IS NOT NULL AND m.expires_at > ?1 "
            f"AND ({_condition(unless)}) IS NOT TRUE",
            (to_micros(now),),
        )
        return [Lapsed(*row) for row in rows]

    def set_time_passed(self, time: TimePassed) -> None:
        """Record the time that the store has seen pass."""
        self._connection.run(SET_VALUE, (_KEY, json.dumps(asdict(time))))


def _condition(cause: Cause) -> str:
    """Give the condition of a cause on `memories m`, with the present moment as `?1`."""
    conditions = ["m.version_of IS NULL"]
    if cause.expired:
        conditions.append("m.expires_at <= ?1")
    # The values are part of the statement: a partial index is chosen by them.
    if cause.kind is not None:
        conditions.append(f"m.kind = {_literal(cause.kind)}")
    if cause.hidden_by is not None:
        conditions.append(
            "m.forgotten_at IS NOT NULL AND (SELECT who FROM history h "
            "WHERE h.memory_no = m.memory_no AND operation = 'forget' "
            f"ORDER BY history_no DESC LIMIT 1) = {_literal(cause.hidden_by)}"
        )
    return " AND ".join(conditions)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
