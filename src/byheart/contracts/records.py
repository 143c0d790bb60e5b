"""Define the values that a store writes, and the records that an export reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from byheart.contracts.embedders import Model, Vectors
from byheart.model import Chunk, HistoryEntry, Memory
from byheart.startup.dataclass_types import dataclass


class TextKey(NamedTuple):
    """Identify a text within a space, whatever its session and kind."""

    space: str
    content_hash: str


class DedupKey(NamedTuple):
    """Identify a memory: two saved texts with equal keys are the same memory.

    With a `client_id`, only the `client_id` counts within its session. Two turns without a
    `client_id` are never the same memory.
    """

    space: str
    session_id: str | None
    kind: str
    content_hash: str
    is_turn: bool = False
    client_id: str | None = None

    @property
    def text(self) -> TextKey:
        """Give the key of the text alone."""
        return TextKey(self.space, self.content_hash)


def key_of(memory: Memory) -> DedupKey:
    """Make the key that decides whether a memory is the same as another."""
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
    """Hold a vector, once it is made, and the hash of the text that it is made from."""

    text_hash: bytes
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory ready to be written: chunked, analysed, and embedded as far as that was possible."""

    memory: Memory
    chunks: tuple[Chunk, ...]
    windows: tuple[tuple[Window, ...], ...]
    derived: tuple[str, ...]
    who: str
    # The time that decides the place in the session; without a time, the memory becomes the last.
    placed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """A changed memory, and the version it was made from; `text` is set only if the text changed.

    `windows` belong to the present chunks; they are set if a new title makes new vectors necessary.
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
    """A chunk that waits for its vectors, with the texts that are needed to make them."""

    chunk_no: int
    chunk: Chunk
    before: Chunk | None
    title: str | None
    memory_id: str
    space: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A chunk that the embedder refused to embed, and the reason."""

    memory_id: str
    index: int
    reason: str

    @property
    def chunk_id(self) -> str:
        """Name the chunk."""
        return f"{self.memory_id}#{self.index}"


class EmittedText(NamedTuple):
    """A passage that was given to a session, and the id of its memory."""

    memory_id: str
    text: str


@dataclass(frozen=True, slots=True)
class StoredText:
    """One text of a memory as stored; `vectors` holds the vectors of each chunk by model name.

    `turn_no` is the place of the text in its session, comparable within one store.
    """

    memory: Memory
    since_at: datetime
    superseded_at: datetime | None
    chunks: tuple[Chunk, ...]
    vectors: tuple[Mapping[str, tuple[Window, ...]], ...]
    turn_no: int | None = None
    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory with its earlier texts, oldest first, and its whole history."""

    text: StoredText
    earlier: tuple[StoredText, ...]
    history: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """An entity and its aliases."""

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
    """The result of loading a record: the outcome, its id in the store, and refused texts."""

    status: Literal["imported", "unchanged", "refused"]
    memory_id: str
    refused_texts: int = 0


class Dump(Protocol):
    """Read the whole contents of a store or a space at one moment, record by record."""

    @property
    def models(self) -> Sequence[Model]:
        """List the models that vectors may belong to, in the order in which the store met them."""
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
