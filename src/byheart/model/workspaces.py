"""Define workspaces (folders whose files are memories) and the progress of their index."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from byheart.startup.dataclass_types import dataclass

# The kind of the memories of files, and the author of the changes that a workspace makes.
FILE_KIND, WORKSPACE_AUTHOR = "file", "workspace"
# The reason why a hit is stale, as people read it.
STALE = "stale: the file was changed or deleted since it was indexed"
# A watcher without a heartbeat for this long is considered dead.
STALE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder whose files are memories; `watched_by` names the process that keeps it fresh."""

    workspace_no: int
    space: str
    root: str
    files: int
    failed: int
    indexed_at: datetime | None
    watched_by: str | None
    beat_at: datetime | None
    behind: int
    trouble: str | None


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """The file that a memory was made of, as it was when it was read last.

    `path` is relative to the root. `size` is -1 if the file has changed since and could not be read
    then; `mtime_ns` is -1 if the file was read so soon after a change that its time says nothing.
    """

    root: str
    path: str
    size: int
    mtime_ns: int
    read_at_micros: int


@dataclass(frozen=True, slots=True)
class FileError:
    """A file that could not be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class RedactedFile:
    """A file whose memory had secrets replaced, and the number of each kind."""

    path: str
    secrets: Mapping[str, int]

    @property
    def count(self) -> int:
        """Count the secrets of the file."""
        return sum(self.secrets.values())


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """The progress of indexing a workspace: first files are read, then chunks are embedded."""

    files: int
    files_total: int
    chunks: int
    vectors: int
    vectors_total: int


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of indexing the files of a workspace.

    Skipped files had not changed, restored files had been missing and are back, and empty files
    hold no text. `redacted_files` names the files that were indexed this time with their secrets
    replaced, and `secrets_redacted` counts these secrets.
    """

    root: str
    files_indexed: int
    files_moved: int
    files_skipped: int
    files_empty: int
    files_removed: int
    files_restored: int
    files_forgotten: int
    errors: tuple[FileError, ...]
    chunks: int
    pending_vectors: int
    degraded: str | None
    elapsed_ms: float
    secrets_redacted: int = 0
    redacted_files: tuple[RedactedFile, ...] = ()
