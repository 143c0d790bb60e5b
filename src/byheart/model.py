"""The nouns: plain, frozen values without I/O that every room and every door shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

Mode = Literal["hybrid", "vector", "fts"]
Granularity = Literal["fine", "medium", "coarse"]
Fusion = Literal["evidence", "rrf"]
Verdict = Literal["answered", "weak", "none"]
Match = Literal["any", "all"]
SaveStatus = Literal["created", "unchanged", "updated"]
Access = Literal["read", "write"]
Origin = Literal["user", "agent", "tool", "file", "import"]
Operation = Literal["create", "update", "supersede", "forget", "restore", "pin", "unpin"]

MODES: tuple[Mode, ...] = ("hybrid", "vector", "fts")
GRANULARITIES: tuple[Granularity, ...] = ("fine", "medium", "coarse")
FUSIONS: tuple[Fusion, ...] = ("evidence", "rrf")
ACCESSES: tuple[Access, ...] = ("read", "write")
ORIGINS: tuple[Origin, ...] = ("user", "agent", "tool", "file", "import")
HEADING_SEPARATOR = " > "
# A process that keeps a workspace fresh and was not heard of for so long is taken for dead.
STALE_SECONDS = 20.0
# The type of a chunk that is too short to be embedded: it is found by its words alone.
ASIDE = "aside"
# The type of a chunk that repeats what was put into the prompt: it is kept, and not found.
ECHO = "echo"
# What needs no vectors.
UNEMBEDDED = (ASIDE, ECHO)


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


def text_id(memory_id: str, version: int | None) -> str:
    """Name a text of a memory: the current one, or the one an earlier version ended with."""
    return memory_id if version is None else f"{memory_id}@{version}"


def client_id_of(path: str) -> str:
    """Name the memory of a file, so that two files with the same text are two memories."""
    return f"file:{path}"


def usual_origin(
    kind: str,
    role: str | None,
    path: str | None,
    agent_id: str | None,
    client_id: str | None = None,
) -> Origin:
    """Say whose words a text holds if nobody says so: by what it is, who spoke, who saved it."""
    if role == "tool" or kind == "tool_output":
        return "tool"
    if kind == "file" or path is not None:
        return "file"
    if role is not None:
        return "user" if role == "user" else "agent"
    # The running summary of a session is named ''.
    return "agent" if agent_id is not None or client_id == "" else "user"


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
    version: int = 1
    replaced_at: datetime | None = None
    superseded_by: str | None = None
    forgotten_at: datetime | None = None
    derived: tuple[str, ...] = ()
    role: str | None = None
    client_id: str | None = None
    pinned_at: datetime | None = None
    origin: Origin = "user"

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
    origin: tuple[Origin, ...] = ()
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
    superseded: bool | None = None
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class SaveResult:
    """What became of one saved text."""

    memory_id: str
    status: SaveStatus
    chunks: int
    content_hash: str
    created_at: datetime
    pending_vectors: int
    version: int = 1
    similar: tuple[Similar, ...] = ()


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory that says almost the same as another."""

    memory_id: str
    similarity: float
    summary: str


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Memories that could be one: which to keep, why that one, and the others, nearest first."""

    keep: str
    summary: str
    why: str
    others: tuple[Similar, ...]


@dataclass(frozen=True, slots=True)
class Dedupe:
    """What `dedupe` proposes or did; `left_out` counts pairs that differ in a name or a number."""

    proposals: tuple[MergeProposal, ...]
    total: int
    has_more: bool
    left_out: int
    threshold: float
    applied: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class Merged:
    """What a memory is after others were merged into it."""

    memory_id: str
    version: int
    merged: tuple[str, ...]
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    access_count: int


@dataclass(frozen=True, slots=True)
class Entity:
    """What memories are about: its name, other spellings, and how many memories name it now."""

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
class Removal:
    """What was taken out for good, and where was looked for what might be left."""

    memories: int
    texts: int
    chunks: int
    vectors: int
    history: int
    files_removed: tuple[str, ...]
    files_searched: tuple[str, ...]
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a `forget` or `cleanup` did, or with `dry_run` would do."""

    memory_ids: tuple[str, ...]
    count: int
    hard: bool
    dry_run: bool
    oldest: datetime | None = None
    newest: datetime | None = None
    expired: int = 0
    removal: Removal | None = None
    still_found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened to a memory; `changes` gives `from` and `to` for each field."""

    operation: Operation
    at: datetime
    who: str
    version: int
    reason: str | None
    changes: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LegExplanation:
    """Where one leg of the search placed a hit; a rank beyond the leg's first ones is not known."""

    rank: int | None
    score: float
    contribution: float
    terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit stands where it stands: what its legs and the turns around it contribute."""

    fusion: str
    final_score: float
    fts: LegExplanation | None = None
    vector: LegExplanation | None = None
    neighbours: float = 0.0


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
    version: int
    replaced_at: datetime | None
    superseded_by: str | None
    role: str | None
    origin: Origin

    @property
    def text_id(self) -> str:
        """Name this text of the memory: by its id, an earlier one by its version as well."""
        return text_id(self.memory_id, self.version if self.replaced_at else None)


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
class VerdictExplanation:
    """What a verdict goes by: figures of the best hit; null where that leg was not asked.

    `coverage` is the share of the question's words that it has, by rarity, `weight` how rare these
    are together, `similarity` its cosine above that of unrelated texts.
    """

    coverage: float | None
    weight: float | None
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the best hit answers a question, how probable that is, and why."""

    verdict: Verdict
    confidence: float
    grounds: VerdictExplanation | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The envelope around the hits; `verdict` and `confidence` are about the best of them all."""

    query: str
    mode: Mode
    granularity: Granularity
    results: tuple[Hit, ...]
    total_results: int
    has_more: bool
    degraded: str | None
    index: IndexState
    elapsed_ms: float
    verdict: Verdict
    confidence: float
    remark: str | None = None
    grounds: VerdictExplanation | None = None


@dataclass(frozen=True, slots=True)
class RecalledSummary:
    """A memory as the index of a recall lists it."""

    id: str
    summary: str


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory that a recall gives in full; every field is paid for in tokens."""

    id: str
    kind: str
    role: str | None
    origin: Origin
    title: str | None
    content: str
    importance: float
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    session_id: str | None
    created_at: datetime
    superseded_by: str | None
    score: float


@dataclass(frozen=True, slots=True)
class RecallExplanation:
    """What a memory's score is made of: four parts, each from 0 to 1 and not yet weighed."""

    id: str
    score: float
    relevance: float
    importance: float
    recency: float
    frequency: float


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """The memories behind a query, within a token budget; explanations stand outside of it."""

    query: str
    mode: Mode
    index: tuple[RecalledSummary, ...]
    details: tuple[RecalledMemory, ...]
    total_count: int
    has_more: bool
    tokens_used: int
    verdict: Verdict
    confidence: float
    degraded: str | None = None
    explanations: tuple[RecallExplanation, ...] | None = None
    remark: str | None = None
    grounds: VerdictExplanation | None = None


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
class SessionStats:
    """What one session holds, or with `session_id` null all of them; lengths are in characters."""

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
    """What there is to take up a session again with, the latest first; `found` if it is known."""

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
    """A memory of a session and its copy for all; in a dry run, one that is new has no id yet."""

    memory_id: str
    promoted_id: str | None
    kind: str
    status: SaveStatus
    summary: str


@dataclass(frozen=True, slots=True)
class Promoted:
    """What `promote` copied, or with `dry_run` would copy."""

    session_id: str | None
    promotions: tuple[Promotion, ...]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class RestoredSession:
    """What was brought back of a session that had been forgotten."""

    session_id: str
    memory_ids: tuple[str, ...]
    count: int


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
    wanted_model: str | None = None
    remark: str | None = None
    workspaces: tuple[Workspace, ...] = ()


@dataclass(frozen=True, slots=True)
class Reembedding:
    """What became of a change of model; `made` and `reused` count the texts embedded or known."""

    model_from: str | None
    model_to: str
    switched: bool
    chunks: int
    made: int
    reused: int
    pending_vectors: int
    old_vectors: int
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the doctor looked at, what it saw, and what to do about it."""

    check: str
    ok: bool
    message: str
    hint: str = ""
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the files of a store take on disk."""

    store_bytes: int
    log_bytes: int
    index_bytes: int
    stats_bytes: int
    backup_bytes: int

    @property
    def total_bytes(self) -> int:
        """Give what they take together."""
        return (
            self.store_bytes
            + self.log_bytes
            + self.index_bytes
            + self.stats_bytes
            + self.backup_bytes
        )


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a space holds, and the files of its store."""

    index: IndexState
    kinds: Mapping[str, int]
    vectors: int
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class SlowQuery:
    """One of the slowest queries; of a long one the beginning."""

    kind: str
    query: str
    elapsed_ms: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Latency:
    """How long queries took; `slow` ones took longer than the setting `slow_query_ms`."""

    count: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    slow: int
    slow_rate: float


@dataclass(frozen=True, slots=True)
class QueryStats:
    """The queries of a space: all of them, by kind of search, and the slowest of each kind."""

    total: Latency
    kinds: Mapping[str, Latency]
    slowest: tuple[SlowQuery, ...]
    slow_query_ms: float


@dataclass(frozen=True, slots=True)
class SaveStats:
    """What became of the texts that were saved in a space."""

    created: int
    unchanged: int
    updated: int


@dataclass(frozen=True, slots=True)
class WorkStats:
    """How often something was done, and how long that took."""

    count: int
    total_seconds: float
    last_seconds: float


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How often something was there already; the rate is `None` until anybody asked."""

    hits: int
    misses: int
    hit_rate: float | None


@dataclass(frozen=True, slots=True)
class Stats:
    """What a space holds, and what its store has done since some moment, in all processes.

    Queries and saves are the space's own; index work and caches are the whole store's.
    """

    store: str
    space: str
    memories: int
    kinds: Mapping[str, int]
    chunks: int
    vectors: int
    pending_vectors: int
    model: str | None
    coverage_percent: float
    sizes: Sizes
    since: datetime | None
    collecting: bool
    queries: QueryStats
    saves: SaveStats
    index_work: Mapping[str, WorkStats]
    caches: Mapping[str, CacheStats]


@dataclass(frozen=True, slots=True)
class BenchFigures:
    """How questions made of the store's own passages were answered in one mode.

    `recall` is the share found among the first k, `called_none` counts those of which the verdict
    said there was nothing, `called_answered` the unrelated ones of which it said there was.
    """

    mode: Mode
    questions: int
    recall: float
    mrr: float
    called_none: int
    unrelated: int
    called_answered: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class BenchRun:
    """The figures of one run, as they are kept to be compared with."""

    at: datetime
    space: str
    chunks: int
    model: str | None
    seed: int
    k: int
    figures: tuple[BenchFigures, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """What a bench found: figures, those of the run before, and in a line if anything is wrong."""

    store: str
    run: BenchRun
    before: BenchRun | None
    runs_kept: int
    ok: bool
    message: str
    findings: tuple[Finding, ...]
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class TransferProgress:
    """How far an export or import has come: `done` of `total` memories, bytes, files or chunks."""

    memories: int
    done: int
    total: int | None
    embedded: int = 0


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote; `path` is `None` for a stream."""

    path: str | None
    format: Literal["jsonl", "markdown"]
    memories: int
    entities: int
    tombstones: int
    vectors: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """What an import left out because it could not be read, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do; `refused` counts texts that had been forgotten for good.

    `sessions`, `turns` and `memories` say what the files of other programs hold, `left_out` what in
    them is no text to keep, `redacted` how many secrets were taken out.
    """

    imported: int
    updated: int
    unchanged: int
    refused: int
    skipped: tuple[Skipped, ...]
    pending_vectors: int
    degraded: str | None
    format: str = "jsonl"
    dry_run: bool = False
    sessions: int = 0
    turns: int = 0
    memories: int = 0
    redacted: int = 0
    shortened: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a store."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A document that was written to a file."""

    memory_id: str
    file_path: str
    file_size_bytes: int
    estimated_tokens: int


@dataclass(frozen=True, slots=True)
class Token:
    """Who may come in over the network: into which space, and how far.

    `last_used_at` is exact to a minute.
    """

    token_id: str
    name: str
    access: Access
    space: str
    session_id: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token with its secret, which is not kept and cannot be shown again."""

    token: Token
    secret: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder whose files are memories; `watched_by` names the process that keeps it fresh."""

    workspace_no: int
    space: str
    root: str
    files: int
    failed: int
    indexed_at: datetime | None
    watched_by: str | None
    beat_at: datetime | None
    behind: int
    trouble: str | None


@dataclass(frozen=True, slots=True)
class FileError:
    """A file that could not be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far the index of a workspace has come: first files are read, then chunks embedded."""

    files: int
    files_total: int
    chunks: int
    vectors: int
    vectors_total: int


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of the files of a workspace.

    Skipped are those that had not changed, empty those that were found to hold no text.
    """

    root: str
    files_indexed: int
    files_moved: int
    files_skipped: int
    files_empty: int
    files_removed: int
    files_forgotten: int
    errors: tuple[FileError, ...]
    chunks: int
    pending_vectors: int
    degraded: str | None
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said in a session, or what a tool or a file brought into it."""

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


ContextPart = Literal["identity", "summary", "pinned", "retrieved", "recent"]
LeftOutReason = Literal[
    "budget",
    "question",
    "recent",
    "pinned",
    "summary",
    "retrieved",
    "duplicate",
    "similar",
    "superseded",
    "unreadable",
]


@dataclass(frozen=True, slots=True)
class ContextItem:
    """Something that a context holds, and where it is from; `cut` if not to its end.

    An identity file has a path and no `memory_id`: that is empty.
    """

    part: ContextPart
    memory_id: str
    chunk_ids: tuple[str, ...]
    kind: str
    role: str | None
    origin: Origin
    title: str | None
    path: str | None
    start_line: int | None
    end_line: int | None
    session_id: str | None
    created_at: datetime
    score: float | None
    tokens: int
    cut: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that could have been in a part of a context, and why it is not."""

    part: ContextPart
    memory_id: str
    chunk_id: str | None
    score: float | None
    reason: LeftOutReason
    tells: str


@dataclass(frozen=True, slots=True)
class ContextReceipt:
    """What a context holds and what not; `tokens` are by part, `frame` is what holds them.

    `counter` names the model whose tokens were counted, or is `estimate`.
    """

    items: tuple[ContextItem, ...]
    left_out: tuple[LeftOut, ...]
    tokens: Mapping[str, int]
    max_tokens: int
    counter: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message as the APIs of language models take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """A piece of a system prompt; with `cache_control`, the provider is to remember it."""

    text: str
    cache_control: Mapping[str, str] | None = None
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class AnthropicPrompt:
    """A context as Anthropic's API takes it."""

    system: tuple[SystemBlock, ...]
    messages: tuple[PromptMessage, ...]


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """What goes into a prompt, within a token budget, as one text and as messages.

    `text` begins with `stable`, which is the same bytes until its content changes.
    """

    session_id: str
    query: str
    mode: Mode
    text: str
    stable: str
    stable_hash: str
    tokens_used: int
    openai: tuple[PromptMessage, ...]
    anthropic: AnthropicPrompt
    receipt: ContextReceipt
    elapsed_ms: float = 0.0
    degraded: str | None = None
    remark: str | None = None


@cache
def _field_names(noun: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(noun))


def to_wire(value: Any) -> Any:
    """Turn nouns into what JSON can carry: the one shape every door shows."""
    if value is None or isinstance(value, str | int | float):  # most of what there is
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_wire(getattr(value, name)) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_wire(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(each) for each in value]
    return value
