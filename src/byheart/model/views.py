"""Define what people look at: memories in brief, their parts and versions, and a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from byheart.model.memories import Operation, Origin, Similar
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class Brief:
    """A memory in a list: everything but its text."""

    memory_id: str
    kind: str
    title: str | None
    summary: str
    session_id: str | None
    agent_id: str | None
    origin: Origin
    path: str | None
    tags: tuple[str, ...]
    importance: float
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    accessed_at: datetime | None
    access_count: int
    version: int
    pinned_at: datetime | None
    superseded_by: str | None
    forgotten_at: datetime | None


@dataclass(frozen=True, slots=True)
class Briefs:
    """Memories in brief, in the order asked; `missing` names those that are not in the space."""

    memories: tuple[Brief, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryChunk:
    """A passage of a memory as it is searched."""

    chunk_id: str
    index: int
    content: str
    start_char: int
    end_char: int
    start_line: int
    end_line: int
    chunk_type: str
    header_path: str
    token_count: int


@dataclass(frozen=True, slots=True)
class ChunkPage:
    """Passages of a memory, in order."""

    memory_id: str
    chunks: tuple[MemoryChunk, ...]
    total: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class SimilarMemories:
    """The memories nearest to one in meaning, best first."""

    memory_id: str
    similar: tuple[Similar, ...]
    threshold: float
    degraded: str | None


@dataclass(frozen=True, slots=True)
class TextVersion:
    """One text of a memory, and when it was the current one; `version` is its last version."""

    version: int
    title: str | None
    content: str
    since_at: datetime
    replaced_at: datetime | None


@dataclass(frozen=True, slots=True)
class VersionPage:
    """The texts of a memory, the current one first."""

    memory_id: str
    versions: tuple[TextVersion, ...]
    total: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class RenderedMemory:
    """A text as HTML without scripts, styles and remote content; `cut` if its end is missing."""

    memory_id: str
    version: int
    format: str
    html: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Day:
    """The number of memories that were saved on a day, by kind."""

    day: str
    memories: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Lane:
    """A session in a timeline: when it began and ended, and how much was saved in it."""

    session_id: str
    agents: tuple[str, ...]
    memories: int
    turns: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Timeline:
    """The days with memories, oldest first, and a page of sessions, latest first."""

    days: tuple[Day, ...]
    sessions: tuple[Lane, ...]
    sessions_total: int
    has_more: bool
    memories: int
    first_at: datetime | None
    last_at: datetime | None
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class ChangedMemory:
    """A memory that changed.

    `operation` is `create` if the memory is new since then. Otherwise it is the last event of its
    history, or `update` if that event is its creation: then only its vectors changed.
    """

    memory_id: str
    operation: Operation
    session_id: str | None
    kind: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The memories of a space that changed since a mark, the latest change first.

    `mark` continues from here. `more` says that other memories changed as well, or that the mark
    asked for is not from this store.
    """

    mark: str
    memories: tuple[ChangedMemory, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class MapRegion:
    """A part of a map: its middle, its size, and the words that are frequent only there."""

    region: int
    x: float
    y: float
    memories: int
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpaceMap:
    """Memories as points between 0 and 1: near points are often alike in meaning.

    The lists have one value for each memory; `kind` is a place in `kinds`, and `region` the number
    of a region. The map is a hint: it shows two dimensions of many. `total` counts the memories
    with vectors; if there are more than points, every n-th is shown.
    """

    memory_ids: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    kind: tuple[int, ...]
    kinds: tuple[str, ...]
    region: tuple[int, ...]
    regions: tuple[MapRegion, ...]
    total: int
    made_at: datetime
    degraded: str | None
