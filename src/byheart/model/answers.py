"""Define the answers of searches: hits, the explanations of their ranks, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from byheart.model.memories import Origin, text_id
from byheart.startup.dataclass_types import dataclass

Mode = Literal["hybrid", "vector", "fts"]
Granularity = Literal["fine", "medium", "coarse"]
Fusion = Literal["evidence", "rrf"]
Verdict = Literal["answered", "weak", "none"]
IndexPlace = Literal["memory", "database"]

VERDICTS: tuple[Verdict, ...] = ("answered", "weak", "none")
MODES: tuple[Mode, ...] = ("hybrid", "vector", "fts")
GRANULARITIES: tuple[Granularity, ...] = ("fine", "medium", "coarse")
FUSIONS: tuple[Fusion, ...] = ("evidence", "rrf")
# A hit is related if it is about the question with the first probability at least. Then it has the
# second one as its confidence at least, even if many others are as near.
RELATED_FROM, LEAST_RIGHT = 0.35, 0.25


@dataclass(frozen=True, slots=True)
class RetrieverExplanation:
    """The rank and score of a hit in one retriever; a rank beyond its first hits is unknown."""

    rank: int | None
    score: float
    contribution: float
    terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RerankerExplanation:
    """The score that a reranker gave to a hit's best passage, its rank before, and the time.

    `elapsed_ms` is the time for all passages of the question together.
    """

    score: float
    rank_before: int
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The contributions to a hit's score: of both retrievers, and of the turns around it.

    The sum was multiplied by factors: `form` is below 1 for a turn that is short or only asks and
    for an assistant's long reply, and above 1 for a speaker whom the question names; `time` is
    above 1 near a time that the question names; `file` is below 1 for a test or a generated file;
    `feedback` is the feedback on the memory. If the question names a time and nothing else,
    `time_alone` is added before the last three factors. With a `reranker`, its scores order the
    first hits.
    """

    fusion: str
    final_score: float
    fts: RetrieverExplanation | None = None
    vector: RetrieverExplanation | None = None
    neighbours: float = 0.0
    form: float = 1.0
    feedback: float = 1.0
    time: float = 1.0
    time_alone: float = 0.0
    file: float = 1.0
    reranker: RerankerExplanation | None = None


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A time that a question names: its words, its first moment, and the first moment behind it."""

    text: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class HitConflict:
    """Two hits that contradict each other; `memory_id` is the newer one.

    `differs` is the kind of value in which their sentences differ: number, time, name, negation or
    state.
    """

    memory_id: str
    other_id: str
    differs: str
    says: str
    other_says: str


@dataclass(frozen=True, slots=True)
class MemoryFields:
    """Hold the fields of its memory that every hit carries.

    `damaged` says that the text shown differs from the saved text: the store's file has changed.
    A hit of a workspace also has `relative_path`, the path below the root, and `stale`: the file on
    disk was changed or deleted since it was indexed.
    """

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
    untrusted_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    damaged: bool

    @property
    def text_id(self) -> str:
        """Give the id of this text: the memory's id, for an earlier text with its version."""
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
    snippet_marks: tuple[tuple[int, int], ...] = ()
    source: Literal["chunk"] = "chunk"
    explanation: Explanation | None = None
    relative_path: str | None = None
    stale: bool = False


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
    snippet_marks: tuple[tuple[int, int], ...] = ()
    source: Literal["expanded_section"] = "expanded_section"
    explanation: Explanation | None = None
    relative_path: str | None = None
    stale: bool = False


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
    snippet_marks: tuple[tuple[int, int], ...] = ()
    source: Literal["full_document"] = "full_document"
    source_type: Literal["ranked", "scoped"] = "ranked"
    explanation: Explanation | None = None
    relative_path: str | None = None
    stale: bool = False


Hit = ChunkHit | SectionHit | MemoryHit


@dataclass(frozen=True, slots=True)
class IndexState:
    """The number of memories and chunks to search, and of chunks without vectors.

    `kept_in` says where the index keeps words and vectors: in the `memory` of this process, or, for
    a large space on PostgreSQL, in the `database`.
    """

    memories: int
    chunks: int
    pending_vectors: int
    model: str | None
    kept_in: IndexPlace = "memory"


@dataclass(frozen=True, slots=True)
class VerdictExplanation:
    """The figures of the best hit behind a verdict; null if its retriever was not asked.

    `coverage` is the share of the question's words that the hit contains, weighted by rarity;
    `weight` is the total rarity of these words; `similarity` is the cosine of the hit above that of
    unrelated texts; `chunks` is the number of chunks that were searched; `related` is the
    probability that the hit has to do with the question; `lead` is how much its score exceeds that
    of the next memory, null if scores are cosines or reciprocal ranks.
    """

    coverage: float | None
    weight: float | None
    similarity: float | None
    chunks: int | None
    related: float = 0.0
    lead: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The estimate whether the best hit answers the question, its probability, and the reasons."""

    verdict: Verdict
    confidence: float
    grounds: VerdictExplanation | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer of a search; `verdict` and `confidence` are about the best hit.

    Memories from `times`, which the question names, were preferred. `conflicts` are hits of this
    page that contradict each other: `supersede` marks the one that is no longer true.
    """

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
    times: tuple[NamedTime, ...] = ()
    conflicts: tuple[HitConflict, ...] = ()


@dataclass(frozen=True, slots=True)
class RecalledSummary:
    """A memory as the index of a recall lists it."""

    id: str
    summary: str


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory that a recall gives in full."""

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
    untrusted_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    score: float
    path: str | None = None
    relative_path: str | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class RecallExplanation:
    """The four parts of a memory's score, each from 0 to 1, before they are weighted.

    `time` and `feedback` are factors that are part of the relevance.
    """

    id: str
    score: float
    relevance: float
    importance: float
    recency: float
    frequency: float
    feedback: float = 1.0
    time: float = 1.0


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """The memories for a query within a token budget.

    `text` has the memories in full, and a line for each of the others: the budget counts it.
    Memories from `times`, which the question names, were preferred.
    """

    query: str
    mode: Mode
    index: tuple[RecalledSummary, ...]
    details: tuple[RecalledMemory, ...]
    text: str
    total_count: int
    has_more: bool
    tokens_used: int
    verdict: Verdict
    confidence: float
    # Not `index`, which is the list of memories.
    index_state: IndexState | None = None
    degraded: str | None = None
    explanations: tuple[RecallExplanation, ...] | None = None
    remark: str | None = None
    grounds: VerdictExplanation | None = None
    times: tuple[NamedTime, ...] = ()
