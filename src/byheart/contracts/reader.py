"""One view of a store: what it ranks, fetches and counts, and the values it gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from byheart.contracts.embedders import Model, Vectors
from byheart.contracts.index import Index
from byheart.model import (
    Chunk,
    Entity,
    Filter,
    Heading,
    HistoryEntry,
    Memory,
    MemoryFields,
    Session,
    SessionStats,
    Similar,
)


class Double(NamedTuple):
    """Two memories that say almost the same, by their ids, the older one first."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with the fields of its memory, as the store holds them."""

    chunk_no: int
    chunk: Chunk
    memory: MemoryFields


class Standing(NamedTuple):
    """What recall weighs of a memory; `used_at` is its last access, or else its last change."""

    memory_id: str
    text_id: str
    summary: str
    importance: float
    used_at: datetime
    access_count: int


class SaidTurn(NamedTuple):
    """Who said something, and what it was in a sentence."""

    role: str
    summary: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that may be put into a prompt; `vectors` has a row for each of its windows."""

    found: FoundChunk
    score: float
    vectors: Vectors | None


class Reader(Protocol):
    """One consistent view of the store: what it ranks and what it fetches belong together."""

    @property
    def index(self) -> Index:
        """Give what can be retrieved from this very view."""
        ...

    def resembling(self, memory_id: str, space: str, least: float, limit: int) -> list[Similar]:
        """Find memories that say almost the same and are seen where this one is, best first."""
        ...

    def doubles(self, where: Filter, least: float) -> list[Double]:
        """Pair memories of one kind and session that say almost the same, best first."""
        ...

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings that each chunk stands under."""
        ...

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        ...

    def sample(self, where: Filter, count: int, seed: int) -> list[FoundChunk]:
        """Fetch some chunks at random, the same ones for the same seed while nothing changes."""
        ...

    def chunks_of(self, memory_id: str, space: str, part: range | None = None) -> list[FoundChunk]:
        """Fetch every chunk of a memory in order, or those of a part of step 1."""
        ...

    def chunks_under(
        self, memory_id: str, space: str, headings: Sequence[Heading], *, below: bool
    ) -> list[FoundChunk]:
        """Fetch a memory's chunks that stand under exactly these headings, in order.

        With `below`, those as well that stand under further ones.
        """
        ...

    def memory(self, memory_id: str, space: str) -> Memory | None:
        """Fetch one memory whole."""
        ...

    def at_path(self, path: str, space: str) -> str | None:
        """Name the memory that a path belongs to, the latest if there are several."""
        ...

    def files_ending(
        self, ending: str, space: str, sessions: Collection[str | None] | None, limit: int
    ) -> dict[str, str]:
        """Name the memories of workspace files by their paths that end in some folders and a name.

        With `sessions`, only what these hold.
        """
        ...

    def token_counts(self, text_ids: Sequence[str]) -> dict[str, int]:
        """Give how many tokens the texts of memories have, as counted when they were saved."""
        ...

    def standings(self, memory_nos: Sequence[int]) -> list[Standing]:
        """Fetch what recall weighs of memories, in the order asked."""
        ...

    def memories(
        self, where: Filter, limit: int, offset: int, *, by_iteration: bool
    ) -> tuple[list[Memory], int]:
        """List memories, the latest first, or by their iterations before that; count all."""
        ...

    def turns(
        self, where: Filter, roles: Sequence[str], limit: int, offset: int, *, latest: bool
    ) -> list[Memory]:
        """List turns, oldest first; with `latest`, `offset` counts from the end."""
        ...

    def count_turns(self, where: Filter, roles: Sequence[str]) -> int:
        """Count the turns that match."""
        ...

    def salient_turns(self, where: Filter, roles: Sequence[str], limit: int) -> list[SaidTurn]:
        """Pick the first turn and those that matter most, in order."""
        ...

    def running_summary(self, session_id: str, space: str) -> Memory | None:
        """Fetch the summary of a session, hidden or not."""
        ...

    def emitted(self, space: str, session_id: str) -> list[str]:
        """Give what a session, or nobody's in particular, was given lately and still finds."""
        ...

    def given_since(self, space: str, session_id: str, since: datetime | None) -> frozenset[int]:
        """Name the chunks that a session itself was given lately, since a moment."""
        ...

    def pinned(self, where: Filter) -> list[Memory]:
        """List what is pinned, in the order in which it was."""
        ...

    def ids(self, where: Filter, untouched_since: datetime | None = None) -> list[str]:
        """List the ids of all memories that match, oldest first."""
        ...

    def history(self, memory_id: str, space: str) -> list[HistoryEntry]:
        """Tell what happened to a memory, oldest first; nothing for one that never was."""
        ...

    def created(self, memory_ids: Sequence[str], space: str) -> dict[str, datetime]:
        """Say when memories were made, forgotten ones too; unknown ids are left out."""
        ...

    def sessions_of(self, text_ids: Sequence[str], space: str) -> dict[str, str | None]:
        """Name the session of each text, also of a forgotten memory; unknown ids are left out."""
        ...

    def forgotten_at(self, memory_id: str, space: str) -> datetime | None:
        """Say when a memory was hidden, if it is."""
        ...

    def entities(
        self, space: str, prefix: str | None, limit: int, offset: int
    ) -> tuple[list[Entity], int]:
        """List the entities that memories name now, the most used first, and count them all."""
        ...

    def session_stats(self, where: Filter) -> SessionStats:
        """Count what a session holds, or all of them; what is global belongs to none."""
        ...

    def latest(self, where: Filter, task_code: str | None, limit: int) -> list[Memory]:
        """List memories, the latest first; with a task, its own and those of none."""
        ...

    def copies_of(self, memory_ids: Sequence[str], space: str) -> list[tuple[str, str]]:
        """List what memories were promoted to and still holds: the copy, and its source."""
        ...

    def sessions(
        self, space: str, agent_id: str | None, limit: int, offset: int
    ) -> tuple[list[Session], int]:
        """List sessions by agent, latest activity first, and count them all."""
        ...

    def model(self) -> Model | None:
        """Name the model whose vectors are ranked."""
        ...
