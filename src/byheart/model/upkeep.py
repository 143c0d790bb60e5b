"""Define the results of upkeep: merging, forgetting, repairing, exporting and importing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal

from byheart.model.memories import Similar
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """A proposal to merge memories: the one to keep, the reason, and the others, nearest first."""

    keep: str
    summary: str
    why: str
    others: tuple[Similar, ...]


@dataclass(frozen=True, slots=True)
class Dedupe:
    """The merges proposed or done; `left_out` counts pairs that differ in a name or number."""

    proposals: tuple[MergeProposal, ...]
    total: int
    has_more: bool
    left_out: int
    threshold: float
    applied: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class Merged:
    """A memory after others were merged into it."""

    memory_id: str
    version: int
    merged: tuple[str, ...]
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    access_count: int


@dataclass(frozen=True, slots=True)
class Removal:
    """The erased rows and files, and the files and tables searched for remaining traces.

    `unproved` names the places that cannot be searched, if the store is on a database server.
    `unfinished` says why the server may still keep words of deleted rows, and what ends that.
    """

    memories: int
    texts: int
    chunks: int
    vectors: int
    history: int
    files_removed: tuple[str, ...]
    files_searched: tuple[str, ...]
    traces: tuple[str, ...]
    unproved: str | None = None
    unfinished: str | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The memories that `forget` or `cleanup` hid or erased, or would with `dry_run`."""

    memory_ids: tuple[str, ...]
    count: int
    hard: bool
    dry_run: bool
    oldest: datetime | None = None
    newest: datetime | None = None
    expired: int = 0
    removal: Removal | None = None
    still_found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The memories that `trust` or `distrust` changed, or would with `dry_run`."""

    memory_ids: tuple[str, ...]
    count: int
    trusted: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Reembedding:
    """The result of a model change; `made` and `reused` count texts embedded and texts reused."""

    model_from: str | None
    model_to: str
    switched: bool
    chunks: int
    made: int
    reused: int
    pending_vectors: int
    old_vectors: int
    message: str


@dataclass(frozen=True, slots=True)
class EmbeddedShare:
    """The chunks that a worker claimed, with those that got vectors and those that were refused.

    `degraded` is the reason if no vectors can be made now.
    """

    claimed: int
    made: int
    refused: int
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of the doctor, and what to do about it."""

    check: str
    ok: bool
    message: str
    hint: str = ""
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class TransferProgress:
    """The progress of an export or import: `done` of `total` memories, bytes, files or chunks."""

    memories: int
    done: int
    total: int | None
    embedded: int = 0


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export; `path` is `None` for a stream.

    `damaged` lists memories whose text differs from the saved text; an import refuses them.
    """

    path: str | None
    format: Literal["jsonl", "markdown"]
    memories: int
    entities: int
    tombstones: int
    vectors: bool
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that an import left out because it could not be read, and the reason."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remark:
    """An item that an import could not take over unchanged: what was saved instead, and why."""

    place: str
    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import or of its dry run; `refused` counts texts forgotten for good.

    `format` is `mixed` if there were several; `files` counts the files of each format. `sessions`,
    `turns` and `memories` count the contents of files of other programs, and `left_out` the parts
    that are not imported. `redacted` counts the secrets that were replaced in imported texts.
    `remarks` names notes whose front matter could not be taken over as intended.
    """

    imported: int
    updated: int
    unchanged: int
    refused: int
    skipped: tuple[Skipped, ...]
    pending_vectors: int
    degraded: str | None
    format: str = "jsonl"
    files: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False
    sessions: int = 0
    turns: int = 0
    memories: int = 0
    redacted: int = 0
    shortened: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a store: a `store` of its own, or an `export` that can be imported."""

    path: str
    size_bytes: int
    kind: Literal["store", "export"] = "store"


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """The progress of a copy: `done` of `total` texts, or of `total` searches."""

    step: Literal["copying", "checking", "searching"]
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of a store in another database, which was compared with the store.

    `rows` counts the compared rows of each table, `kinds` the memories of each kind, and `searches`
    the searches with equal answers. `resumed` says that an earlier copy was continued. `damaged`
    lists memories whose text differs from the saved text, in the store as in the copy.
    """

    source: str
    target: str
    resumed: bool
    spaces: int
    memories: int
    kinds: Mapping[str, int]
    rows: Mapping[str, int]
    searches: int
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A document that was written to a file."""

    memory_id: str
    file_path: str
    file_size_bytes: int
    estimated_tokens: int
