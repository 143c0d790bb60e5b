"""Workspaces as rows: folders, how their files looked, and the memories these became.

A file's memory mirrors it: a new text takes the place of the old one, which is not kept. A file
that is gone has its memory hidden, with its vectors, so that it is there again at once when the
file comes back; what stays gone is taken out later. What a user forgot stays forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

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
from byheart.model import Memory, Workspace
from byheart.storage.sqlite import life, writing
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.rows import MEMORY, to_memory
from byheart.storage.sqlite.times import from_micros, now_micros, to_micros
from byheart.storage.sqlite.transfer import is_tombstoned

WHO = "workspace"
GONE, EMPTY = "the file is gone", "the file holds no text any more"
_LIST = """
    SELECT workspace_no, space, root,
        (SELECT count(*) FROM workspace_files f WHERE f.workspace_no = w.workspace_no
         AND gone_at IS NULL AND memory_id IS NOT NULL),
        (SELECT count(*) FROM workspace_files f WHERE f.workspace_no = w.workspace_no
         AND gone_at IS NULL AND f.trouble IS NOT NULL),
        indexed_at, watcher, beat_at, behind, trouble
    FROM workspaces w WHERE ?1 IS NULL OR space = ?1 ORDER BY space, root"""
_FILE = "memory_id, size, mtime_ns, inode, file_hash, trouble, gone_at IS NOT NULL"
# Everything in a folder: "0" is what follows "/".
_UNDER = "workspace_no = ?1 AND (?2 = '' OR path = ?2 OR (path >= ?2 || '/' AND path < ?2 || '0'))"


class SqliteWorkspaces:
    """Keep workspaces in the store's own file, so that a file and its memory change together."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def roots(self, space: str | None) -> list[Workspace]:
        """List the workspaces of a space, or of all, by their roots."""
        with self._database.reading() as connection:
            rows = connection.execute(_LIST, (space,)).fetchall()
        return [_to_workspace(row) for row in rows]

    def add(self, space: str, root: str) -> int:
        """Make a folder a workspace, if it is none yet; give its number."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT workspace_no FROM workspaces WHERE space = ? AND root = ?", (space, root)
            ).get
        if found is not None:
            return int(found)
        with self._database.writing() as connection:
            return int(
                connection.execute(
                    "INSERT INTO workspaces (space, root) VALUES (?, ?) "
                    "ON CONFLICT DO UPDATE SET root = root RETURNING workspace_no",
                    (space, root),
                ).get
            )

    def files(self, workspace_no: int, under: str) -> dict[str, KnownFile]:
        """Give what is known of a file, or of all files in a folder; `""` means the root."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT path, {_FILE} FROM workspace_files WHERE {_UNDER}", (workspace_no, under)
            )
            return {row[0]: _to_known(row[1:]) for row in rows}

    def alike(self, space: str, file_hash: bytes) -> list[AlikeFile]:
        """Find the files of a space's workspaces that hold, or lately held, the same bytes."""
        with self._database.reading() as connection:
            rows: list[Any] = connection.execute(
                "SELECT workspace_no, path, gone_at IS NOT NULL FROM workspace_files "
                "JOIN workspaces USING (workspace_no) "
                "WHERE file_hash = ? AND space = ? AND memory_id IS NOT NULL ORDER BY path",
                (file_hash, space),
            ).fetchall()
        return [AlikeFile(number, path, bool(gone)) for number, path, gone in rows]

    def apply(
        self, workspace_no: int, changes: Sequence[FileChange], model: Model | None
    ) -> list[FileStatus]:
        """Note files as they are now, in one transaction; say what became of each."""
        with self._database.writing() as connection:
            space = _column(connection, workspace_no, "space")
            return [_apply(connection, workspace_no, space, each, model) for each in changes]

    def hide(self, workspace_no: int, missing: Mapping[str, FileStamp]) -> int:
        """Hide the memories of files that are gone, if they still are as known; count them."""
        hidden = 0
        with self._database.writing() as connection:
            space = _column(connection, workspace_no, "space")
            for path, stamp in missing.items():
                known = _known(connection, workspace_no, path)
                # Another process may have found it meanwhile, as it is now.
                if known is not None and known.stamp == stamp and not known.gone:
                    hidden += _hide(connection, workspace_no, space, path, known.memory_id, GONE)
        return hidden

    def purge(self, gone_before: datetime, limit: int) -> int:
        """Take out memories whose files have been gone since before some moment; count them."""
        find = (
            "SELECT workspace_no, path, space, memory_id FROM workspace_files "
            "JOIN workspaces USING (workspace_no) WHERE gone_at < ? LIMIT ?"
        )
        values = (to_micros(gone_before), limit)
        with self._database.reading() as connection:
            if connection.execute(find, values).get is None:
                return 0
        with self._database.writing() as connection:
            rows: list[Any] = connection.execute(find, values).fetchall()
            for workspace_no, path, space, memory_id in rows:
                if _is_hidden(connection, memory_id):  # unless somebody restored it
                    life.remove(connection, [memory_id], space, tombstones=False)
                _remove_row(connection, workspace_no, path)
        return len(rows)

    def finish(self, workspace_no: int, at: datetime) -> None:
        """Note that the whole workspace was looked at."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE workspaces SET indexed_at = ? WHERE workspace_no = ?",
                (to_micros(at), workspace_no),
            )

    def drop(self, workspace_no: int) -> int:
        """Let go of a workspace and hide its memories; count them."""
        with self._database.writing() as connection:
            space = _column(connection, workspace_no, "space")
            ids = [
                memory_id
                for (memory_id,) in connection.execute(
                    "SELECT memory_id FROM workspace_files WHERE workspace_no = ? "
                    "AND memory_id IS NOT NULL AND gone_at IS NULL",
                    (workspace_no,),
                )
            ]
            hidden = life.forget(connection, ids, space, WHO, "the workspace was dropped")
            connection.execute("DELETE FROM workspaces WHERE workspace_no = ?", (workspace_no,))
        return len(hidden)

    def claim(self, workspace_no: int, watcher: str, stale_seconds: float) -> bool:
        """Take on keeping a workspace fresh, unless another process does so."""
        now = now_micros()
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE workspaces SET watcher = ?2, beat_at = ?3, behind = 0, trouble = NULL "
                "WHERE workspace_no = ?1 AND (watcher IS NULL OR watcher = ?2 OR beat_at < ?4)",
                (workspace_no, watcher, now, now - int(stale_seconds * 1_000_000)),
            )
            return connection.changes() > 0

    def beat(self, workspace_no: int, watcher: str, behind: int, trouble: str | None) -> bool:
        """Say that it is still being kept fresh; give `False` if another process has taken over."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE workspaces SET beat_at = ?, behind = ?, trouble = ? "
                "WHERE workspace_no = ? AND watcher = ?",
                (now_micros(), behind, trouble, workspace_no, watcher),
            )
            return connection.changes() > 0

    def release(self, workspace_no: int, watcher: str) -> None:
        """Stop keeping it fresh, so that another process may."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE workspaces SET watcher = NULL, behind = 0, trouble = NULL "
                "WHERE workspace_no = ? AND watcher = ?",
                (workspace_no, watcher),
            )


def _apply(
    connection: apsw.Connection,
    workspace_no: int,
    space: str,
    change: FileChange,
    model: Model | None,
) -> FileStatus:
    known = _known(connection, workspace_no, change.path)
    memory_id = None if known is None else known.memory_id
    if change.trouble is not None:
        # What it held when it could be read is better than nothing.
        _put_row(connection, workspace_no, change, memory_id)
        return "failed"
    if change.moved_from is not None:
        return _move(connection, workspace_no, space, change, known)
    if memory_id is not None and known is not None:
        if known.gone and _is_hidden(connection, memory_id):
            life.restore(connection, memory_id, space, WHO)
        elif not _is_live(connection, memory_id):
            _put_row(connection, workspace_no, change, memory_id)
            return "forgotten"
    if known is not None and known.file_hash == change.file_hash:
        _put_row(connection, workspace_no, change, memory_id)
        return "unchanged"
    if change.draft is None:
        _put_row(connection, workspace_no, change, memory_id)
        emptied = _hide(connection, workspace_no, space, change.path, memory_id, EMPTY)
        return "removed" if emptied else "unchanged"
    return _keep(connection, workspace_no, change, change.draft, memory_id, model)


def _keep(
    connection: apsw.Connection,
    workspace_no: int,
    change: FileChange,
    draft: Draft,
    memory_id: str | None,
    model: Model | None,
) -> FileStatus:
    """Write a file's text: as a new memory, or in place of what its memory held."""
    memory = draft.memory
    if is_tombstoned(connection, memory.space, bytes.fromhex(memory.content_hash)):
        _put_row(connection, workspace_no, change, memory_id)
        return "forgotten"
    # A store that was imported knows the file's memory, but not the workspace.
    memory_id = (
        memory_id
        or connection.execute(
            "SELECT memory_id FROM memories WHERE space = ? AND session_id IS NULL "
            "AND client_id = ? AND version_of IS NULL AND forgotten_at IS NULL",
            (memory.space, memory.client_id),
        ).get
    )
    if memory_id is None:
        memory_id = writing.insert(connection, draft, model).memory_id
    else:
        _replace(connection, memory_id, draft, model)
    _put_row(connection, workspace_no, change, memory_id)
    return "indexed"


def _replace(
    connection: apsw.Connection, memory_id: str, draft: Draft, model: Model | None
) -> None:
    memory_no, version, created_at, old_hash = connection.execute(
        "SELECT memory_no, version, created_at, lower(hex(content_hash)) FROM memories "
        "WHERE memory_id = ?",
        (memory_id,),
    ).get
    memory = replace(draft.memory, memory_id=memory_id, created_at=from_micros(created_at))
    text = (draft.chunks, draft.windows)
    revision = Revision(memory, version, draft.derived, draft.who, {}, text)
    fresh_no = life.replace_text(connection, memory_no, version, revision, model)
    writing.remove(connection, memory_no)
    _record_update(
        connection,
        fresh_no,
        memory,
        {"content_hash": {"from": old_hash, "to": memory.content_hash}},
    )


def _move(
    connection: apsw.Connection,
    workspace_no: int,
    space: str,
    change: FileChange,
    known: KnownFile | None,
) -> FileStatus:
    """Let a memory follow its file to another place; its text and vectors stay."""
    assert change.moved_from is not None
    source = _known(connection, workspace_no, change.moved_from)
    if source is None or source.memory_id is None or source.file_hash != change.file_hash:
        return "failed"  # another process was faster: the next look finds out
    if known is not None and known.memory_id is not None:
        return "failed"
    if source.gone and _is_hidden(connection, source.memory_id):
        life.restore(connection, source.memory_id, space, WHO)
    if _is_live(connection, source.memory_id):
        _rename(connection, source.memory_id, change)
    _remove_row(connection, workspace_no, change.moved_from)
    _put_row(connection, workspace_no, change, source.memory_id)
    return "moved"


def _rename(connection: apsw.Connection, memory_id: str, change: FileChange) -> None:
    row: Any = connection.execute(
        f"SELECT m.memory_no, {MEMORY} FROM memories m WHERE memory_id = ?", (memory_id,)
    ).get
    before = to_memory(row[1:])
    old = before.path or ""
    root = old[: len(old) - len(change.moved_from or "")]
    path = root + change.path
    after = replace(
        before,
        path=path,
        title=_name(path) if before.title == _name(old) else before.title,
        client_id=file_client_id(path),
        updated_at=from_micros(now_micros()),
    )
    changes = {
        name: (getattr(before, name), getattr(after, name))
        for name in ("path", "title")
        if getattr(before, name) != getattr(after, name)
    }
    revision = Revision(after, before.version, before.derived, WHO, changes, None)
    life.amend(connection, row[0], revision)
    noted = {name: {"from": old, "to": new} for name, (old, new) in changes.items()}
    _record_update(connection, row[0], after, noted)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _record_update(
    connection: apsw.Connection,
    memory_no: int,
    memory: Memory,
    changes: Mapping[str, Mapping[str, Any]],
) -> None:
    connection.execute(
        "UPDATE memories SET version = version + 1 WHERE memory_no = ?", (memory_no,)
    )
    life.record(connection, memory_no, "update", memory.updated_at, WHO, changes=changes)


def _hide(
    connection: apsw.Connection,
    workspace_no: int,
    space: str,
    path: str,
    memory_id: str | None,
    reason: str,
) -> int:
    if memory_id is None or not _exists(connection, memory_id):
        if reason == GONE:
            _remove_row(connection, workspace_no, path)
        return 0
    hidden = life.forget(connection, [memory_id], space, WHO, reason)
    # What a user forgot stays forgotten, also when the file comes back.
    if hidden:
        connection.execute(
            "UPDATE workspace_files SET gone_at = ? WHERE workspace_no = ? AND path = ?",
            (now_micros(), workspace_no, path),
        )
    return len(hidden)


def file_client_id(path: str) -> str:
    """Name a file's memory, so that two files with the same text are two memories."""
    return f"file:{path}"


def _known(connection: apsw.Connection, workspace_no: int, path: str) -> KnownFile | None:
    row = connection.execute(
        f"SELECT {_FILE} FROM workspace_files WHERE workspace_no = ? AND path = ?",
        (workspace_no, path),
    ).get
    return None if row is None else _to_known(row)


def _to_known(row: Any) -> KnownFile:
    memory_id, size, mtime_ns, inode, file_hash, trouble, gone = row
    return KnownFile(memory_id, FileStamp(size, mtime_ns, inode), file_hash, trouble, bool(gone))


def _put_row(
    connection: apsw.Connection, workspace_no: int, change: FileChange, memory_id: str | None
) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO workspace_files "
        "(workspace_no, path, memory_id, size, mtime_ns, inode, file_hash, trouble) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (workspace_no, change.path, memory_id, *change.stamp, change.file_hash, change.trouble),
    )


def _remove_row(connection: apsw.Connection, workspace_no: int, path: str) -> None:
    connection.execute(
        "DELETE FROM workspace_files WHERE workspace_no = ? AND path = ?", (workspace_no, path)
    )


def _is_live(connection: apsw.Connection, memory_id: str) -> bool:
    return bool(
        connection.execute(
            "SELECT 1 FROM memories WHERE memory_id = ? AND forgotten_at IS NULL", (memory_id,)
        ).get
    )


def _is_hidden(connection: apsw.Connection, memory_id: str) -> bool:
    return bool(
        connection.execute(
            "SELECT 1 FROM memories WHERE memory_id = ? AND forgotten_at IS NOT NULL", (memory_id,)
        ).get
    )


def _exists(connection: apsw.Connection, memory_id: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM memories WHERE memory_id = ?", (memory_id,)).get)


def _column(connection: apsw.Connection, workspace_no: int, column: str) -> Any:
    value = connection.execute(
        f"SELECT {column} FROM workspaces WHERE workspace_no = ?", (workspace_no,)
    ).get
    if value is None:
        raise NotFound("the workspace was dropped meanwhile", "index it again")
    return value


def _to_workspace(row: Any) -> Workspace:
    values: Any = list(row)
    for at in (5, 7):  # indexed, beat
        values[at] = None if row[at] is None else from_micros(row[at])
    return Workspace(*values)
