"""Define the figures of a store: contents, sizes, usage, and quality of answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from byheart.model.answers import IndexState, Mode, Verdict
from byheart.model.upkeep import Finding
from byheart.model.workspaces import Workspace
from byheart.startup.dataclass_types import dataclass


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
class Sizes:
    """The sizes of a store's files on disk."""

    store_bytes: int
    log_bytes: int
    index_bytes: int
    stats_bytes: int
    backup_bytes: int

    @property
    def total_bytes(self) -> int:
        """Give the total size of the files."""
        return (
            self.store_bytes
            + self.log_bytes
            + self.index_bytes
            + self.stats_bytes
            + self.backup_bytes
        )


@dataclass(frozen=True, slots=True)
class Inventory:
    """The contents of a space in numbers, and the files of its store."""

    index: IndexState
    kinds: Mapping[str, int]
    vectors: int
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class SlowQuery:
    """One of the slowest queries; a long query is cut."""

    kind: str
    query: str
    elapsed_ms: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Latency:
    """The times of queries; `slow` counts those above the setting `slow_query_ms`."""

    count: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    slow: int
    slow_rate: float


@dataclass(frozen=True, slots=True)
class QueryStats:
    """The queries of a space: all of them, by kind of search, and the slowest of each kind.

    `verdicts` counts the answers by what `search`, `recall` and `context` said of their best hit.
    `cold_starts` counts queries that were slow because they were the first of their kind in an
    open store, which loads the model and the index: they are not among the slow ones.
    """

    total: Latency
    kinds: Mapping[str, Latency]
    slowest: tuple[SlowQuery, ...]
    slow_query_ms: float
    verdicts: Mapping[Verdict, int]
    cold_starts: int


@dataclass(frozen=True, slots=True)
class SaveStats:
    """The number of saved texts in a space, by result."""

    created: int
    unchanged: int
    updated: int


@dataclass(frozen=True, slots=True)
class WorkStats:
    """The number of times something was done, and the time that it took."""

    count: int
    total_seconds: float
    last_seconds: float


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The hits and misses of a cache; the rate is `None` before the first access."""

    hits: int
    misses: int
    hit_rate: float | None


@dataclass(frozen=True, slots=True)
class Stats:
    """The contents of a space, and the work of its store since a moment, in all processes.

    Queries and saves are counted for the space; index work and caches for the whole store.
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
    """The figures of one search mode for questions made from the store's own passages.

    `recall` is the share of questions whose passage was among the first k hits. `called_none`
    counts questions for which the verdict wrongly said that there is no answer; `called_answered`
    counts unrelated questions for which the verdict said that there is one.
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
    """The figures of one benchmark run, kept for later comparison."""

    at: datetime
    space: str
    chunks: int
    model: str | None
    seed: int
    k: int
    figures: tuple[BenchFigures, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """The result of a benchmark: its figures, those of the previous run, and any problem found."""

    store: str
    run: BenchRun
    before: BenchRun | None
    runs_kept: int
    ok: bool
    message: str
    findings: tuple[Finding, ...]
    elapsed_ms: float
