"""Define the reader: one view of a store that ranks, fetches and counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from byheart.contracts.api_keys import ApiKeyReader
from byheart.contracts.copies import CopyReader
from byheart.contracts.embedders import Vectors
from byheart.contracts.expiry import ExpiryReader
from byheart.contracts.index import Index
from byheart.contracts.models import ModelReader
from byheart.contracts.prefetching import Prefetching
from byheart.contracts.receipts import ReceiptReader
from byheart.contracts.records import DedupKey, Dump, EmittedText, TextKey
from byheart.contracts.reviews import ReviewReader
from byheart.contracts.views import ViewReader
from byheart.contracts.workspaces import WorkspaceReader
from byheart.contracts.writer import MemoryState
from byheart.model import (
    Chunk,
    Entity,
    Filter,
    Heading,
    HistoryEntry,
    IndexedFile,
    Memory,
    MemoryFields,
    Session,
    SessionStats,
)
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with the fields of its memory, as the store holds them."""

    chunk_no: int
    chunk: Chunk
    memory: MemoryFields
    # The file of a workspace that the memory was made of.
    file: IndexedFile | None = None


class Section(NamedTuple):
    """The headings of a section; with `below`, the sections in it belong to it."""

    headings: Sequence[Heading]
    below: bool


# The orders of a listing: newest first; by iteration, then newest first; by iteration, then last
# turn first; oldest first; as said; as said, but counted from the end; as pinned; longest waiting
# for review first; soonest to expire first; longest without a change or an access first.
Order = Literal[
    "newest",
    "iteration",
    "last turn",
    "oldest",
    "said",
    "said last",
    "pinned",
    "waiting",
    "expiring",
    "untouched",
]


class ListingPlace(NamedTuple):
    """The place of a memory in a listing by iteration or time."""

    session_iter: int | None
    created_at: datetime
    memory_no: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Choose memories and their order.

    `roles` restricts to turns, to those of some speakers if it is not empty. `task_code` restricts
    to the memories of a task and of no task.
    """

    where: Filter
    order: Order = "newest"
    limit: int | None = None
    offset: int = 0
    roles: Sequence[str] | None = None
    task_code: str | None = None
    untouched_since: datetime | None = None
    expires_before: datetime | None = None
    exclude_turns: bool = False
    exclude_pinned: bool = False
    exclude_kinds: Sequence[str] = ()
    # Begin behind this memory in the orders "newest" and "iteration".
    after: ListingPlace | None = None
    # A reason of the review queue: leave out memories that somebody decided to keep.
    not_kept_as: str | None = None


class TextState(NamedTuple):
    """Say when a text was created, where it belongs, and when it was forgotten."""

    memory_no: int
    created_at: datetime
    session_id: str | None
    forgotten_at: datetime | None
    is_current: bool


class TextSummary(NamedTuple):
    """Name a text and its memory, sum it up, and say whether it was said in a session."""

    memory_id: str
    text_id: str
    summary: str
    is_turn: bool
    file: IndexedFile | None = None


class SaidTurn(NamedTuple):
    """Who said something, what it was in a sentence, and the beginning of the new text."""

    role: str
    summary: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that may be put into a prompt; `vectors` has a row for each of its windows.

    `confidence` is the estimated probability that the passage has to do with the question.
    """

    found: FoundChunk
    score: float
    vectors: Vectors | None
    confidence: float = 1.0


class Reader(Prefetching, Protocol):
    """Read one consistent view of the store: ranking and fetching see the same rows."""

    @property
    def index(self) -> Index:
        """Give the index of exactly this view."""
        ...

    @property
    def receipts(self) -> ReceiptReader:
        """Give the receipts of contexts."""
        ...

    @property
    def reviews(self) -> ReviewReader:
        """Give the rows that a review looks at."""
        ...

    @property
    def views(self) -> ViewReader:
        """Give the lists and counts that people look at."""
        ...

    @property
    def workspaces(self) -> WorkspaceReader:
        """Give the workspaces and their files."""
        ...

    def headings(self, chunk_nos: Sequence[int]) -> list[tuple[Heading, ...]]:
        """Name the headings above each chunk."""
        ...

    def chunks(self, chunk_nos: Sequence[int]) -> list[FoundChunk]:
        """Fetch chunks with their memories' fields, in the order asked."""
        ...

    def chunks_of(
        self,
        memory_id: str,
        space: str,
        part: range | None = None,
        under: Section | None = None,
    ) -> list[FoundChunk]:
        """Fetch the chunks of a memory in order: all, those in `part`, or those of a section.

        `part` is a range of step 1.
        """
        ...

    def find(self, keys: Sequence[DedupKey]) -> dict[DedupKey, MemoryState]:
        """Find the memories that already hold texts, expired or not."""
        ...

    def tombstoned(self, keys: Iterable[TextKey]) -> set[TextKey]:
        """Find which texts were erased and must not come back unasked."""
        ...

    def taken(self, memory_ids: Iterable[str]) -> set[str]:
        """Find which ids are in use, in any space, hidden or not."""
        ...

    @property
    def whole_rows(self) -> CopyReader:
        """Give the rows that a copy of the store reads."""
        ...

    def dump(
        self, space: str | None, *, vectors: bool, memory_ids: Sequence[str] | None = None
    ) -> Dump:
        """Give the contents of one space, of all, or of some memories; read while this is open."""
        ...

    def memory(self, memory_id: str, space: str, *, hidden: bool = False) -> Memory | None:
        """Fetch one memory whole; with `hidden`, even if it is forgotten."""
        ...

    def named(self, client_id: str, session_id: str, space: str) -> Memory | None:
        """Fetch the memory of a session that has a client id, forgotten or not."""
        ...

    def memories(self, listing: Listing) -> list[Memory]:
        """Fetch the memories of a listing, in its order."""
        ...

    def ids(self, listing: Listing) -> list[str]:
        """Name the memories of a listing, in its order."""
        ...

    def count(self, listing: Listing) -> int:
        """Count the memories of a listing, whatever its limit."""
        ...

    def states(self, text_ids: Sequence[str], space: str) -> dict[str, TextState]:
        """Give the states of texts, forgotten or not; leave out unknown ids."""
        ...

    def ids_beginning(
        self, beginnings: Sequence[str], space: str, limit: int
    ) -> dict[str, list[str]]:
        """Name the memories whose ids begin so, forgotten or not: at most `limit` for each."""
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

    def token_counts(self, text_ids: Sequence[str], space: str) -> dict[str, int]:
        """Give the numbers of tokens in texts of memories, as counted when they were saved."""
        ...

    def summaries(self, memory_nos: Sequence[int]) -> list[TextSummary]:
        """Fetch the fields that recall weighs, in the order asked."""
        ...

    def indexed_files(self, memory_ids: Sequence[str], space: str) -> Mapping[str, IndexedFile]:
        """Find the files of workspaces that memories were made of, by their ids."""
        ...

    def salient_turns(self, where: Filter, roles: Sequence[str], limit: int) -> list[SaidTurn]:
        """Pick the first turn and the most important turns, in order."""
        ...

    def emitted(self, space: str, session_id: str) -> list[EmittedText]:
        """Give texts that this session, or no named session, was lately given and still finds."""
        ...

    def given_since(self, space: str, session_id: str, since: datetime | None) -> frozenset[int]:
        """Name the chunks that were lately given to this very session, since a moment."""
        ...

    def history(self, memory_id: str, space: str) -> list[HistoryEntry]:
        """List the events of a memory's life, oldest first; an unknown memory has none."""
        ...

    def entities(
        self, space: str, prefix: str | None, limit: int, offset: int
    ) -> tuple[list[Entity], int]:
        """List the entities that memories name now, the most used first, and count them all."""
        ...

    def session_stats(self, where: Filter) -> SessionStats:
        """Count the contents of a session, or of all sessions; global memories belong to none."""
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
    def api_keys(self) -> ApiKeyReader:
        """Give the API keys."""
        ...

    @property
    def models(self) -> ModelReader:
        """Give the models, and the chunks that lack vectors."""
        ...
