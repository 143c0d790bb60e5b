"""What is written to a store, and what a whole store is read out as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from byheart.contracts.embedders import Model, Vectors
from byheart.model import Chunk, HistoryEntry, Memory


class DedupKey(NamedTuple):
    """What makes two saved texts the same memory.

    With a `client_id`, that alone within its session; of turns without one no two are the same.
    """

    space: str
    session_id: str | None
    kind: str
    content_hash: str
    is_turn: bool = False
    client_id: str | None = None


def key_of(memory: Memory) -> DedupKey:
    """Say what makes a memory the same as another."""
    return DedupKey(
        memory.space,
        memory.session_id,
        memory.kind,
        memory.content_hash,
        memory.role is not None,
        memory.client_id,
    )


@dataclass(frozen=True, slots=True)
class Window:
    """What one vector was made from (a hash of the text embedded) and the vector, once made."""

    text_hash: bytes
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory ready to be written: chunked, noticed, and embedded as far as that was possible."""

    memory: Memory
    chunks: tuple[Chunk, ...]
    windows: tuple[tuple[Window, ...], ...]
    derived: tuple[str, ...]
    who: str
    # The time that decides its place in the session; without one it goes behind all others there.
    placed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """A memory as it is to be, and the version it was made from; `text` only if that changed.

    `windows` are those of the chunks that are there, if these are embedded anew: under a new title.
    """

    memory: Memory
    expected_version: int
    derived: tuple[str, ...]
    who: str
    changes: Mapping[str, tuple[Any, Any]]
    text: tuple[tuple[Chunk, ...], tuple[tuple[Window, ...], ...]] | None
    windows: tuple[tuple[Window, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that waits for its vectors, with what is needed to make them."""

    chunk_no: int
    chunk: Chunk
    before: Chunk | None
    title: str | None
    memory_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A chunk that the embedder makes no vectors of, and why."""

    memory_id: str
    index: int
    reason: str

    @property
    def chunk_id(self) -> str:
        """Name the chunk."""
        return f"{self.memory_id}#{self.index}"


@dataclass(frozen=True, slots=True)
class StoredText:
    """One text of a memory as the store keeps it; `vectors` has each chunk's, by model name.

    `turn_no` says where in its session it belongs, among those of the same store.
    """

    memory: Memory
    since_at: datetime
    superseded_at: datetime | None
    chunks: tuple[Chunk, ...]
    vectors: tuple[Mapping[str, tuple[Window, ...]], ...]
    turn_no: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory with its whole life: its earlier texts, oldest first, and what happened to it."""

    text: StoredText
    earlier: tuple[StoredText, ...]
    history: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """An entity and the other spellings that count as it."""

    space: str
    name: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TombstoneRecord:
    """The hash of a text that was forgotten for good."""

    space: str
    content_hash: str
    at: datetime


Record = MemoryRecord | EntityRecord | TombstoneRecord


class Loaded(NamedTuple):
    """What became of a record, the id it has in the store, and how many texts were refused."""

    status: Literal["imported", "unchanged", "refused"]
    memory_id: str
    refused_texts: int = 0


class Dump(Protocol):
    """Everything that a store or a space holds at one moment, record by record."""

    @property
    def models(self) -> Sequence[Model]:
        """List the models that vectors may be of, in the order in which the store met them."""
        ...

    @property
    def model(self) -> str | None:
        """Name the model that the store searches with."""
        ...

    @property
    def memory_count(self) -> int:
        """Count the memories."""
        ...

    def records(self) -> Iterator[Record]:
        """Give entities, then memories, then tombstones, each in the order of the store."""
        ...
