"""Look up and change the rows of workspaces and of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from byheart.contracts import AlikeFile, FileStamp, FoundWorkspace, KnownFile
from byheart.model import Workspace
from byheart.model.times import from_micros, to_micros
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import text_list

_LIST = """
    SELECT workspace_no, space, root,
        (SELECT count(*) FROM workspace_files f WHERE f.workspace_no = w.workspace_no
         AND gone_at IS NULL AND memory_id IS NOT NULL),
        (SELECT count(*) FROM workspace_files f WHERE f.workspace_no = w.workspace_no
         AND gone_at IS NULL AND f.trouble IS NOT NULL),
        indexed_at, watcher, beat_at, behind, trouble
    FROM workspaces w WHERE space = ?1 OR ?1 IS NULL ORDER BY space, root"""
_FILES = """
    SELECT path, memory_id, size, mtime_ns, inode, file_hash, read_at, trouble, may_pass, gone_at
    FROM workspace_files WHERE workspace_no = ?1"""
# The file of this path, and all files in the folder of this path: "0" is the character after "/".
# With `OR` in place of the union, SQLite would read every file of the workspace.
_UNDER = f"{_FILES} AND path = ?2 UNION ALL {_FILES} AND path >= ?2 || '/' AND path < ?2 || '0'"
_REPLACE = """
    ON CONFLICT (workspace_no, path) DO UPDATE SET memory_id = excluded.memory_id,
        size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode,
        file_hash = excluded.file_hash, read_at = excluded.read_at, trouble = excluded.trouble,
        may_pass = excluded.may_pass, gone_at = excluded.gone_at"""
# The columns that a change may set or compare.
_CHANGEABLE = frozenset(("indexed_at", "watcher", "beat_at", "behind", "trouble"))


class SqlWorkspaceRows:
    """Look up and change the rows of workspaces within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def roots(self, space: str | None) -> list[Workspace]:
        """List the workspaces of a space, or of all spaces, sorted by root."""
        return [_to_workspace(row) for row in self._connection.all(_LIST, (space,))]

    def find(self, workspace_no: int) -> FoundWorkspace | None:
        """Find a workspace; give `None` if it was dropped."""
        row = self._connection.get(
            "SELECT space, root, watcher, beat_at FROM workspaces WHERE workspace_no = ?",
            (workspace_no,),
        )
        if row is None:
            return None
        space, root, watcher, beat_at = row
        return FoundWorkspace(space, root, watcher, _moment(beat_at))

    def files(self, workspace_no: int, under: str) -> dict[str, KnownFile]:
        """Give the known state of a file, or of all files in a folder; `""` means the root."""
        if under:
            rows = self._connection.each(_UNDER, (workspace_no, under))
        else:
            rows = self._connection.each(_FILES, (workspace_no,))
        return {row[0]: _to_known(row[1:]) for row in rows}

    def alike(self, space: str, file_hash: bytes) -> list[AlikeFile]:
        """Find the files in the workspaces of a space that hold, or lately held, the same bytes."""
        rows: list[Any] = self._connection.all(
            "SELECT workspace_no, path, gone_at IS NOT NULL FROM workspace_files "
            "JOIN workspaces USING (workspace_no) "
            "WHERE file_hash = ? AND space = ? AND memory_id IS NOT NULL ORDER BY path",
            (file_hash, space),
        )
        return [AlikeFile(number, path, bool(gone)) for number, path, gone in rows]

    def add(self, space: str, root: str) -> int:
        """Add a folder as a workspace, unless it is one already; give its number."""
        return int(
            self._connection.get(
                "INSERT INTO workspaces (space, root) VALUES (?, ?) "
                "ON CONFLICT (space, root) DO UPDATE SET root = excluded.root "
                "RETURNING workspace_no",
                (space, root),
            )
        )

    def now(self) -> datetime:
        """Give the time of the clock by which all watchers of the store write heartbeats."""
        return from_micros(self._connection.now_micros())

    def change(
        self, workspace_no: int, fields: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> bool:
        """Set fields of a workspace in one statement if others have the expected values."""
        columns, wanted = _encode(fields), _encode(expected)
        conditions = "".join(f" AND {name} IS NOT DISTINCT FROM ?" for name in wanted)
        changed = self._connection.count(
            f"UPDATE workspaces SET {', '.join(f'{name} = ?' for name in columns)} "
            f"WHERE workspace_no = ?{conditions}",
            (*columns.values(), workspace_no, *wanted.values()),
        )
        return changed > 0

    def remove(self, workspace_no: int) -> None:
        """Remove a workspace and the rows of its files; their memories stay."""
        self._connection.run("DELETE FROM workspaces WHERE workspace_no = ?", (workspace_no,))

    def put_file(self, workspace_no: int, path: str, file: KnownFile | None) -> None:
        """Set the state of a file; with `None`, remove it."""
        if file is None:
            self._connection.run(
                "DELETE FROM workspace_files WHERE workspace_no = ? AND path = ?",
                (workspace_no, path),
            )
            return
        self._connection.run(
            "INSERT INTO workspace_files (workspace_no, path, memory_id, size, "
            "mtime_ns, inode, file_hash, read_at, trouble, may_pass, gone_at) "
            f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) {_REPLACE}",
            (
                workspace_no,
                path,
                file.memory_id,
                *file.stamp,
                file.file_hash,
                to_micros(file.read_at),
                file.trouble,
                file.may_pass,
                None if file.gone_at is None else to_micros(file.gone_at),
            ),
        )

    def remove_files(self, memory_ids: Iterable[str], space: str) -> None:
        """Remove the states of the files of these memories, in every workspace of a space."""
        self._connection.run(
            "DELETE FROM workspace_files WHERE memory_id IN (SELECT value FROM json_each(?)) "
            "AND workspace_no IN (SELECT workspace_no FROM workspaces WHERE space = ?)",
            (text_list(memory_ids), space),
        )


def _encode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the columns of some fields; raise `ValueError` for a name that is no column."""
    if unknown := values.keys() - _CHANGEABLE:
        raise ValueError(f"workspaces have no field {', '.join(sorted(unknown))} to change")
    return {
        name: to_micros(value) if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _to_workspace(row: Any) -> Workspace:
    number, space, root, files, failed, indexed_at, watcher, beat_at, behind, trouble = row
    return Workspace(
        workspace_no=number,
        space=space,
        root=root,
        files=files,
        failed=failed,
        indexed_at=_moment(indexed_at),
        watched_by=watcher,
        beat_at=_moment(beat_at),
        behind=behind,
        trouble=trouble,
    )


def _to_known(row: Any) -> KnownFile:
    memory_id, size, mtime_ns, inode, file_hash, read_at, trouble, may_pass, gone_at = row
    return KnownFile(
        memory_id,
        FileStamp(size, mtime_ns, inode),
        file_hash,
        from_micros(read_at),
        trouble,
        bool(may_pass),
        _moment(gone_at),
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
