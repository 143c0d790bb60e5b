"""The sockets: what the rooms promise one another, in as few methods as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from byheart.model import (
    Chunk,
    Filter,
    Finding,
    Heading,
    IndexState,
    Memory,
    MemoryFields,
    SaveResult,
    Session,
    Status,
)

if TYPE_CHECKING:  # numpy takes a tenth of a second to import: `byheart --help` does without
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"


class Model(NamedTuple):
    """The identity of an embedding model; vectors of two models are never compared."""

    name: str
    dimensions: int


class DedupKey(NamedTuple):
    """What makes two saved texts the same memory."""

    space: str
    session_id: str | None
    kind: str
    content_hash: str


class TokenCounter(Protocol):
    """Find where the tokens of a text begin: the measure of chunks, windows and budgets."""

    def token_starts(self, text: str) -> Sequence[int]:
        """Give the character offset of each token's first character, ascending."""
        ...


class Embedder(TokenCounter, Protocol):
    """Turn text into unit vectors of one named model."""

    @property
    def name(self) -> str:
        """Name the model; vectors of two names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Give the length of every vector."""
        ...

    @property
    def window_tokens(self) -> int:
        """Give how many tokens of text one vector can see."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: one unit-length float32 row per text, in the order given."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a question: one unit-length float32 vector."""
        ...


@runtime_checkable
class MayBeAway(Protocol):
    """What an embedder adds whose name cannot be asked for without fetching it first."""

    def unavailable(self) -> str | None:
        """Say why no vectors can be made at the moment, if that is so, by looking only."""
        ...


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


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that waits for its vectors, with what is needed to make them."""

    chunk_no: int
    chunk: Chunk
    before: Chunk | None
    title: str | None


class Ranked(NamedTuple):
    """The chunks that one leg found, best first, with their scores beside them."""

    chunk_nos: NDArray[np.int64]
    scores: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with the fields of its memory, as the store holds them."""

    chunk_no: int
    chunk: Chunk
    memory: MemoryFields


class Reader(Protocol):
    """One consistent view of the store: what it ranks and what it fetches belong together."""

    def rank_by_words(self, terms: Sequence[str], where: Filter, limit: int) -> Ranked:
        """Rank the chunks that have any of the terms by BM25, best first, ties by age."""
        ...

    def rank_by_syntax(self, query: str, where: Filter, limit: int) -> Ranked:
        """Rank the chunks that a raw FTS5 query matches, best first."""
        ...

    def rank_by_vector(self, vector: Vectors, where: Filter, limit: int) -> Ranked:
        """Rank the chunks that have vectors by the cosine of their best window, best first."""
        ...

    def similarities(self, vector: Vectors, chunk_nos: Sequence[int]) -> dict[int, float]:
        """Give the cosine of each chunk's best window; chunks without vectors are left out."""
        ...

    def weigh_terms(self, terms: Sequence[str], chunk_no: int, where: Filter) -> dict[str, float]:
        """Tell what each term contributed to a chunk's BM25 score."""
        ...

    def owners(self, chunk_nos: Sequence[int]) -> list[int]:
        """Name the memory of each chunk by its internal number."""
        ...

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings that each chunk stands under."""
        ...

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        ...

    def chunks_of(self, memory_id: str, space: str) -> list[FoundChunk]:
        """Fetch every chunk of a memory in order."""
        ...

    def memory(self, memory_id: str, space: str) -> Memory | None:
        """Fetch one memory whole."""
        ...

    def memories(self, where: Filter, limit: int, offset: int) -> tuple[list[Memory], int]:
        """List memories, latest iteration and latest first, and count all that match."""
        ...

    def sessions(
        self, space: str, agent_id: str | None, limit: int, offset: int
    ) -> tuple[list[Session], int]:
        """List sessions by agent, latest activity first, and count them all."""
        ...

    def state(self, space: str) -> IndexState:
        """Count what a space holds."""
        ...


class Storage(Protocol):
    """Where memories live. Every write is one transaction: all of it or nothing."""

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        ...

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        ...

    def searching(self) -> AbstractContextManager[Reader]:
        """Open such a view for ranking and counting as well."""
        ...

    def write(self, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
        """Write memories; a text already there in its space, session and kind is left as it is."""
        ...

    def remove(self, memory_ids: Sequence[str], space: str) -> int:
        """Remove memories with everything that belongs to them, and count them."""
        ...

    def known(self, keys: Sequence[DedupKey]) -> dict[DedupKey, SaveResult]:
        """Find which texts are stored already."""
        ...

    def model(self) -> Model | None:
        """Name the model whose vectors the store holds; `None` until it holds any."""
        ...

    def vectors_of(self, model: Model, text_hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Find the vectors of texts that were embedded before."""
        ...

    def pending(self, limit: int) -> list[PendingChunk]:
        """List chunks that still lack vectors, oldest first."""
        ...

    def count_pending(self) -> int:
        """Count the chunks that still lack vectors, in all spaces."""
        ...

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add the vectors of pending chunks that are still there, and count the chunks."""
        ...

    def refresh(self) -> None:
        """Bring what is derived up to date, so that the next search, in any process, is fast."""
        ...

    def status(self, space: str) -> Status:
        """Describe the store."""
        ...

    def examine(self) -> list[Finding]:
        """Check the store and everything derived from it."""
        ...

    def rebuild(self) -> None:
        """Make everything derived anew from text, metadata and vectors."""
        ...

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        ...

    def close(self) -> None:
        """Release files, connections and memory."""
        ...
