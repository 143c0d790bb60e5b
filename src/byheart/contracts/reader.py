"""Define the reader: one view of a store that ranks, fetches and counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from byheart.contracts.api_keys import TokenReader
from byheart.contracts.embedders import Vectors
from byheart.contracts.expiry import ExpiryReader
from byheart.contracts.index import Index
from byheart.contracts.models import ModelReader
from byheart.contracts.records import DedupKey
from byheart.contracts.writer import Held
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
    """Hold the fields that recall weighs; `used_at` is the last access, or else the last change."""

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
    """Read one consistent view of the store: ranking and fetching see the same rows."""

    @property
    def index(self) -> Index:
        """Give the index of exactly this view."""
        ...

    def resembling(self, memory_id: str, space: str, least: float, limit: int) -> list[Similar]:
        """Find memories that say almost the same and are visible where this one is, best first."""
        ...

    def doubles(self, where: Filter, least: float) -> list[Double]:
        """Pair memories of one kind and session that say almost the same, best first."""
        ...

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings above each chunk."""
        ...

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        ...

    def sample(self, where: Filter, count: int, seed: int) -> list[FoundChunk]:
        """Fetch some chunks at random, the same ones for the same seed while nothing changes."""
        ...

    def chunks_of(self, memory_id: str, space: str, part: range | None = None) -> list[FoundChunk]:
        """Fetch every chunk of a memory in order, or the chunks in `part`, a range of step 1."""
        ...

    def chunks_under(
        self, memory_id: str, space: str, headings: Sequence[Heading], *, below: bool
    ) -> list[FoundChunk]:
        """Fetch a memory's chunks under exactly these headings, in order.

        With `below`, include the chunks under deeper headings.
        """
        ...

    def find(self, keys: Sequence[DedupKey]) -> dict[DedupKey, Held]:
        """Find the memories that already hold texts, expired or not."""
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
        """Find the memories of workspace files whose paths end in the given folders and name.

        With `sessions`, return only memories of these sessions.
        """
        ...

    def token_counts(self, text_ids: Sequence[str]) -> dict[str, int]:
        """Give the numbers of tokens in texts of memories, as counted when they were saved."""
        ...

    def standings(self, memory_nos: Sequence[int]) -> list[Standing]:
        """Fetch the fields that recall weighs, in the order asked."""
        ...

    def memories(
        self, where: Filter, limit: int, offset: int, *, by_iteration: bool
    ) -> tuple[list[Memory], int]:
        """List memories, latest first, or by iteration and then latest first; count all of them."""
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
        """Pick the first turn and the most important turns, in order."""
        ...

    def running_summary(self, session_id: str, space: str) -> Memory | None:
        """Fetch the summary of a session, hidden or not."""
        ...

    def emitted(self, space: str, session_id: str) -> list[str]:
        """Give texts that this session, or no named session, was lately given and still finds."""
        ...

    def given_since(self, space: str, session_id: str, since: datetime | None) -> frozenset[int]:
        """Name the chunks that were lately given to this very session, since a moment."""
        ...

    def pinned(self, where: Filter) -> list[Memory]:
        """List the pinned memories, in the order in which they were pinned."""
        ...

    def ids(self, where: Filter, untouched_since: datetime | None = None) -> list[str]:
        """List the ids of all memories that match, oldest first."""
        ...

    def history(self, memory_id: str, space: str) -> list[HistoryEntry]:
        """List the events of a memory's life, oldest first; an unknown memory has none."""
        ...

    def created(self, memory_ids: Sequence[str], space: str) -> dict[str, datetime]:
        """Say when memories were made, including forgotten ones; leave out unknown ids."""
        ...

    def sessions_of(self, text_ids: Sequence[str], space: str) -> dict[str, str | None]:
        """Name the session of each text, also of a forgotten memory; leave out unknown ids."""
        ...

    def forgotten_at(self, memory_id: str, space: str) -> datetime | None:
        """Say when a memory was hidden; give `None` for a visible one."""
        ...

    def entities(
        self, space: str, prefix: str | None, limit: int, offset: int
    ) -> tuple[list[Entity], int]:
        """List the entities that memories name now, the most used first, and count them all."""
        ...

    def session_stats(self, where: Filter) -> SessionStats:
        """Count the contents of a session, or of all sessions; global memories belong to none."""
        ...

    def latest(self, where: Filter, task_code: str | None, limit: int) -> list[Memory]:
        """List memories, latest first; with a task, the memories of that task and of no task."""
        ...

    def copies_of(self, memory_ids: Sequence[str], space: str) -> list[tuple[str, str]]:
        """List the valid copies that memories were promoted to: each copy and its source."""
        ...

    def sessions(
        self, space: str, agent_id: str | None, limit: int, offset: int
    ) -> tuple[list[Session], int]:
        """List sessions by agent, latest activity first, and count them all."""
        ...

    @property
    def expiry(self) -> ExpiryReader:
        """Give the memories that may be erased."""
        ...

    @property
    def tokens(self) -> TokenReader:
        """Give the API keys."""
        ...

    @property
    def models(self) -> ModelReader:
        """Give the models, and the chunks that lack vectors."""
        ...
