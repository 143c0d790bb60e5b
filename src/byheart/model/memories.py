"""Define memories, the passages they are cut into, and the entities they name.

The fields of a memory are spelled out here for readers and type checkers, and nowhere else: in
`Memory`, in `Filter`, and as the keywords that verbs take (`FilterFields`, `SavedFields`,
`LoggedFields`, `ChangedFields`). They agree with the table in `model/fields.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, TypedDict

from byheart.startup.dataclass_types import dataclass

Match = Literal["any", "all"]
Scope = Literal["session", "global"]
SaveStatus = Literal["created", "unchanged", "updated"]
Origin = Literal["user", "agent", "tool", "file", "import"]
Operation = Literal[
    "create",
    "update",
    "supersede",
    "forget",
    "restore",
    "pin",
    "unpin",
    "trust",
    "distrust",
]

ORIGINS: tuple[Origin, ...] = ("user", "agent", "tool", "file", "import")

HEADING_SEPARATOR = " > "
# The type of a chunk that is too short to be embedded: searches find it only by its words.
ASIDE = "aside"
# The type of a chunk that repeats a text from the prompt: it is stored, but never found.
ECHO = "echo"
# The types of chunks that need no vectors.
UNEMBEDDED = (ASIDE, ECHO)
# The client id of a session's running summary. No caller can give a turn an empty client id.
RUNNING_SUMMARY_ID = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading above a passage; `start_char` tells two headings with the same title apart."""

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
        """Give the headings of the section that the chunk belongs to."""
        return section_of(self.headings)


def text_id(memory_id: str, version: int | None) -> str:
    """Make the id of a text: the current text, or the last text of an earlier version."""
    return memory_id if version is None else f"{memory_id}@{version}"


def client_id_of(path: str) -> str:
    """Make the client id of a file's memory; two files with the same text are two memories."""
    return f"file:{path}"


def is_tool_output(role: str | None, kind: str) -> bool:
    """Say whether a text is the output of a tool, by its speaker or its kind."""
    return role == "tool" or kind == "tool_output"


def is_message(role: str | None, kind: str, client_id: str | None) -> bool:
    """Say whether a text of a session was said there: no tool output, no running summary.

    The neighbours of a turn are messages.
    """
    return not is_tool_output(role, kind) and client_id != RUNNING_SUMMARY_ID


def usual_origin(
    kind: str,
    role: str | None,
    path: str | None,
    agent_id: str | None,
    client_id: str | None = None,
) -> Origin:
    """Derive the origin of a text from its kind, its speaker and the agent that saved it."""
    if is_tool_output(role, kind):
        return "tool"
    if kind == "file" or path is not None:
        return "file"
    if role is not None:
        return "user" if role == "user" else "agent"
    return "agent" if agent_id is not None or client_id == RUNNING_SUMMARY_ID else "user"


def section_of(headings: tuple[Heading, ...]) -> tuple[Heading, ...]:
    """Give the headings down to the first at depth two or more: the section of a passage.

    A document that starts at `##` is therefore grouped by that heading alone.
    """
    for depth, heading in enumerate(headings, start=1):
        if heading.level >= 2:
            return headings[:depth]
    return headings


@dataclass(frozen=True, slots=True)
class Memory:
    """One saved text with everything known about it.

    `damaged` says that the hash of `content` differs from the saved hash.
    """

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
    version: int = 1
    replaced_at: datetime | None = None
    superseded_by: str | None = None
    forgotten_at: datetime | None = None
    derived: tuple[str, ...] = ()
    role: str | None = None
    client_id: str | None = None
    pinned_at: datetime | None = None
    origin: Origin = "user"
    language: str = "und"
    untrusted_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    damaged: bool = False

    @property
    def trusted(self) -> bool:
        """Say whether the memory may enter a prompt unasked."""
        return self.untrusted_at is None

    @property
    def scope(self) -> Scope:
        """Say whether the memory belongs to one session or to the whole space."""
        return "global" if self.session_id is None else "session"


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions that a memory must satisfy; `None` and `()` mean no restriction."""

    space: str
    session_id: str | None = None
    include_global: bool = True
    kind: tuple[str, ...] = ()
    origin: tuple[Origin, ...] = ()
    agent_id: str | None = None
    session_iter: int | None = None
    task_code: str | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    match: Match = "any"
    path: str | None = None
    language: str | None = None
    min_importance: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    as_of: datetime | None = None
    include_expired: bool = False
    trusted: bool | None = None
    scope: Scope | None = None
    source_label: tuple[str, ...] = ()
    # Keys with their values as JSON: unlike Python's, these tell `true` from 1.
    metadata: tuple[tuple[str, str], ...] = ()
    # Whether another memory superseded it, or it is not valid at the moment in question.
    superseded: bool | None = None
    forgotten: bool = False


class ContextFilters(TypedDict, total=False):
    """List the filters for memories that a session sees; a missing one restricts nothing."""

    kind: str | Sequence[str] | None
    agent_id: str | None
    session_iter: int | str | None
    task_code: str | None
    tags: Sequence[str] | None
    entities: Sequence[str] | None
    match: str
    path: str | None
    language: str | None
    min_importance: float | None
    created_after: datetime | str | None
    created_before: datetime | str | None
    as_of: datetime | str | None
    include_expired: bool
    space: str | None
    origin: str | Sequence[str] | None
    trusted: bool | None
    scope: str | None
    source_label: str | Sequence[str] | None
    metadata: Mapping[str, Any] | None


class FilterFields(ContextFilters, total=False):
    """List all filters; a missing one restricts nothing."""

    session_id: str | None
    include_global: bool


class GivenFields(TypedDict, total=False):
    """List the fields that `save`, `log` and `update` all take by name."""

    title: str | None
    agent_id: str | None
    session_iter: int | str | None
    task_code: str | None
    tags: Iterable[str] | None
    importance: float | None
    metadata: Mapping[str, Any] | None
    path: str | None
    origin: str | None
    language: str | None


class _LastingFields(GivenFields, total=False):
    summary: str | None
    source: str
    session_id: str | None
    entities: Iterable[str] | None
    ttl_days: float | None
    expires_at: datetime | str | None
    valid_from: datetime | str | None
    valid_until: datetime | str | None


class SavedFields(_LastingFields, total=False):
    """List the fields that `save` takes by name."""

    created_at: datetime | str | None
    trusted: bool | None
    space: str | None


class LoggedFields(GivenFields, total=False):
    """List the fields that `log` takes by name."""

    client_id: str | None
    created_at: datetime | str | None
    trusted: bool | None
    space: str | None


class ChangedFields(_LastingFields, total=False):
    """List the fields that `update` can change; a field that is not given stays as it is."""

    content: str
    kind: str


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The result of saving one text; `degraded` is the reason if vectors are missing.

    `secrets_found` counts probable secrets in the text by kind; `secrets_redacted` says whether the
    settings caused them to be replaced.
    """

    memory_id: str
    status: SaveStatus
    chunks: int
    content_hash: str
    created_at: datetime
    pending_vectors: int
    version: int = 1
    similar: tuple[Similar, ...] = ()
    conflicts: tuple[Contradiction, ...] = ()
    degraded: str | None = None
    secrets_found: Mapping[str, int] = field(default_factory=dict)
    secrets_redacted: bool = False


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory that says almost the same as another."""

    memory_id: str
    similarity: float
    summary: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A memory that has another value for the same subject, and the two sentences that differ.

    `differs` is the kind of value: number, time, name, negation or state.
    """

    memory_id: str
    similarity: float
    differs: str
    said: str
    said_before: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A subject of memories: its name, its aliases, and the number of memories that name it."""

    name: str
    memories: int
    first_seen: datetime | None
    last_seen: datetime | None
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntityPage:
    """A listing of entities, the most used first."""

    entities: tuple[Entity, ...]
    total: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of a memory; `changes` gives `from` and `to` for each field."""

    operation: Operation
    at: datetime
    who: str
    version: int
    reason: str | None
    changes: Mapping[str, Mapping[str, Any]]


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
