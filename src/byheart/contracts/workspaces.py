"""What is kept of folders that are memory: how their files looked, who keeps them fresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from byheart.contracts.embedders import Model
from byheart.contracts.records import Draft
from byheart.model import Workspace


class FileStamp(NamedTuple):
    """How a file looks without reading it; equal stamps mean an equal file."""

    size: int
    mtime_ns: int
    inode: int


class KnownFile(NamedTuple):
    """A file of a workspace as it was when it was read last."""

    memory_id: str | None
    stamp: FileStamp
    file_hash: bytes
    trouble: str | None
    may_pass: bool
    gone: bool


class AlikeFile(NamedTuple):
    """A file that holds the same as another, or did when it was last there."""

    workspace_no: int
    path: str
    gone: bool


@dataclass(frozen=True, slots=True)
class FileChange:
    """What is to be noted of a file: its new text (`draft`), another place, why it is unreadable.

    With none of these it holds what it held before, or with `no_text` nothing to remember.
    `may_pass` says that it may become readable without being changed.
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
    """Which folders are memory, how their files looked, and who keeps them fresh."""

    def roots(self, space: str | None) -> list[Workspace]:
        """List the workspaces of a space, or of all, by their roots."""
        ...

    def add(self, space: str, root: str) -> int:
        """Make a folder a workspace, if it is none yet; give its number."""
        ...

    def files(self, workspace_no: int, under: str) -> dict[str, KnownFile]:
        """Give what is known of a file, or of all files in a folder; `""` means the root."""
        ...

    def alike(self, space: str, file_hash: bytes) -> list[AlikeFile]:
        """Find the files of a space's workspaces that hold, or lately held, the same bytes."""
        ...

    def apply(
        self, workspace_no: int, changes: Sequence[FileChange], model: Model | None
    ) -> list[FileStatus]:
        """Note files as they are now, in one transaction; say what became of each."""
        ...

    def hide(self, workspace_no: int, missing: Mapping[str, FileStamp]) -> int:
        """Hide the memories of files that are gone, if they still are as known; count them."""
        ...

    def purge(self, grace: timedelta, limit: int) -> int:
        """Erase some memories whose files were noticed to be gone a grace period ago; count them.

        Time counts as it does for `Storage.prune`.
        """
        ...

    def finish(self, workspace_no: int, at: datetime) -> None:
        """Note that the whole workspace was looked at."""
        ...

    def drop(self, workspace_no: int) -> int:
        """Let go of a workspace and hide its memories; count them."""
        ...

    def claim(self, workspace_no: int, watcher: str, stale_seconds: float) -> bool:
        """Take on keeping a workspace fresh, unless another process does so, or it was dropped."""
        ...

    def beat(self, workspace_no: int, watcher: str, behind: int, trouble: str | None) -> bool:
        """Say that it is still being kept fresh; give `False` if another process has taken over."""
        ...

    def release(self, workspace_no: int, watcher: str) -> None:
        """Stop keeping it fresh, so that another process may."""
        ...
