"""Store workspaces as rows: folders, the states of their files, and the files' memories.

The memory of a file mirrors the file: a new text replaces the old one, which is not kept. When a
file is missing, its memory is hidden with its vectors, so that it is available at once when the
file comes back; the memory of a file that stays missing is erased later. A memory that a user
forgot stays forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from byheart.contracts import (
    AlikeFile,
    Draft,
    FileChange,
    FileStamp,
    FileStatus,
    KnownFile,
    Model,
    Revision,
)
from byheart.errors import NotFound
from byheart.model import Memory, Workspace, client_id_of
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sql import pruning, versions, writing
from byheart.storage.sql.connection import Connection, Database
from byheart.storage.sql.rows import MEMORY, to_memory
from byheart.storage.sql.tombstones import is_tombstoned

WHO = "workspace"
GONE, EMPTY, DROPPED = (
    "the file is gone",
    "the file holds no text to remember any more",
    "the workspace was dropped",
)
_LIST = """
    SELECT workspace_no, space, root,
        (SELECT count(*) FROM workspace_files f WHERE f.workspace_no = w.workspace_no
         AND gone_at IS NULL AND memory_id IS NOT NULL),
        (SELECT count(*) FROM workspace_files f WHERE f.workspace_no = w.workspace_no
         AND gone_at IS NULL AND f.trouble IS NOT NULL),
        indexed_at, watcher, beat_at, behind, trouble
    FROM workspaces w WHERE ?1 IS NULL OR space = ?1 ORDER BY space, root"""
_FILE = "memory_id, size, mtime_ns, inode, file_hash, trouble, may_pass, gone_at IS NOT NULL"
# A memory that was hidden because of its file, not because a user forgot it.
_HIDDEN_BY_US = f"""forgotten_at IS NOT NULL AND (SELECT who FROM history h
    WHERE h.memory_no = m.memory_no AND operation = 'forget'
    ORDER BY history_no DESC LIMIT 1) = '{WHO}'"""
_GONE = pruning.Cause(f"m.kind = 'file' AND m.version_of IS NULL AND m.{_HIDDEN_BY_US}")
# All files in a folder: "0" is the character after "/".
_UNDER = "workspace_no = ?1 AND (?2 = '' OR path = ?2 OR (path >= ?2 || '/' AND path < ?2 || '0'))"


class SqliteWorkspaces:
    """Keep workspaces in the store's own file, so that a file and its memory change together."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def roots(self, space: str | None) -> list[Workspace]:
        """List the workspaces of a space, or of all spaces, sorted by root."""
        with self._database.reading() as connection:
            rows = connection.all(_LIST, (space,))
        return [_to_workspace(row) for row in rows]

    def add(self, space: str, root: str) -> int:
        """Add a folder as a workspace, unless it is one already; give its number."""
        with self._database.reading() as connection:
            found = connection.get(
                "SELECT workspace_no FROM workspaces WHERE space = ? AND root = ?", (space, root)
            )
        if found is not None:
            return int(found)
        with self._database.writing() as connection:
            return int(
                connection.get(
                    "INSERT INTO workspaces (space, root) VALUES (?, ?) "
                    "ON CONFLICT DO UPDATE SET root = root RETURNING workspace_no",
                    (space, root),
                )
            )

    def files(self, workspace_no: int, under: str) -> dict[str, KnownFile]:
        """Give the known state of a file, or of all files in a folder; `""` means the root."""
        with self._database.reading() as connection:
            rows = connection.each(
                f"SELECT path, {_FILE} FROM workspace_files WHERE {_UNDER}", (workspace_no, under)
            )
            return {row[0]: _to_known(row[1:]) for row in rows}

    def alike(self, space: str, file_hash: bytes) -> list[AlikeFile]:
        """Find the files in the workspaces of a space that hold, or lately held, the same bytes."""
        with self._database.reading() as connection:
            rows: list[Any] = connection.all(
                "SELECT workspace_no, path, gone_at IS NOT NULL FROM workspace_files "
                "JOIN workspaces USING (workspace_no) "
                "WHERE file_hash = ? AND space = ? AND memory_id IS NOT NULL ORDER BY path",
                (file_hash, space),
            )
        return [AlikeFile(number, path, bool(gone)) for number, path, gone in rows]

    def apply(
        self, workspace_no: int, changes: Sequence[FileChange], model: Model | None
    ) -> list[FileStatus]:
        """Record files as they are now, in one transaction; report the status of each."""
        with self._database.writing() as connection:
            space = _column(connection, workspace_no, "space")
            return [_apply(connection, workspace_no, space, each, model) for each in changes]

    def hide(self, workspace_no: int, missing: Mapping[str, FileStamp]) -> int:
        """Hide and count the memories of missing files that still have the stamp in `missing`."""
        hidden = 0
        with self._database.writing() as connection:
            space = _column(connection, workspace_no, "space")
            for path, stamp in missing.items():
                known = _known(connection, workspace_no, path)
                # Another process may have found the file meanwhile.
                if known is None or known.stamp != stamp or known.gone:
                    continue
                if known.memory_id is None or not _exists(connection, known.memory_id):
                    _remove_row(connection, workspace_no, path)
                    continue
                hidden += _hide(connection, known.memory_id, space, GONE)
                connection.run(
                    "UPDATE workspace_files SET gone_at = ? WHERE workspace_no = ? AND path = ?",
                    (now_micros(), workspace_no, path),
                )
        return hidden

    def purge(self, grace: timedelta, limit: int) -> int:
        """Erase and count some memories whose files were found to be missing a grace period ago."""
        erased = pruning.prune(self._database, _GONE, grace, limit)
        if erased:
            with self._database.writing() as connection:
                connection.run_many(
                    "DELETE FROM workspace_files WHERE memory_id = ?", ((each,) for each in erased)
                )
        return len(erased)

    def finish(self, workspace_no: int, at: datetime) -> None:
        """Record that the whole workspace was scanned."""
        with self._database.writing() as connection:
            connection.run(
                "UPDATE workspaces SET indexed_at = ? WHERE workspace_no = ?",
                (to_micros(at), workspace_no),
            )

    def drop(self, workspace_no: int) -> int:
        """Remove a workspace; hide and count its memories."""
        with self._database.writing() as connection:
            space = _column(connection, workspace_no, "space")
            ids = [
                memory_id
                for (memory_id,) in connection.each(
                    "SELECT memory_id FROM workspace_files WHERE workspace_no = ? "
                    "AND memory_id IS NOT NULL AND gone_at IS NULL",
                    (workspace_no,),
                )
            ]
            hidden = versions.forget(connection, ids, space, WHO, DROPPED)
            connection.run("DELETE FROM workspaces WHERE workspace_no = ?", (workspace_no,))
        return len(hidden)

    def claim(self, workspace_no: int, watcher: str, stale_seconds: float) -> bool:
        """Claim the watch of a workspace, unless it was dropped or another process watches it."""
        now, stale = now_micros(), int(stale_seconds * 1_000_000)
        with self._database.writing() as connection:
            _column(connection, workspace_no, "space")
            claimed = connection.run(
                # A heartbeat in the future is from before the clock was set back: a watcher that
                # is still alive sends another one within seconds.
                "UPDATE workspaces SET watcher = ?2, beat_at = ?3, behind = 0, trouble = NULL "
                "WHERE workspace_no = ?1 AND (watcher IS NULL OR watcher = ?2 "
                "OR beat_at NOT BETWEEN ?3 - ?4 AND ?3 + ?4)",
                (workspace_no, watcher, now, stale),
            )
            return claimed > 0

    def beat(self, workspace_no: int, watcher: str, behind: int, trouble: str | None) -> bool:
        """Renew the claim on a workspace; return `False` if another process has taken over."""
        with self._database.writing() as connection:
            renewed = connection.run(
                "UPDATE workspaces SET beat_at = ?, behind = ?, trouble = ? "
                "WHERE workspace_no = ? AND watcher = ?",
                (now_micros(), behind, trouble, workspace_no, watcher),
            )
            return renewed > 0

    def release(self, workspace_no: int, watcher: str) -> None:
        """Release the claim on a workspace, so that another process may watch it."""
        with self._database.writing() as connection:
            connection.run(
                "UPDATE workspaces SET watcher = NULL, behind = 0, trouble = NULL "
                "WHERE workspace_no = ? AND watcher = ?",
                (workspace_no, watcher),
            )


def _apply(
    connection: Connection,
    workspace_no: int,
    space: str,
    change: FileChange,
    model: Model | None,
) -> FileStatus:
    read_since = connection.get(
        # A read time in the future is from before the clock was set back.
        "SELECT read_at > ? AND read_at <= ? FROM workspace_files "
        "WHERE workspace_no = ? AND path = ?",
        (to_micros(change.read_at), now_micros(), workspace_no, change.path),
    )
    if read_since:
        return "unchanged"  # another process has read the file after us
    known = _known(connection, workspace_no, change.path)
    if change.trouble is not None:
        # The last readable text of the file is better than none: keep its memory.
        former = None if known is None else known.memory_id
        kept = replace(change, file_hash=b"" if known is None else known.file_hash)
        _put_row(connection, workspace_no, kept, former)
        return "failed"
    if change.moved_from is not None:
        return _move(connection, workspace_no, space, change, known)
    if known is not None and known.memory_id is not None:
        return _follow(connection, workspace_no, space, change, known, model)
    return _begin(connection, workspace_no, change, model)


def _begin(
    connection: Connection, workspace_no: int, change: FileChange, model: Model | None
) -> FileStatus:
    """Add a file that has no memory yet, or has one from before the workspace was added."""
    if change.draft is None:
        _put_row(connection, workspace_no, change, None)
        return "unchanged"
    memory = change.draft.memory
    if _is_erased(connection, memory):
        _put_row(connection, workspace_no, change, None)
        return "forgotten"
    # The memory was imported, or hidden when the file was empty or the workspace was dropped.
    memory_id = connection.get(
        "SELECT memory_id FROM memories m WHERE space = ? AND session_id IS NULL AND client_id = ? "
        f"AND version_of IS NULL AND (forgotten_at IS NULL OR {_HIDDEN_BY_US}) LIMIT 1",
        (memory.space, memory.client_id),
    )
    if memory_id is None:
        memory_id = writing.insert(connection, change.draft, model).memory_id
    else:
        _show(connection, memory_id, memory.space)
        _replace(connection, memory_id, change.draft, model)
    _put_row(connection, workspace_no, change, memory_id)
    return "indexed"


def _follow(
    connection: Connection,
    workspace_no: int,
    space: str,
    change: FileChange,
    known: KnownFile,
    model: Model | None,
) -> FileStatus:
    """Update the memory of a file to the file's present text."""
    memory_id = known.memory_id
    assert memory_id is not None
    if not (_is_live(connection, memory_id) or _is_hidden_by_us(connection, memory_id)):
        _put_row(connection, workspace_no, change, memory_id)
        return "forgotten"
    if known.file_hash == change.file_hash:
        shown = _show(connection, memory_id, space)
        _put_row(connection, workspace_no, change, memory_id)
        return "restored" if shown else "unchanged"
    if change.draft is None and not change.no_text:
        return "unchanged"  # another process saw another state: the next scan reads the file again
    if change.draft is None or _is_erased(connection, change.draft.memory):
        hidden = _hide(connection, memory_id, space, EMPTY)
        _put_row(connection, workspace_no, change, None)
        return "forgotten" if change.draft is not None else "removed" if hidden else "unchanged"
    _show(connection, memory_id, space)
    _replace(connection, memory_id, change.draft, model)
    _put_row(connection, workspace_no, change, memory_id)
    return "indexed"


def _replace(connection: Connection, memory_id: str, draft: Draft, model: Model | None) -> None:
    memory_no, version, created_at, old_hash = connection.get(
        "SELECT memory_no, version, created_at, lower(hex(content_hash)) FROM memories "
        "WHERE memory_id = ?",
        (memory_id,),
    )
    memory = replace(draft.memory, memory_id=memory_id, created_at=from_micros(created_at))
    text = (draft.chunks, draft.windows)
    revision = Revision(memory, version, draft.derived, draft.who, {}, text)
    fresh_no = versions.replace_text(connection, memory_no, version, revision, model)
    writing.remove(connection, memory_no)
    _record_update(
        connection,
        fresh_no,
        memory,
        {"content_hash": {"from": old_hash, "to": memory.content_hash}},
    )


def _move(
    connection: Connection,
    workspace_no: int,
    space: str,
    change: FileChange,
    known: KnownFile | None,
) -> FileStatus:
    """Move a memory with its file to another path; keep its text and vectors."""
    assert change.moved_from is not None
    source = _known(connection, workspace_no, change.moved_from)
    if source is None or source.memory_id is None or source.file_hash != change.file_hash:
        return "failed"  # another process was faster: the next scan corrects it
    if known is not None and known.memory_id is not None:
        return "failed"
    if _is_hidden_by_us(connection, source.memory_id):
        _show(connection, source.memory_id, space)
    if _is_live(connection, source.memory_id):
        _rename(connection, workspace_no, source.memory_id, change.path)
    _remove_row(connection, workspace_no, change.moved_from)
    _put_row(connection, workspace_no, change, source.memory_id)
    return "moved"


def _rename(connection: Connection, workspace_no: int, memory_id: str, place: str) -> None:
    row: Any = connection.get(
        f"SELECT m.memory_no, {MEMORY} FROM memories m WHERE memory_id = ?", (memory_id,)
    )
    before = to_memory(row[1:])
    path = f"{_column(connection, workspace_no, 'root').rstrip('/')}/{place}"
    after = replace(
        before,
        path=path,
        title=_name(path) if before.title == _name(before.path or "") else before.title,
        client_id=client_id_of(path),
        updated_at=from_micros(now_micros()),
    )
    changes = {
        name: (getattr(before, name), getattr(after, name))
        for name in ("path", "title")
        if getattr(before, name) != getattr(after, name)
    }
    revision = Revision(after, before.version, before.derived, WHO, changes, None)
    versions.amend(connection, row[0], revision)
    noted = {name: {"from": old, "to": new} for name, (old, new) in changes.items()}
    _record_update(connection, row[0], after, noted)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _record_update(
    connection: Connection,
    memory_no: int,
    memory: Memory,
    changes: Mapping[str, Mapping[str, Any]],
) -> None:
    connection.run("UPDATE memories SET version = version + 1 WHERE memory_no = ?", (memory_no,))
    versions.record(connection, memory_no, "update", memory.updated_at, WHO, changes=changes)


def _hide(connection: Connection, memory_id: str, space: str, reason: str) -> int:
    """Hide the memory of a file; leave a memory alone that a user forgot.

    Such a memory stays forgotten even when the file comes back.
    """
    return len(versions.forget(connection, [memory_id], space, WHO, reason))


def _show(connection: Connection, memory_id: str, space: str) -> bool:
    """Restore a memory if it was hidden because of its file; say whether it was."""
    if _is_live(connection, memory_id):
        return False
    versions.restore(connection, memory_id, space, WHO)
    return True


def _is_erased(connection: Connection, memory: Memory) -> bool:
    return is_tombstoned(connection, memory.space, bytes.fromhex(memory.content_hash))


def _known(connection: Connection, workspace_no: int, path: str) -> KnownFile | None:
    row = connection.get(
        f"SELECT {_FILE} FROM workspace_files WHERE workspace_no = ? AND path = ?",
        (workspace_no, path),
    )
    return None if row is None else _to_known(row)


def _to_known(row: Any) -> KnownFile:
    memory_id, size, mtime_ns, inode, file_hash, trouble, may_pass, gone = row
    stamp = FileStamp(size, mtime_ns, inode)
    return KnownFile(memory_id, stamp, file_hash, trouble, bool(may_pass), bool(gone))


def _put_row(
    connection: Connection, workspace_no: int, change: FileChange, memory_id: str | None
) -> None:
    connection.run(
        "INSERT OR REPLACE INTO workspace_files (workspace_no, path, memory_id, size, mtime_ns, "
        "inode, file_hash, read_at, trouble, may_pass) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            workspace_no,
            change.path,
            memory_id,
            *change.stamp,
            change.file_hash,
            to_micros(change.read_at),
            change.trouble,
            change.may_pass,
        ),
    )


def _remove_row(connection: Connection, workspace_no: int, path: str) -> None:
    connection.run(
        "DELETE FROM workspace_files WHERE workspace_no = ? AND path = ?", (workspace_no, path)
    )


def _is_live(connection: Connection, memory_id: str) -> bool:
    return bool(
        connection.get(
            "SELECT 1 FROM memories WHERE memory_id = ? AND forgotten_at IS NULL", (memory_id,)
        )
    )


def _is_hidden_by_us(connection: Connection, memory_id: str) -> bool:
    return bool(
        connection.get(
            f"SELECT 1 FROM memories m WHERE memory_id = ? AND {_HIDDEN_BY_US}", (memory_id,)
        )
    )


def _exists(connection: Connection, memory_id: str) -> bool:
    return bool(connection.get("SELECT 1 FROM memories WHERE memory_id = ?", (memory_id,)))


def _column(connection: Connection, workspace_no: int, column: str) -> Any:
    value = connection.get(
        f"SELECT {column} FROM workspaces WHERE workspace_no = ?", (workspace_no,)
    )
    if value is None:
        raise NotFound("the workspace was dropped meanwhile", "index it again")
    return value


def _to_workspace(row: Any) -> Workspace:
    number, space, root, files, failed, indexed_at, watcher, beat_at, behind, trouble = row
    return Workspace(
        workspace_no=number,
        space=space,
        root=root,
        files=files,
        failed=failed,
        indexed_at=None if indexed_at is None else from_micros(indexed_at),
        watched_by=watcher,
        beat_at=None if beat_at is None else from_micros(beat_at),
        behind=behind,
        trouble=trouble,
    )
