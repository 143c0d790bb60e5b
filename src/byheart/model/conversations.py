"""Define conversations: turns, sessions, summaries, and promoted memories."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from byheart.model.memories import Memory, SaveStatus
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class Session:
    """The activity of one agent in one session."""

    session_id: str
    agent_id: str | None
    memory_count: int
    latest_iter: int | None
    first_activity: datetime
    latest_activity: datetime
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionStats:
    """The figures of one session, or of all if `session_id` is null; lengths in characters."""

    session_id: str | None
    total_memories: int
    turns: int
    pinned: int
    kinds: Mapping[str, int]
    origins: Mapping[str, int]
    unique_agents: int
    unique_sessions: int
    unique_tasks: int
    max_session_iter: int | None
    avg_content_length: float
    total_access_count: int
    first_activity: datetime | None
    latest_activity: datetime | None


@dataclass(frozen=True, slots=True)
class ResumedSession:
    """The memories to continue a session with, latest first; `found` if the session exists."""

    session_id: str
    task_code: str | None
    found: bool
    summary: Memory | None
    context: Memory | None
    input_prompts: tuple[Memory, ...]
    reports: tuple[Memory, ...]
    working_memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class Promotion:
    """A memory of a session and its global copy; in a dry run, a new copy has no id yet."""

    memory_id: str
    promoted_id: str | None
    kind: str
    status: SaveStatus
    summary: str


@dataclass(frozen=True, slots=True)
class Promoted:
    """The memories that `promote` copied, or would copy with `dry_run`."""

    session_id: str | None
    promotions: tuple[Promotion, ...]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class RestoredSession:
    """The restored memories of a forgotten session."""

    session_id: str
    memory_ids: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a session: a message, the output of a tool, or a file."""

    memory_id: str
    role: str
    kind: str
    content: str
    created_at: datetime
    client_id: str | None
    agent_id: str | None
    title: str | None
    path: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The turns of a session, oldest first."""

    session_id: str
    turns: tuple[Turn, ...]
    total: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """The running summary of a session: given by an agent, or `extracted` from its turns."""

    session_id: str
    memory_id: str
    content: str
    status: SaveStatus
    version: int
    extracted: bool
    turns: int
    updated_at: datetime
