"""Define how a store keeps workspaces: folders, the state of their files, and their watchers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from byheart.contracts.records import Draft
from byheart.model import Workspace
from byheart.startup.dataclass_types import dataclass


class FileStamp(NamedTuple):
    """Describe a file without reading it; equal stamps mean an equal file."""

    size: int
    mtime_ns: int
    inode: int


class KnownFile(NamedTuple):
    """A file of a workspace as it was when it was last read.

    `gone_at` says when the file was found to be missing. `may_pass` says that the file may become
    readable without being changed.
    """

    memory_id: str | None
    stamp: FileStamp
    file_hash: bytes
    read_at: datetime
    trouble: str | None = None
    may_pass: bool = False
    gone_at: datetime | None = None

    @property
    def gone(self) -> bool:
        """Say whether the file is missing."""
        return self.gone_at is not None


class FoundWorkspace(NamedTuple):
    """A workspace as a transaction finds it: its place, and the last heartbeat of its watcher."""

    space: str
    root: str
    watcher: str | None
    beat_at: datetime | None


class AlikeFile(NamedTuple):
    """A file that has the same content as another, or had it before it disappeared."""

    workspace_no: int
    path: str
    gone: bool


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a file: its new text (`draft`), a new path, or why it is unreadable.

    With none of these, the file holds the same text as before, or with `no_text` no text to
    remember. `may_pass` says that the file may become readable without being changed.
    """

    path: str
    stamp: FileStamp
    read_at: datetime
    file_hash: bytes = b""
    draft: Draft | None = None
    moved_from: str | None = None
    no_text: bool = False
    trouble: str | None = None
    may_pass: bool = False


FileStatus = Literal["indexed", "moved", "unchanged", "restored", "removed", "forgotten", "failed"]


class WorkspaceReader(Protocol):
    """Look up workspaces (folders whose files are memories), their watchers and their files."""

    def roots(self, space: str | None) -> list[Workspace]:
        """List the workspaces of a space, or of all spaces, sorted by root."""
        ...

    def find(self, workspace_no: int) -> FoundWorkspace | None:
        """Find a workspace; give `None` if it was dropped."""
        ...

    def files(self, workspace_no: int, under: str) -> dict[str, KnownFile]:
        """Give the known state of a file, or of all files in a folder; `""` means the root."""
        ...

    def alike(self, space: str, file_hash: bytes) -> list[AlikeFile]:
        """Find the files in the workspaces of a space that hold, or lately held, the same bytes."""
        ...


class WorkspaceRows(WorkspaceReader, Protocol):
    """Look up and change the rows of workspaces and of their files."""

    def add(self, space: str, root: str) -> int:
        """Add a folder as a workspace, unless it is one already; give its number."""
        ...

    def now(self) -> datetime:
        """Give the time of the clock by which all watchers of the store write heartbeats."""
        ...

    def change(
        self, workspace_no: int, fields: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> bool:
        """Set fields of a workspace in one statement if others have the expected values.

        Say whether they had.
        """
        ...

    def remove(self, workspace_no: int) -> None:
        """Remove a workspace and the rows of its files; their memories stay."""
        ...

    def put_file(self, workspace_no: int, path: str, file: KnownFile | None) -> None:
        """Set the state of a file; with `None`, remove it."""
        ...

    def remove_files(self, memory_ids: Iterable[str], space: str) -> None:
        """Remove the states of the files of these memories, in every workspace of a space."""
        ...
