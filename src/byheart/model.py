"""The nouns: plain, frozen values without I/O that every room and every door shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Literal

Mode = Literal["hybrid", "vector", "fts"]
Granularity = Literal["fine", "medium", "coarse"]
Match = Literal["any", "all"]
SaveStatus = Literal["created", "unchanged", "updated"]

MODES: tuple[Mode, ...] = ("hybrid", "vector", "fts")
GRANULARITIES: tuple[Granularity, ...] = ("fine", "medium", "coarse")
HEADING_SEPARATOR = " > "


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that a passage stands under; `start_char` tells two of the same title apart."""

    level: int
    title: str
    start_char: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a memory: the exact slice `content[start_char:end_char]` of its text."""

    index: int
    content: str
    start_char: int
    end_char: int
    start_line: int
    end_line: int
    chunk_type: str
    headings: tuple[Heading, ...]
    token_count: int

    @property
    def header_path(self) -> str:
        """Give the headings from the outermost in, without `#` marks."""
        return HEADING_SEPARATOR.join(heading.title for heading in self.headings)

    @property
    def level(self) -> int:
        """Give the depth of the innermost heading, 0 above all headings."""
        return self.headings[-1].level if self.headings else 0

    @property
    def section(self) -> tuple[Heading, ...]:
        """Give the headings of the section it belongs to."""
        return section_of(self.headings)


def section_of(headings: tuple[Heading, ...]) -> tuple[Heading, ...]:
    """Give the headings down to the first at depth two or more: the section of a passage.

    A document that starts at `##` therefore groups by that heading, not by two of them.
    """
    for depth, heading in enumerate(headings, start=1):
        if heading.level >= 2:
            return headings[:depth]
    return headings


@dataclass(frozen=True, slots=True)
class Memory:
    """One saved text with everything known about it."""

    memory_id: str
    space: str
    kind: str
    content: str
    content_hash: str
    title: str | None
    summary: str
    source: str
    session_id: str | None
    agent_id: str | None
    session_iter: int | None
    task_code: str | None
    path: str | None
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    importance: float
    metadata: Mapping[str, Any]
    format: str
    chunks: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    accessed_at: datetime | None = None
    access_count: int = 0

    @property
    def scope(self) -> Literal["session", "global"]:
        """Say whether it belongs to one session or to the whole space."""
        return "global" if self.session_id is None else "session"


@dataclass(frozen=True, slots=True)
class Filter:
    """What a memory must be to be considered at all; `None` and `()` mean no restriction."""

    space: str
    session_id: str | None = None
    include_global: bool = True
    kind: tuple[str, ...] = ()
    agent_id: str | None = None
    session_iter: int | None = None
    task_code: str | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    match: Match = "any"
    path: str | None = None
    min_importance: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    as_of: datetime | None = None
    include_expired: bool = False


@dataclass(frozen=True, slots=True)
class SaveResult:
    """What became of one saved text."""

    memory_id: str
    status: SaveStatus
    chunks: int
    content_hash: str
    created_at: datetime
    pending_vectors: int


@dataclass(frozen=True, slots=True)
class LegExplanation:
    """Where one leg of the search placed a hit."""

    rank: int
    score: float
    contribution: float
    terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit stands where it stands."""

    fusion: str
    final_score: float
    fts: LegExplanation | None = None
    vector: LegExplanation | None = None


@dataclass(frozen=True, slots=True)
class MemoryFields:
    """The memory's own fields that every hit carries."""

    memory_id: str
    kind: str
    title: str | None
    summary: str
    session_id: str | None
    agent_id: str | None
    session_iter: int | None
    task_code: str | None
    path: str | None
    tags: tuple[str, ...]
    importance: float
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ChunkHit(MemoryFields):
    """A fine result: one passage."""

    chunk_id: str
    chunk_index: int
    chunk_content: str
    chunk_type: str
    header_path: str
    level: int
    start_line: int
    end_line: int
    similarity: float | None
    score: float
    snippet: str
    source: Literal["chunk"] = "chunk"
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class SectionHit(MemoryFields):
    """A medium result: a whole section in which passages matched."""

    section_header: str
    section_content: str
    header_path: str
    start_line: int
    end_line: int
    chunks_in_section: int
    matched_chunks: int
    match_ratio: float
    auto_merged: bool
    similarity: float | None
    score: float
    snippet: str
    source: Literal["expanded_section"] = "expanded_section"
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class MemoryHit(MemoryFields):
    """A coarse result: a whole memory, ranked by its best passage or merely listed."""

    content: str
    content_hash: str
    entities: tuple[str, ...]
    metadata: Mapping[str, Any]
    matching_chunks: int
    total_chunks: int
    similarity: float | None
    score: float
    snippet: str
    source: Literal["full_document"] = "full_document"
    source_type: Literal["ranked", "scoped"] = "ranked"
    explanation: Explanation | None = None


Hit = ChunkHit | SectionHit | MemoryHit


@dataclass(frozen=True, slots=True)
class IndexState:
    """How much there is to search, and how much of it has vectors."""

    memories: int
    chunks: int
    pending_vectors: int
    model: str | None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The envelope around the hits."""

    query: str
    mode: Mode
    granularity: Granularity
    results: tuple[Hit, ...]
    total_results: int
    has_more: bool
    degraded: str | None
    index: IndexState
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class ChunkWindow:
    """A passage with its neighbours."""

    memory_id: str
    chunk_id: str
    target_chunk_index: int
    context_window: int
    chunks_returned: int
    expanded_content: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A listing of memories, newest first."""

    memories: tuple[Memory, ...]
    total: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class Session:
    """What one agent did in one session."""

    session_id: str
    agent_id: str | None
    memory_count: int
    latest_iter: int | None
    first_activity: datetime
    latest_activity: datetime
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a store at a glance."""

    store: str
    space: str
    schema_version: int
    index: IndexState
    vectors: int
    spaces: int
    sessions: int
    size_bytes: int
    index_bytes: int
    writable: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the doctor looked at, what it saw, and what to do about it."""

    check: str
    ok: bool
    message: str
    hint: str = ""
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A document that was written to a file."""

    memory_id: str
    file_path: str
    file_size_bytes: int
    estimated_tokens: int


def to_wire(value: Any) -> Any:
    """Turn nouns into what JSON can carry: the one shape every door shows."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_wire(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_wire(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(each) for each in value]
    return value
