"""Change saved memories: new texts, new fields, superseding, forgetting, removing.

A new text is a new row; the old row stays as `<memory_id>@<version>` with its chunks and vectors,
so that a search as of that time finds it. All other fields change in place, and the history keeps
the old and the new value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import apsw

from byheart.contracts import DedupKey, Model, Revision, key_of
from byheart.errors import Conflict, Do, Hint, NotFound, VersionConflict
from byheart.model import HistoryEntry, Memory, SaveResult, text_id, to_wire
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sqlite import turn_order, writing
from byheart.storage.sqlite.rows import CHUNK, CONTENT, columns_of, to_chunk

# A change of these fields changes the words that a chunk is found by.
_IN_KEYWORDS = frozenset(("title", "summary"))
# The reason recorded when an expired memory is hidden.
_SAID_AGAIN = "it had expired, and the same text was saved again"
_COPY_VECTORS = (
    "INSERT INTO vectors (chunk_no, model_no, window_index, text_hash, embedding) "
    "SELECT ?, model_no, window_index, text_hash, embedding FROM vectors WHERE chunk_no = ?",
    "INSERT INTO pending_vectors (chunk_no) SELECT ? FROM pending_vectors WHERE chunk_no = ?",
)


def revise(connection: apsw.Connection, revision: Revision, model: Model | None) -> SaveResult:
    """Apply a revision to a memory, unless the memory has changed since it was read."""
    memory = revision.memory
    row = connection.execute(
        "SELECT memory_no, version FROM memories "
        "WHERE memory_id = ? AND space = ? AND forgotten_at IS NULL",
        (memory.memory_id, memory.space),
    ).get
    if row is None:
        raise NotFound(f"{memory.memory_id} was forgotten meanwhile", "nothing was changed")
    memory_no, version = row
    if version != revision.expected_version:
        raise VersionConflict(
            f"{memory.memory_id} has version {version} by now, not {revision.expected_version}: "
            "another caller changed it; nothing was written",
            Hint("read it with: ", Do("get", memory.memory_id), ", and change it again"),
        )
    _refuse_double(connection, revision, memory_no)
    if revision.text is not None:
        memory_no = replace_text(connection, memory_no, version, revision, model)
    else:
        amend(connection, memory_no, revision, model)
    connection.execute(
        "UPDATE memories SET version = ? WHERE memory_no = ?", (version + 1, memory_no)
    )
    changes = {name: {"from": old, "to": new} for name, (old, new) in revision.changes.items()}
    record(connection, memory_no, "update", memory.updated_at, revision.who, changes=changes)
    chunks, pending = connection.execute(
        "SELECT count(*), count(p.chunk_no) FROM chunks LEFT JOIN pending_vectors p "
        "USING (chunk_no) WHERE memory_no = ?",
        (memory_no,),
    ).get
    return SaveResult(
        memory.memory_id,
        "updated",
        chunks,
        memory.content_hash,
        memory.created_at,
        pending,
        version + 1,
    )


def _refuse_double(connection: apsw.Connection, revision: Revision, memory_no: int) -> None:
    memory = revision.memory
    key = key_of(memory)
    other = writing.find_live(connection, key)
    if other is None or other[0] == memory_no:
        return
    if writing.find_same(connection, key) is None:
        set_aside(connection, memory, revision.who)
    else:
        raise Conflict(
            f"{other[1]} already has this text in the same session and kind; nothing was written",
            Hint(
                "forget one of the two, or say which is valid: ",
                Do("supersede", memory.memory_id, other[1]),
            ),
        )


def replace_text(
    connection: apsw.Connection,
    memory_no: int,
    version: int,
    revision: Revision,
    model: Model | None,
) -> int:
    """Give a memory another text; keep the row of the old text under the id of its version."""
    memory, at = revision.memory, to_micros(revision.memory.updated_at)
    # The clock may have gone back, but the earlier text must still end before this one begins.
    connection.execute(
        "UPDATE memories SET memory_id = ?, version_of = ?, replaced_at = max(?, since_at + 1), "
        "lapsed_at = NULL WHERE memory_no = ?",
        (text_id(memory.memory_id, version), memory.memory_id, at, memory_no),
    )
    assert revision.text is not None
    turn_no = _place(connection, memory_no, memory)
    fresh_no, _ = writing.insert_text(
        connection, memory, turn_no, revision.derived, *revision.text, model
    )
    connection.execute(
        "UPDATE memories SET (since_at, accessed_at, access_count, superseded_by, superseded_at, "
        "pinned_at) = (SELECT replaced_at, accessed_at, access_count, superseded_by, "
        "superseded_at, pinned_at FROM memories WHERE memory_no = ?1) WHERE memory_no = ?2",
        (memory_no, fresh_no),
    )
    connection.execute(
        "UPDATE history SET memory_no = ? WHERE memory_no = ?", (fresh_no, memory_no)
    )
    writing.record_change(connection, [memory_no])
    return fresh_no


def _place(connection: apsw.Connection, memory_no: int, changed: Memory) -> int | None:
    """Keep the place of a memory in its session; in another session, choose one by its time."""
    session_id, turn_no = connection.execute(
        "SELECT session_id, turn_no FROM memories WHERE memory_no = ?", (memory_no,)
    ).get
    if session_id == changed.session_id:
        return turn_no  # type: ignore[no-any-return]
    at = to_micros(changed.created_at)
    return turn_order.place(connection, changed.space, changed.session_id, at)


def amend(
    connection: apsw.Connection, memory_no: int, revision: Revision, model: Model | None = None
) -> None:
    """Change a memory's fields in place; its text stays."""
    columns = columns_of(revision.memory, revision.derived)
    columns["turn_no"] = _place(connection, memory_no, revision.memory)
    columns["lapsed_at"] = None  # a changed memory is wanted: cancel its grace period
    connection.execute(
        f"UPDATE memories SET {', '.join(f'{name} = ?' for name in columns)} WHERE memory_no = ?",
        (*columns.values(), memory_no),
    )
    writing.replace_labels(connection, memory_no, revision.memory)
    if not _IN_KEYWORDS.isdisjoint(revision.changes):
        _rewrite_chunks(connection, memory_no, revision, model)
    writing.record_change(connection, [memory_no])


def _rewrite_chunks(
    connection: apsw.Connection, memory_no: int, revision: Revision, model: Model | None
) -> None:
    """Give the chunks new numbers, so that every index reads their words again.

    Keep their vectors, unless the revision has new ones.
    """
    memory = revision.memory
    model_no = None if model is None else writing.activate(connection, model)
    rows: list[Any] = connection.execute(
        f"SELECT {CHUNK}, ifnull(c.checksum, -1) FROM chunks c WHERE memory_no = ? "
        "ORDER BY chunk_index",
        (memory_no,),
    ).fetchall()
    connection.execute(
        "UPDATE chunks SET chunk_index = -1 - chunk_index WHERE memory_no = ?", (memory_no,)
    )
    for at, row in enumerate(rows):
        chunk = to_chunk(row[1:10])
        # A damaged passage must not look sound because it was written again.
        chunk_no = writing.insert_chunk(connection, memory_no, chunk, checksum=row[10])
        writing.insert_words(connection, chunk_no, chunk, memory.title, memory.summary)
        if revision.windows is not None:
            writing.embed_chunk(connection, chunk_no, chunk, model_no, revision.windows[at])
        else:
            for statement in _COPY_VECTORS:
                connection.execute(statement, (chunk_no, row[0]))
        writing.remove_chunk(connection, row[0])


def supersede(
    connection: apsw.Connection, old: str, new: str | None, space: str, who: str, reason: str | None
) -> None:
    """Record which memory supersedes another, or that the memory is valid again."""
    memory_no, before = live(connection, old, space, "superseded_by")
    if new is not None:
        live(connection, new, space, "version")
        _refuse_circle(connection, old, new, space)
    if new == before:
        return
    now = now_micros()
    connection.execute(
        "UPDATE memories SET superseded_by = ?, superseded_at = ?, version = version + 1, "
        "updated_at = ? WHERE memory_no = ?",
        (new, None if new is None else now, now, memory_no),
    )
    changes = {"superseded_by": {"from": before, "to": new}}
    record(connection, memory_no, "supersede", now, who, reason, changes)
    writing.record_change(connection, [memory_no])


def _refuse_circle(connection: apsw.Connection, old: str, new: str, space: str) -> None:
    at, seen = new, set()
    while at is not None and at not in seen:  # imported memories may form a circle
        if at == old:
            raise Conflict(
                f"{old} cannot be superseded by {new}: that is itself, or superseded by it",
                Hint("first make it valid again: ", Do("supersede", new)),
            )
        seen.add(at)
        at = connection.execute(
            "SELECT superseded_by FROM memories WHERE memory_id = ? AND space = ?", (at, space)
        ).get


def forget(
    connection: apsw.Connection, memory_ids: Iterable[str], space: str, who: str, reason: str | None
) -> list[str]:
    """Hide memories with all their texts; give the ids of those that were not hidden before."""
    now, hidden = now_micros(), []
    for memory_id in memory_ids:
        rows = _texts_of(connection, memory_id, space, "forgotten_at IS NULL")
        if rows:
            _set_forgotten(connection, rows, now)
            record(connection, rows[0], "forget", now, who, reason)
            hidden.append(memory_id)
    return hidden


def set_aside(connection: apsw.Connection, memory: Memory, who: str) -> None:
    """Hide an expired memory whose text is about to be saved again as a new memory."""
    expired = writing.find_live(connection, key_of(memory))
    if expired is not None:
        forget(connection, [expired[1]], memory.space, who, _SAID_AGAIN)


def restore(connection: apsw.Connection, memory_id: str, space: str, who: str) -> bool:
    """Restore a memory; say whether it had been hidden."""
    rows = _texts_of(connection, memory_id, space, "forgotten_at IS NOT NULL")
    if not rows:
        live(connection, memory_id, space, "version")
        return False
    session_id, kind, content_hash, is_turn, client_id = connection.execute(
        "SELECT session_id, kind, content_hash, role IS NOT NULL, client_id "
        "FROM memories WHERE memory_no = ?",
        (rows[0],),
    ).get
    key = DedupKey(space, session_id, kind, content_hash.hex(), bool(is_turn), client_id)
    other = writing.find_live(connection, key)
    if other is not None and other[0] != rows[0]:
        raise Conflict(
            f"the same text was saved again as {other[1]}; nothing was changed",
            Hint("use that one, or forget it first: ", Do("forget", other[1])),
        )
    _set_forgotten(connection, rows, None)
    record(connection, rows[0], "restore", now_micros(), who)
    return True


def _set_forgotten(connection: apsw.Connection, rows: Sequence[int], at: int | None) -> None:
    connection.executemany(
        "UPDATE memories SET forgotten_at = ?, lapsed_at = NULL WHERE memory_no = ?",
        ((at, row) for row in rows),
    )
    writing.record_change(connection, rows)


def remove(
    connection: apsw.Connection, memory_ids: Iterable[str], space: str, *, tombstones: bool
) -> dict[str, int]:
    """Remove memories with all their texts, and count the removed rows."""
    counts = dict.fromkeys(COUNTED, 0)
    for memory_id in memory_ids:
        rows = _texts_of(connection, memory_id, space, "1")
        counts["memories"] += bool(rows)
        counts["texts"] += len(rows)
        for row in rows:
            for table, query in _BELONGINGS.items():
                counts[table] += connection.execute(query, (row,)).get
            if tombstones:
                connection.execute(
                    "INSERT OR IGNORE INTO tombstones (space, content_hash, at) "
                    "SELECT space, content_hash, ? FROM memories WHERE memory_no = ?",
                    (now_micros(), row),
                )
            writing.remove(connection, row)
    return counts


COUNTED = ("memories", "texts", "chunks", "vectors", "history")
_BELONGINGS = {
    "chunks": "SELECT count(*) FROM chunks WHERE memory_no = ?",
    "vectors": "SELECT count(*) FROM chunks JOIN vectors USING (chunk_no) WHERE memory_no = ?",
    "history": "SELECT count(*) FROM history WHERE memory_no = ?",
}


def count_accesses(
    connection: apsw.Connection, counts: Mapping[tuple[str, str], tuple[int, int]]
) -> None:
    """Add accesses to memories, and set the last one: (space, id) → number, moment."""
    now = now_micros()
    connection.executemany(
        # A time in the future was recorded while the clock was wrong.
        "UPDATE memories SET access_count = access_count + ?1, accessed_at = "
        "iif(accessed_at <= ?2, max(accessed_at, ?3), ?3) WHERE space = ?4 AND memory_id = ?5",
        ((times, now, at, space, memory_id) for (space, memory_id), (times, at) in counts.items()),
    )


def record(
    connection: apsw.Connection,
    memory_no: int,
    operation: str,
    at: Any,
    who: str,
    reason: str | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Add an event to the history: the action, its author, and the changes."""
    connection.execute(
        "INSERT INTO history (memory_no, operation, at, who, reason, changes, version) "
        "SELECT ?1, ?2, ?3, ?4, ?5, ?6, version FROM memories WHERE memory_no = ?1",
        (
            memory_no,
            operation,
            at if isinstance(at, int) else to_micros(at),
            who,
            reason,
            json.dumps(to_wire(changes or {}), ensure_ascii=False, sort_keys=True),
        ),
    )


def history(connection: apsw.Connection, memory_id: str, space: str) -> list[HistoryEntry]:
    """List the events of a memory's life, oldest first; fill in the texts where they changed."""
    rows = _texts_of(connection, memory_id, space, "1")
    entries = []
    for operation, at, who, version, reason, changes in connection.execute(
        "SELECT operation, at, who, version, reason, changes FROM history "
        "WHERE memory_no = ? ORDER BY history_no",
        (rows[0] if rows else None,),
    ):
        loaded = json.loads(changes)
        if "content" in loaded:
            loaded["content"] = {
                "from": _text_at(connection, memory_id, space, version - 1),
                "to": _text_at(connection, memory_id, space, version),
            }
        entries.append(HistoryEntry(operation, from_micros(at), who, version, reason, loaded))
    return entries


def row_of(connection: apsw.Connection, memory_id: str, space: str, version: int) -> str:
    """Name the row with the text of a version; give an id that no row has if there is none."""
    found = connection.execute(
        # A plain `space` would make SQLite scan the whole space.
        "SELECT memory_id FROM memories WHERE +space = ?1 "
        "AND (memory_id = ?2 OR version_of = ?2) AND version >= ?3 "
        # Earlier texts of files are not kept: a later text must not be returned instead.
        "AND (version = ?3 OR kind != 'file' OR role IS NOT NULL OR client_id IS NULL) "
        "ORDER BY version LIMIT 1",
        (space, memory_id, version),
    ).get
    return text_id(memory_id, version) if found is None else str(found)


def _text_at(connection: apsw.Connection, memory_id: str, space: str, version: int) -> str:
    text: str = connection.execute(
        f"SELECT {CONTENT} FROM memories m WHERE memory_id = ?",
        (row_of(connection, memory_id, space, version),),
    ).get
    return text


def _texts_of(connection: apsw.Connection, memory_id: str, space: str, condition: str) -> list[int]:
    """List the rows of a memory, the current text first."""
    own = connection.execute(
        f"SELECT memory_no FROM memories WHERE memory_id = ? AND space = ? "
        f"AND version_of IS NULL AND {condition}",
        (memory_id, space),
    ).get
    if own is None:
        return []
    earlier = connection.execute(
        "SELECT memory_no FROM memories WHERE version_of = ? AND space = ?", (memory_id, space)
    )
    return [own, *chain.from_iterable(earlier)]


def live(connection: apsw.Connection, memory_id: str, space: str, column: str) -> tuple[int, Any]:
    """Give the number and a column of a visible memory; raise `NotFound` if there is none."""
    row = connection.execute(
        f"SELECT memory_no, {column} FROM memories "
        "WHERE memory_id = ? AND space = ? AND version_of IS NULL AND forgotten_at IS NULL",
        (memory_id, space),
    ).get
    if row is None:
        raise missing(connection, memory_id, space)
    return row  # type: ignore[no-any-return]


def missing(connection: apsw.Connection, memory_id: str, space: str) -> NotFound:
    """Make the error that says that a memory does not exist, or that it is hidden."""
    hidden = connection.execute(
        "SELECT forgotten_at FROM memories WHERE memory_id = ? AND space = ?", (memory_id, space)
    ).get
    if hidden is None:
        return NotFound(
            f"there is no {memory_id} in this space", Hint("look for it with: ", Do("list"))
        )
    return NotFound(
        f"{memory_id} was forgotten on {from_micros(hidden):%Y-%m-%d}",
        Hint("bring it back with: ", Do("restore", memory_id)),
    )
