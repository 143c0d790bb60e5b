"""Look up memories that may be erased, and store the time that has passed."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

from byheart.contracts import Cause, Lapsed, TimePassed
from byheart.model.times import to_micros
from byheart.model.workspaces import FILE_KIND, WORKSPACE_AUTHOR
from byheart.storage.sql.connection import Connection

_KEY = "time_passed"
# The conditions on `memories m`, with the present moment as `?1`. The memory of a missing file was
# hidden because of its file, not because a user forgot it.
_CONDITIONS: dict[Cause, str] = {
    "expired": "m.expires_at <= ?1 AND m.version_of IS NULL",
    "missing file": f"""m.kind = '{FILE_KIND}' AND m.version_of IS NULL
        AND m.forgotten_at IS NOT NULL AND (SELECT who FROM history h
            WHERE h.memory_no = m.memory_no AND operation = 'forget'
            ORDER BY history_no DESC LIMIT 1) = '{WORKSPACE_AUTHOR}'""",
}
_LAPSED = "SELECT m.memory_no, m.memory_id FROM memories m WHERE"


class SqlExpiryRows:
    """Look up memories that may be erased within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def time_passed(self) -> TimePassed | None:
        """Give the time that was recorded last."""
        written = self._connection.get("SELECT value FROM store WHERE key = ?", (_KEY,))
        return None if written is None else TimePassed(**json.loads(written))

    def unmarked(self, cause: Cause, now: datetime, limit: int) -> list[Lapsed]:
        """List memories to which a cause applies, and which have no mark."""
        rows = self._connection.all(
            f"{_LAPSED} m.lapsed_at IS NULL AND {_CONDITIONS[cause]} LIMIT ?2",
            (to_micros(now), limit),
        )
        return [Lapsed(*row) for row in rows]

    def marked(self, cause: Cause, now: datetime, by: int, limit: int) -> list[Lapsed]:
        """List memories to which a cause applies, and whose mark is at most `by`, oldest first."""
        rows = self._connection.all(
            f"{_LAPSED} m.lapsed_at <= ?2 AND {_CONDITIONS[cause]} "
            "ORDER BY m.lapsed_at, m.memory_no LIMIT ?3",
            (to_micros(now), by, limit),
        )
        return [Lapsed(*row) for row in rows]

    def marked_too_early(self, now: datetime) -> list[Lapsed] | None:
        """List memories that have a mark and expire later; give `None` if none has a mark."""
        marked = self._connection.get("SELECT 1 FROM memories WHERE lapsed_at IS NOT NULL LIMIT 1")
        if marked is None:
            return None
        # The memory of a missing file may be erased before it expires.
        rows = self._connection.all(
            f"{_LAPSED} m.lapsed_at IS NOT NULL AND m.expires_at > ? "
            f"AND NOT (m.kind = '{FILE_KIND}' AND m.forgotten_at IS NOT NULL)",
            (to_micros(now),),
        )
        return [Lapsed(*row) for row in rows]

    def set_time_passed(self, time: TimePassed) -> None:
        """Record the time that the store has seen pass."""
        self._connection.run(
            "INSERT OR REPLACE INTO store VALUES (?, ?)", (_KEY, json.dumps(asdict(time)))
        )
