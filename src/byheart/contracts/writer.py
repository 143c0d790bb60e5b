"""Define the writer: one transaction that looks up rows and changes them.

The rules are functions elsewhere: they take the values that a transaction finds, and give the
values that it writes. A writer knows no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from byheart.contracts.api_keys import ApiKeyRows
from byheart.contracts.archive import ArchiveRows, TombstoneRows
from byheart.contracts.copies import CopyRows
from byheart.contracts.embedders import Model
from byheart.contracts.entities import EntityRows
from byheart.contracts.expiry import ExpiryRows
from byheart.contracts.models import ModelRows
from byheart.contracts.prefetching import Prefetching
from byheart.contracts.receipts import ReceiptRows
from byheart.contracts.records import DedupKey, Window
from byheart.contracts.reviews import ReviewRows
from byheart.contracts.workspaces import WorkspaceRows
from byheart.model import Chunk, Memory, Operation
from byheart.startup.dataclass_types import dataclass


class MemoryState(NamedTuple):
    """A memory as a transaction finds it, hidden or not, by the row of its present text.

    `hidden_by` says who hid a hidden memory.
    """

    memory_no: int
    memory_id: str
    key: DedupKey
    version: int
    created_at: datetime
    since_at: datetime
    expires_at: datetime | None
    forgotten_at: datetime | None
    hidden_by: str | None
    superseded_by: str | None
    superseded_at: datetime | None
    pinned_at: datetime | None
    untrusted_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    accessed_at: datetime | None
    access_count: int
    turn_no: int | None
    feedback: str | None
    chunks: int
    pending_vectors: int

    def is_valid(self, now: datetime) -> bool:
        """Say whether the memory is visible and has not expired."""
        return self.forgotten_at is None and (self.expires_at is None or self.expires_at > now)


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of a memory's history; `changes` gives `from` and `to` for each field.

    The entry is recorded with the version that the memory has after the change.
    """

    operation: Operation
    at: datetime
    who: str
    reason: str | None = None
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Set fields of one row of a memory, and add an event to its history.

    With `every_text`, the fields are set in the rows of earlier texts as well. `labels` replaces
    the tags and entities by those of a memory. Indexes read the row again unless `indexed` is
    false, which means that no index holds the fields.
    """

    memory_no: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    event: Event | None = None
    every_text: bool = False
    labels: Memory | None = None
    indexed: bool = True


@dataclass(frozen=True, slots=True)
class NewText:
    """A text to be inserted as a row of its own; `life` are fields that a save does not set."""

    memory: Memory
    derived: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    windows: tuple[tuple[Window, ...], ...]
    turn_no: int | None
    life: Mapping[str, Any] = field(default_factory=dict)


class Inserted(NamedTuple):
    """The number of a new row, and how many of its chunks wait for vectors."""

    memory_no: int
    pending_vectors: int


class TextRow(NamedTuple):
    """The row of one text of a memory, and how many rows of other tables belong to it."""

    memory_no: int
    content_hash: str
    chunks: int
    vectors: int
    history: int


class Removed(NamedTuple):
    """Count the memories that were removed, and the rows that were removed with them."""

    memories: int
    texts: int
    chunks: int
    vectors: int
    history: int


class Places(NamedTuple):
    """The places of a session: the last, and those around a moment, where there are any."""

    last: int | None
    before: int | None
    after: int | None


class MemoryRows(Protocol):
    """Look up and change the rows of memories."""

    def find(self, key: DedupKey) -> MemoryState | None:
        """Find the visible memory that holds a text, expired or not.

        A memory with a client id is found even if it is hidden; a visible one is preferred.
        """
        ...

    def named(self, space: str, session_id: str | None, client_id: str) -> list[MemoryState]:
        """Give all memories with a client id, hidden or not, oldest first.

        There is at most one in a session, but several without a session may have the same one.
        """
        ...

    def held(self, memory_ids: Iterable[str], space: str) -> list[MemoryState]:
        """Give memories, hidden or not, in the order asked; leave out unknown ids."""
        ...

    def texts(self, memory_id: str, space: str) -> list[TextRow]:
        """Give the rows of all texts of a memory, the present one first; none if it is unknown."""
        ...

    def superseded_by(self, memory_id: str, space: str) -> list[MemoryState]:
        """Give the memories that one memory supersedes."""
        ...

    def hidden_last(self, session_id: str, space: str) -> list[MemoryState]:
        """Give the memories of a session that were hidden last, all at one moment."""
        ...

    def memory(self, memory_no: int) -> Memory:
        """Give the whole memory of a row."""
        ...

    def places(self, space: str, session_id: str, at: datetime | None) -> Places:
        """Give the last place of a session, and the places before and after a moment."""
        ...

    def space_out(self, space: str, session_id: str, step: int) -> None:
        """Number the places of a session again, a step apart, in the same order."""
        ...

    def prefetch_insert(self, memory: Memory, chunks: int, model: Model | None) -> None:
        """Ask ahead for what `insert` has to know about a memory of so many chunks."""
        ...

    def insert(self, text: NewText, model: Model | None) -> Inserted:
        """Insert a text with its chunks, keywords, vectors, tags and entities.

        Chunks without vectors, or with vectors of a model that is not in use, wait for vectors.
        """
        ...

    def change(self, changes: Sequence[MemoryChange]) -> None:
        """Set fields, replace labels and add events."""
        ...

    def rewrite_chunks(
        self,
        memory_no: int,
        memory: Memory,
        windows: Sequence[Sequence[Window]] | None,
        model: Model | None,
    ) -> None:
        """Write the chunks of a memory again, under its title and summary, which have changed.

        They get new numbers, so that every index reads their words again. They keep their
        vectors, unless `windows` has new ones.
        """
        ...

    def move_history(self, memory_no: int, to: int) -> None:
        """Give the history of one row to another."""
        ...

    def remove_text(self, memory_no: int, *, every_text: bool = False) -> None:
        """Remove a row with all that belongs to it; with `every_text`, the earlier rows as well."""
        ...


class Writer(Prefetching, Protocol):
    """Change a store in one transaction, done completely or not at all."""

    @property
    def memories(self) -> MemoryRows:
        """Give the rows of memories."""
        ...

    @property
    def workspaces(self) -> WorkspaceRows:
        """Give the rows of workspaces and their files."""
        ...

    @property
    def archive(self) -> ArchiveRows:
        """Give the rows that an import writes."""
        ...

    @property
    def whole_rows(self) -> CopyRows:
        """Give the rows that a copy of a store writes."""
        ...

    @property
    def tombstones(self) -> TombstoneRows:
        """Give the tombstones of erased texts."""
        ...

    @property
    def entities(self) -> EntityRows:
        """Give the rows of entities."""
        ...

    @property
    def expiry(self) -> ExpiryRows:
        """Give the memories that may be erased, and the time that has passed."""
        ...

    @property
    def api_keys(self) -> ApiKeyRows:
        """Give the rows of API keys."""
        ...

    @property
    def receipts(self) -> ReceiptRows:
        """Give the receipts of contexts."""
        ...

    @property
    def reviews(self) -> ReviewRows:
        """Give the decisions of reviews."""
        ...

    def forget_emissions(self, space: str, session_id: str) -> None:
        """Remove the record of passages that were given to a session."""
        ...

    @property
    def models(self) -> ModelRows:
        """Give the rows of models and vectors."""
        ...
