"""Define how a store is copied to another one, row by row.

Numbers of rows are those within their space, so that they are the same in every database: the order
of rows, and the sample of chunks that a search looks at, do not change with a copy. A model has its
name in place of its number.

The tables list every column that goes with a copy. The others are left out on purpose: derived
data, claims of watchers and workers, usage statistics, and the log of changes, which each store has
of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Protocol, TypeAlias

from byheart.model.fields import FIELDS
from byheart.startup.dataclass_types import dataclass

# The columns of each table. The first ones are its key, so that rows can be sorted.
OF_MEMORIES: Mapping[str, tuple[str, ...]] = {
    "memories": (
        *("memory_no", "version_of", "lapsed_at"),
        *(field.name for field in FIELDS if field.column),
    ),
    "chunks": (
        *("chunk_no", "memory_no", "chunk_index", "content", "start_char", "end_char"),
        *("start_line", "end_line", "chunk_type", "headings", "token_count", "checksum"),
    ),
    "vectors": ("vector_no", "chunk_no", "model_no", "window_index", "text_hash", "embedding"),
    "pending_vectors": ("chunk_no",),
    "tags": ("tag", "memory_no"),
    "memory_entities": ("entity_no", "memory_no"),
    "history": (
        *("history_no", "memory_no", "operation", "at", "who", "changes", "version", "reason"),
    ),
    "emitted": ("space", "session_id", "chunk_no", "at"),
}
OF_SPACE: Mapping[str, tuple[str, ...]] = {
    "entities": ("entity_no", "space", "key", "name"),
    "entity_aliases": ("space", "key", "name", "entity_no"),
    "tombstones": ("space", "content_hash", "at"),
    "workspaces": ("workspace_no", "space", "root", "indexed_at"),
    "workspace_files": (
        *("workspace_no", "path", "memory_id", "size", "mtime_ns", "inode", "file_hash"),
        *("read_at", "trouble", "may_pass", "gone_at"),
    ),
    "bookmarks": ("space", "path", "put_at", "mark"),
    "receipts": (
        *("receipt_id", "space", "session_id", "verb", "query", "mode", "at", "max_tokens"),
        *("used_tokens", "items", "left_out", "body"),
    ),
    "receipt_memories": ("receipt_id", "memory_id", "space", "is_used"),
    "kept_items": ("space", "item_id", "memory_id", "at", "who"),
}
OF_STORE: Mapping[str, tuple[str, ...]] = {
    "tokens": (
        *("token_id", "name", "access", "space", "session_id", "secret_hash", "created_at"),
        *("expires_at", "last_used_at", "purpose", "voice"),
    ),
    "store": ("key", "value"),
}


@dataclass(frozen=True, slots=True)
class CopyMark:
    """The mark of a copy in its target.

    It has the id and the name of the source, the stamp of the copy's changes, its end, and the
    process that writes it now: another one may go on after `claimed_until`, in microseconds of the
    target's clock.
    """

    store_id: str
    stamp: int
    finished_at: str | None = None
    source: str = ""
    claimed_by: str = ""
    claimed_until: int = 0

    def to_text(self) -> str:
        """Write the mark as the target keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str | None) -> CopyMark | None:
        """Read the mark of a target."""
        return None if text is None else cls(**json.loads(text))


# The key of the mark in the table `store`.
COPY_MARK = "copied_from"
# The rows of tables by the name of the table, in the order of their keys.
TableRows: TypeAlias = Mapping[str, Sequence[tuple[object, ...]]]


class CopyReader(Protocol):
    """Read all rows that belong to a copy.

    The methods with numbers need a transaction of one space.
    """

    def store_id(self) -> str:
        """Name the store."""
        ...

    def mark(self) -> str | None:
        """Give the mark that a copy left in this store."""
        ...

    def now_micros(self) -> int:
        """Give the time of the store's clock, in microseconds."""
        ...

    def spaces(self) -> list[str]:
        """List the spaces that have any rows, in order."""
        ...

    def numbers(self, space: str) -> list[int]:
        """List the numbers of all texts of a space, earlier and forgotten ones too, in order."""
        ...

    def of_memories(self, numbers: Sequence[int]) -> TableRows:
        """Give the rows of texts, and of all that belongs to them."""
        ...

    def of_space(self, space: str) -> TableRows:
        """Give the rows of a space that belong to no memory."""
        ...

    def of_store(self) -> TableRows:
        """Give the rows that belong to no space, except for the models."""
        ...

    def changed_by_others(self, stamp: int) -> bool:
        """Say whether the log has changes with another stamp than that of a copy."""
        ...


class CopyRows(CopyReader, Protocol):
    """Write the rows of a copy."""

    def set_mark(self, mark: str) -> None:
        """Set the mark of a copy."""
        ...

    def add_memories(self, rows: TableRows, stamp: int) -> None:
        """Add texts with all that belongs to them; log the changes with the stamp of the copy."""
        ...

    def remove_memories(self, numbers: Sequence[int], stamp: int) -> None:
        """Remove texts with all that belongs to them, except for their entities."""
        ...

    def replace_space(self, space: str, rows: TableRows) -> None:
        """Replace the rows of a space that belong to no memory."""
        ...

    def replace_store(self, rows: TableRows) -> None:
        """Replace the rows that belong to no space, except for the models."""
        ...

    def renew_id(self) -> None:
        """Give the store another id, so that every index of it is built anew."""
        ...
