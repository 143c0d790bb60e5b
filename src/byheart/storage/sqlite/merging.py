"""Merge memories that say the same: keep one, and hide the others so that none is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from byheart.errors import Conflict, Do, Hint
from byheart.model import Memory, Merged
from byheart.model.times import now_micros
from byheart.storage.sqlite import versions, writing
from byheart.storage.sqlite.rows import MEMORY, to_memory


def merge(
    connection: apsw.Connection,
    keep: str,
    others: Sequence[str],
    space: str,
    who: str,
    reason: str | None,
) -> Merged:
    """Add the tags, entities and accesses of other memories to one memory, and hide the others."""
    kept_no, kept = _live(connection, keep, space)
    if kept.superseded_by is not None:
        raise Conflict(
            f"{keep} was superseded by {kept.superseded_by}; nothing was merged",
            Hint(
                "keep the memory that is valid now, or make this one valid again: ",
                Do("supersede", keep),
            ),
        )
    memories = [kept, *(_live(connection, other, space)[1] for other in others)]
    tags = tuple(dict.fromkeys(tag for each in memories for tag in each.tags))
    entities = tuple(dict.fromkeys(name for each in memories for name in each.entities))
    accesses = sum(each.access_count for each in memories)
    now = now_micros()
    for other in others:
        _redirect(connection, other, keep, space, who, now)
    versions.forget(connection, others, space, who, _because(f"merged into {keep}", reason))
    connection.execute(
        "UPDATE memories SET version = version + 1, updated_at = ?, access_count = ?, "
        "(accessed_at, pinned_at) = (SELECT max(accessed_at), min(pinned_at) FROM memories "
        f"WHERE space = ? AND memory_id IN ({', '.join('?' * len(memories))})) WHERE memory_no = ?",
        (now, accesses, space, *(each.memory_id for each in memories), kept_no),
    )
    _add_labels(connection, kept_no, tags, others, space)
    before = {"tags": kept.tags, "entities": kept.entities, "access_count": kept.access_count}
    after = {"tags": tags, "entities": entities, "access_count": accesses}
    changes = {
        name: {"from": before[name], "to": after[name]}
        for name in before
        if before[name] != after[name]
    }
    merged = _because("merged with " + ", ".join(others), reason)
    versions.record(connection, kept_no, "update", now, who, merged, changes)
    writing.record_change(connection, [kept_no])
    return Merged(keep, kept.version + 1, tuple(others), tags, entities, accesses)


def _because(what: str, reason: str | None) -> str:
    return what if reason is None else f"{what}: {reason}"


def _redirect(
    connection: apsw.Connection, other: str, keep: str, space: str, who: str, now: int
) -> None:
    """Make the kept memory supersede the memories that the other one superseded."""
    rows: list[Any] = connection.execute(
        "SELECT memory_no FROM memories WHERE superseded_by = ? AND space = ? "
        "AND version_of IS NULL",
        (other, space),
    ).fetchall()
    for (memory_no,) in rows:
        connection.execute(
            "UPDATE memories SET superseded_by = ?, version = version + 1, updated_at = ? "
            "WHERE memory_no = ?",
            (keep, now, memory_no),
        )
        changes = {"superseded_by": {"from": other, "to": keep}}
        versions.record(
            connection, memory_no, "supersede", now, who, f"merged into {keep}", changes
        )


def _add_labels(
    connection: apsw.Connection,
    kept_no: int,
    tags: Sequence[str],
    others: Sequence[str],
    space: str,
) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO tags (tag, memory_no) VALUES (?, ?)",
        ((tag, kept_no) for tag in tags),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO memory_entities (entity_no, memory_no) "
        "SELECT entity_no, ? FROM memory_entities JOIN memories USING (memory_no) "
        "WHERE memory_id = ? AND memories.space = ?",
        ((kept_no, other, space) for other in others),
    )


def _live(connection: apsw.Connection, memory_id: str, space: str) -> tuple[int, Memory]:
    memory_no, _ = versions.live(connection, memory_id, space, "version")
    row = connection.execute(
        f"SELECT {MEMORY} FROM memories m WHERE m.memory_no = ?", (memory_no,)
    ).get
    return memory_no, to_memory(row)
