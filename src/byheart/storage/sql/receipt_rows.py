"""Store receipts: what was put into the prompts of a session, for a settable time.

Receipts are recorded like emissions: without waiting for the disk or for other writers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from byheart.contracts import GivenReceipt, OldReceipts, ReceiptRow
from byheart.model import ReceiptSummary
from byheart.model.times import from_micros, to_micros
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import text_list

_NAMES = tuple(each.name for each in fields(ReceiptSummary))
_COLUMNS = ", ".join(f"r.{name}" for name in _NAMES)
_AT = _NAMES.index("at")
_MOST_AT_A_TIME = 200


class SqlReceiptRows:
    """Look up and remove receipts within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(
        self,
        space: str,
        since: datetime,
        session_id: str | None,
        memory_id: str | None,
        limit: int,
        offset: int,
    ) -> tuple[list[ReceiptSummary], int]:
        """List the receipts since a moment, the latest first, and count them all."""
        own, values = "FROM receipts r WHERE r.space = ? AND r.at >= ?", [space, to_micros(since)]
        if session_id is not None:
            own += " AND r.session_id = ?"
            values.append(session_id)
        if memory_id is not None:
            own += (
                " AND r.receipt_id IN (SELECT receipt_id FROM receipt_memories "
                "WHERE memory_id = ? AND is_used = 1)"
            )
            values.append(memory_id)
        total = int(self._connection.get(f"SELECT count(*) {own}", values))
        rows = self._connection.each(
            f"SELECT {_COLUMNS} {own} ORDER BY r.at DESC, r.receipt_id DESC LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        return [_to_summary(row) for row in rows], total

    def get(self, receipt_id: str, space: str, since: datetime) -> ReceiptRow | None:
        """Fetch one receipt, unless it is older than a moment."""
        row: Any = self._connection.get(
            f"SELECT {_COLUMNS}, r.body FROM receipts r "
            "WHERE r.receipt_id = ? AND r.space = ? AND r.at >= ?",
            (receipt_id, space, to_micros(since)),
        )
        return None if row is None else ReceiptRow(_to_summary(row[:-1]), row[-1])

    def forget_session(self, space: str, session_id: str) -> None:
        """Remove the receipts of a session."""
        self._connection.run(
            "DELETE FROM receipts WHERE space = ? AND session_id = ?", (space, session_id)
        )

    def remove_if(self, space: str, is_about: Callable[[str], bool]) -> int:
        """Remove the receipts of a space whose questions meet a condition, and count them."""
        rows: Any = self._connection.each(
            "SELECT receipt_id, query FROM receipts WHERE space = ?", (space,)
        )
        found = [receipt_id for receipt_id, query in rows if is_about(query)]
        remove(self._connection, found)
        return len(found)


def remove(connection: Connection, receipt_ids: Sequence[str]) -> None:
    """Remove receipts."""
    for at in range(0, len(receipt_ids), _MOST_AT_A_TIME):
        connection.run(
            "DELETE FROM receipts WHERE receipt_id IN (SELECT value FROM json_each(?))",
            (text_list(receipt_ids[at : at + _MOST_AT_A_TIME]),),
        )


def remove_of_memory(connection: Connection, memory_no: int) -> None:
    """Remove the receipts that name a memory, given or left out: they repeat its title."""
    connection.run(
        "DELETE FROM receipts WHERE receipt_id IN (SELECT receipt_id FROM receipt_memories "
        "WHERE memory_id = (SELECT ifnull(version_of, memory_id) FROM memories "
        "WHERE memory_no = ?))",
        (memory_no,),
    )


def write(connection: Connection, notes: Sequence[GivenReceipt]) -> None:
    """Record receipts."""
    for note in notes:
        summary = note.summary
        if not _knows_all(connection, note):
            continue
        values = [getattr(summary, name) for name in _NAMES]
        values[_AT] = to_micros(summary.at)
        connection.run(
            f"INSERT INTO receipts (space, body, {', '.join(_NAMES)}) "
            f"VALUES ({', '.join('?' * (len(_NAMES) + 2))}) ON CONFLICT (receipt_id) DO NOTHING",
            [note.space, note.body, *values],
        )
        connection.run_many(
            "INSERT INTO receipt_memories (receipt_id, memory_id, space, is_used) "
            "VALUES (?, ?, ?, ?) ON CONFLICT (receipt_id, memory_id) DO NOTHING",
            (
                (summary.receipt_id, memory_id, note.space, int(is_used))
                for memory_id, is_used in note.memories
            ),
        )


def _knows_all(connection: Connection, note: GivenReceipt) -> bool:
    """Say whether all memories of a receipt exist: an erased one must not be named again."""
    found = connection.get(
        "SELECT count(*) FROM json_each(?) CROSS JOIN memories ON memory_id = value "
        "WHERE space = ?",
        (text_list(memory_id for memory_id, _ in note.memories), note.space),
    )
    return int(found) == len(note.memories)


def prune(connection: Connection, notes: Sequence[OldReceipts]) -> None:
    """Remove receipts that have been kept long enough."""
    for note in notes:
        connection.run(
            "DELETE FROM receipts WHERE space = ? AND at < ?", (note.space, to_micros(note.at))
        )


def _to_summary(row: Any) -> ReceiptSummary:
    values = list(row)
    values[_AT] = from_micros(values[_AT])
    return ReceiptSummary(*values)
