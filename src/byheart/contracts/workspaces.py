"""Define how a store keeps workspaces: folders, the state of their files, and their watchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from byheart.contracts.embedders import Model
from byheart.contracts.records import Draft
from byheart.model import Workspace


class FileStamp(NamedTuple):
    """Describe a file without reading it; equal stamps mean an equal file."""

    size: int
    mtime_ns: int
    inode: int


class KnownFile(NamedTuple):
    """A file of a workspace as it was when it was last read."""

    memory_id: str | None
    stamp: FileStamp
    file_hash: bytes
    trouble: str | None
    may_pass: bool
    gone: bool


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


class Workspaces(Protocol):
    """Keep workspaces: folders whose files are memories, the files' states, and the watchers."""

    def roots(self, space: str | None) -> list[Workspace]:
        """List the workspaces of a space, or of all spaces, sorted by root."""
        ...

    def add(self, space: str, root: str) -> int:
        """Add a folder as a workspace, unless it is one already; give its number."""
        ...

    def files(self, workspace_no: int, under: str) -> dict[str, KnownFile]:
        """Give the known state of a file, or of all files in a folder; `""` means the root."""
        ...

    def alike(self, space: str, file_hash: bytes) -> list[AlikeFile]:
        """Find the files in the workspaces of a space that hold, or lately held, the same bytes."""
        ...

    def apply(
        self, workspace_no: int, changes: Sequence[FileChange], model: Model | None
    ) -> list[FileStatus]:
        """Record files as they are now, in one transaction; report the status of each."""
        ...

    def hide(self, workspace_no: int, missing: Mapping[str, FileStamp]) -> int:
        """Hide and count the memories of missing files that still have the stamp in `missing`."""
        ...

    def purge(self, grace: timedelta, limit: int) -> int:
        """Erase and count some memories whose files were found to be missing a grace period ago.

        Time counts as it does for memories that expire.
        """
        ...

    def finish(self, workspace_no: int, at: datetime) -> None:
        """Record that the whole workspace was scanned."""
        ...

    def drop(self, workspace_no: int) -> int:
        """Remove a workspace; hide and count its memories."""
        ...

    def claim(self, workspace_no: int, watcher: str, stale_seconds: float) -> bool:
        """Claim the watch of a workspace, unless it was dropped or another process watches it."""
        ...

    def beat(self, workspace_no: int, watcher: str, behind: int, trouble: str | None) -> bool:
        """Renew the claim on a workspace; return `False` if another process has taken over."""
        ...

    def release(self, workspace_no: int, watcher: str) -> None:
        """Release the claim on a workspace, so that another process may watch it."""
        ...
