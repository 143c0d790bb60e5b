"""Count this process's work in memory, and add it to the ledger from time to time.

A search pays for a lock and a few additions. A separate thread writes the file at most every few
seconds, and when the store is closed or the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import heapq
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from byheart.contracts import Count, Embedder, Ledger, RemembersQueries, Tally
from byheart.model import (
    VERDICTS,
    CacheStats,
    Inventory,
    Latency,
    QueryStats,
    SaveStats,
    SaveStatus,
    SlowQuery,
    Stats,
    Verdict,
    WorkStats,
)

SLOWEST_KEPT = 10
_FLUSH_SECONDS = 5.0
# Another process may hold the ledger; after this many attempts, the counts wait for the next count.
_FLUSH_ATTEMPTS = 5
_QUERY_CHARS = 200
# Latency buckets grow by a twelfth: percentiles are accurate within 5 %, from 10 µs to 10 hours.
_SHORTEST_MS, _BUCKETS_PER_DOUBLING, _LAST_BUCKET = 0.01, 8, 255
_WHOLE_STORE = ""
_LATENCY, _QUERY_MS, _SLOW = "latency", "query_ms", "slow_queries"
_SAVES, _WORK, _WORK_SECONDS = "saves", "index_work", "index_seconds"
_COLD_STARTS = "cold_starts"
_VERDICTS, _HITS, _MISSES = "verdicts", "cache_hits", "cache_misses"
_QUERY_VECTORS, _TEXT_VECTORS = "query_vectors", "text_vectors"


class _Queries:
    """Count the queries of one space and kind of search, as cheaply as possible."""

    __slots__ = ("buckets", "cold_starts", "slow", "slowest", "total_ms", "verdicts")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.total_ms = 0.0
        self.slow = 0
        self.cold_starts = 0
        self.slowest: list[tuple[float, float, str]] = []
        self.verdicts: dict[Verdict, int] = {}

    def count(self, query: str, elapsed_ms: float, slow: bool, verdict: Verdict | None) -> None:
        self._count_time(elapsed_ms, verdict)
        self.slow += slow
        self._compare(query, elapsed_ms)

    def count_cold_start(self, elapsed_ms: float, verdict: Verdict | None) -> None:
        """Count a query that waited for the model or the index: it says nothing of searching."""
        self.cold_starts += 1
        self._count_time(elapsed_ms, verdict)

    def _count_time(self, elapsed_ms: float, verdict: Verdict | None) -> None:
        if verdict is not None:
            self.verdicts[verdict] = self.verdicts.get(verdict, 0) + 1
        bucket = _bucket_of(elapsed_ms)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.total_ms += elapsed_ms

    def _compare(self, query: str, elapsed_ms: float) -> None:
        if len(self.slowest) < SLOWEST_KEPT:
            heapq.heappush(self.slowest, (elapsed_ms, time.time(), query[:_QUERY_CHARS]))
        elif elapsed_ms > self.slowest[0][0]:
            heapq.heapreplace(self.slowest, (elapsed_ms, time.time(), query[:_QUERY_CHARS]))

    def add_to(self, tally: Tally, space: str, kind: str) -> None:
        for bucket, number in self.buckets.items():
            _add(tally.counts, Count(space, _LATENCY, kind, bucket), number)
        _add(tally.counts, Count(space, _QUERY_MS, kind), self.total_ms)
        for verdict, number in self.verdicts.items():
            _add(tally.counts, Count(space, _VERDICTS, verdict), number)
        if self.slow:
            _add(tally.counts, Count(space, _SLOW, kind), self.slow)
        if self.cold_starts:
            _add(tally.counts, Count(space, _COLD_STARTS, kind), self.cold_starts)
        tally.slowest[space] = slowest_of(
            [
                *tally.slowest.get(space, ()),
                *(
                    SlowQuery(kind, query, round(elapsed_ms, 3), datetime.fromtimestamp(at, UTC))
                    for elapsed_ms, at, query in self.slowest
                ),
            ]
        )


class Observer:
    """Count the work of one open store, for `stats`."""

    def __init__(
        self, ledger: Ledger | None, *, collecting: bool, slow_query_ms: float, embedder: Embedder
    ) -> None:
        self._ledger = ledger
        self._collecting = collecting
        self._slow_query_ms = slow_query_ms
        self._query_cache: Callable[[], tuple[int, int]] = (
            embedder.query_cache if isinstance(embedder, RemembersQueries) else lambda: (0, 0)
        )
        self._lock = threading.Lock()
        self._flushing = threading.RLock()
        self._counted = Tally()
        self._queries: dict[tuple[str, str], _Queries] = {}
        # The kinds of search that have what they need: the model, the index of the space.
        self._warm: set[tuple[str, str]] = set()
        self._waiting = False
        self._cache_seen = self._query_cache()
        _open_observers.add(self)

    # --- Counting -----------------------------------------------------------------------------

    def searched(
        self, space: str, kind: str, query: str, elapsed_ms: float, verdict: Verdict | None = None
    ) -> None:
        """Count a query of one kind of search, and the verdict of its answer."""
        if not self._collecting:
            return
        with self._lock:
            try:
                queries = self._queries[space, kind]
            except KeyError:
                queries = self._queries[space, kind] = _Queries()
            slow = elapsed_ms > self._slow_query_ms
            if slow and (space, kind) not in self._warm:
                queries.count_cold_start(elapsed_ms, verdict)
            else:
                queries.count(query, elapsed_ms, slow, verdict)
            self._warm.add((space, kind))
        if not self._waiting:
            self._flush_soon()

    def saved(self, space: str, status: SaveStatus, number: int = 1) -> None:
        """Count the outcomes of saved texts."""
        self._count(Count(space, _SAVES, status), number)

    def embedded(self, made: int, reused: int) -> None:
        """Count the texts whose vectors were computed, and those whose vectors were reused."""
        self._count(Count(_WHOLE_STORE, _MISSES, _TEXT_VECTORS), made)
        self._count(Count(_WHOLE_STORE, _HITS, _TEXT_VECTORS), reused)

    def indexed(self, work: str, seconds: float) -> None:
        """Count work on the index."""
        self._count(Count(_WHOLE_STORE, _WORK, work), 1)
        self._count(Count(_WHOLE_STORE, _WORK_SECONDS, work), seconds)
        if self._collecting:
            with self._lock:
                self._counted.latest[work] = seconds

    def _count(self, count: Count, number: float) -> None:
        if self._collecting and number:
            with self._lock:
                _add(self._counted.counts, count, number)
            self._flush_soon()

    # --- The ledger ---------------------------------------------------------------------------

    def _flush_soon(self) -> None:
        # Each flush has its own thread, so that idle stores cause no wake-ups.
        if self._waiting or self._ledger is None:
            return
        self._waiting = True
        with contextlib.suppress(RuntimeError):  # the interpreter is about to end
            threading.Thread(target=self._flush_later, name="byheart-stats", daemon=True).start()

    def _flush_later(self) -> None:
        for _ in range(_FLUSH_ATTEMPTS):
            time.sleep(_FLUSH_SECONDS)
            self._waiting = False
            if self.flush():
                return

    def flush(self) -> bool:
        """Add the counts to the ledger; keep them, and return False, if that fails now."""
        if self._ledger is None:
            return True
        with self._flushing:
            taken = self._take()
            if (taken.counts or taken.slowest) and not self._ledger.add(taken):
                with self._lock:
                    self._counted = _merged(taken, self._counted)
                return False
        return True

    def _take(self) -> Tally:
        with self._lock:
            self._gather()
            taken, self._counted = self._counted, Tally()
        return taken

    def _gather(self) -> None:
        """Merge the counts from different places."""
        for (space, kind), queries in self._queries.items():
            queries.add_to(self._counted, space, kind)
        self._queries.clear()
        self._count_query_cache()

    def _count_query_cache(self) -> None:
        now, before = self._query_cache(), self._cache_seen
        self._cache_seen = now
        for name, number in ((_HITS, now[0] - before[0]), (_MISSES, now[1] - before[1])):
            if number and self._collecting:
                _add(self._counted.counts, Count(_WHOLE_STORE, name, _QUERY_VECTORS), number)

    def clear_queries(self) -> None:
        """Delete the texts of all queries: they may contain a forgotten text."""
        with self._flushing:
            with self._lock:
                self._gather()
                self._counted.slowest.clear()
            if self._ledger is not None:
                self._ledger.clear_queries()

    def reset(self, space: str) -> None:
        """Reset the counts of a space and of the whole store."""
        with self._flushing:
            self.flush()
            with self._lock:  # for stores without a ledger, or while it is unavailable
                self._gather()
                for count in [each for each in self._counted.counts if each.space in ("", space)]:
                    del self._counted.counts[count]
                self._counted.latest.clear()
                self._counted.slowest.pop(space, None)
            if self._ledger is not None:
                self._ledger.reset(space)

    # --- Results ------------------------------------------------------------------------------

    def tally(self, space: str) -> Tally:
        """Return the counts of all processes; the last few seconds of others may be missing."""
        with self._flushing:
            written = Tally() if self._ledger is None else self._ledger.read(space)
            with self._lock:
                self._gather()
                return _merged(written, self._counted)

    def stats(self, store: str, space: str, held: Inventory) -> Stats:
        """Combine the contents of a space with the counts."""
        tally = self.tally(space)
        counts = {each: n for each, n in tally.counts.items() if each.space in ("", space)}
        return Stats(
            store=store,
            space=space,
            memories=held.index.memories,
            kinds=held.kinds,
            chunks=held.index.chunks,
            vectors=held.vectors,
            pending_vectors=held.index.pending_vectors,
            model=held.index.model,
            coverage_percent=_coverage(held.index.chunks, held.index.pending_vectors),
            sizes=held.sizes,
            since=tally.since,
            collecting=self._collecting,
            queries=self._query_stats(counts, slowest_of(tally.slowest.get(space, ()))),
            saves=SaveStats(
                *(int(counts.get(Count(space, _SAVES, each), 0)) for each in SaveStats.__slots__)
            ),
            index_work=_work(counts, tally.latest),
            caches={name: _cache(counts, name) for name in (_QUERY_VECTORS, _TEXT_VECTORS)},
        )

    def _query_stats(
        self, counts: Mapping[Count, float], slowest: Sequence[SlowQuery]
    ) -> QueryStats:
        kinds = sorted({count.kind for count in counts if count.name == _LATENCY})
        return QueryStats(
            total=_latency(counts, kinds),
            kinds={kind: _latency(counts, [kind]) for kind in kinds},
            slowest=tuple(slowest),
            slow_query_ms=self._slow_query_ms,
            verdicts=_verdicts(counts),
            cold_starts=int(
                sum(number for each, number in counts.items() if each.name == _COLD_STARTS)
            ),
        )


_open_observers: weakref.WeakSet[Observer] = weakref.WeakSet()


if hasattr(os, "register_at_fork"):
    # A forked child writes no counts at its end: its parent does.
    os.register_at_fork(after_in_child=_open_observers.clear)


@atexit.register
def _flush_all() -> None:
    for observer in list(_open_observers):
        observer.flush()


def slowest_of(queries: Iterable[SlowQuery]) -> list[SlowQuery]:
    """Return the slowest queries of each kind, the slowest first."""
    kept: dict[str, list[SlowQuery]] = {}
    for each in sorted(queries, key=lambda query: (-query.elapsed_ms, query.at)):
        same = kept.setdefault(each.kind, [])
        if len(same) < SLOWEST_KEPT:
            same.append(each)
    chosen = [query for same in kept.values() for query in same]
    return sorted(chosen, key=lambda query: (-query.elapsed_ms, query.at))


def _add(counts: dict[Count, float], count: Count, number: float) -> None:
    counts[count] = counts.get(count, 0) + number


def _merged(first: Tally, second: Tally) -> Tally:
    counts = dict(first.counts)
    for count, number in second.counts.items():
        _add(counts, count, number)
    slowest = {space: list(queries) for space, queries in first.slowest.items()}
    for space, queries in second.slowest.items():
        slowest[space] = slowest_of([*slowest.get(space, ()), *queries])
    return replace(first, counts=counts, latest=first.latest | second.latest, slowest=slowest)


def _bucket_of(elapsed_ms: float) -> int:
    if elapsed_ms <= _SHORTEST_MS:
        return 0
    return min(_LAST_BUCKET, int(math.log2(elapsed_ms / _SHORTEST_MS) * _BUCKETS_PER_DOUBLING))


def _latency(counts: Mapping[Count, float], kinds: Sequence[str]) -> Latency:
    buckets: dict[int, float] = {}
    total_ms = slow = 0.0
    for each, number in counts.items():
        if each.kind in kinds:
            if each.name == _LATENCY:
                buckets[each.bucket] = buckets.get(each.bucket, 0) + number
            total_ms += number * (each.name == _QUERY_MS)
            slow += number * (each.name == _SLOW)
    count = int(sum(buckets.values()))
    if not count:
        return Latency(0, None, None, None, None, 0, 0.0)
    return Latency(
        count=count,
        mean_ms=round(total_ms / count, 3),
        p50_ms=_percentile(buckets, 0.5),
        p95_ms=_percentile(buckets, 0.95),
        p99_ms=_percentile(buckets, 0.99),
        slow=int(slow),
        slow_rate=round(slow / count, 6),
    )


def _percentile(buckets: Mapping[int, float], share: float) -> float:
    """Return the middle of the bucket that contains the given percentile."""
    wanted, seen = math.ceil(share * sum(buckets.values())), 0.0
    for bucket, number in sorted(buckets.items()):  # noqa: B007 - the last one is used
        seen += number
        if seen >= wanted:
            break
    return round(_SHORTEST_MS * 2 ** ((bucket + 0.5) / _BUCKETS_PER_DOUBLING), 3)


def _verdicts(counts: Mapping[Count, float]) -> dict[Verdict, int]:
    found = dict.fromkeys(VERDICTS, 0)
    for each, number in counts.items():
        if each.name == _VERDICTS and each.kind in VERDICTS:
            found[each.kind] += int(number)
    return found


def _work(counts: Mapping[Count, float], latest: Mapping[str, float]) -> dict[str, WorkStats]:
    return {
        each.kind: WorkStats(
            int(number),
            round(counts.get(Count(_WHOLE_STORE, _WORK_SECONDS, each.kind), 0.0), 6),
            round(latest.get(each.kind, 0.0), 6),
        )
        for each, number in sorted(counts.items())
        if each.name == _WORK
    }


def _cache(counts: Mapping[Count, float], name: str) -> CacheStats:
    hits = int(counts.get(Count(_WHOLE_STORE, _HITS, name), 0))
    misses = int(counts.get(Count(_WHOLE_STORE, _MISSES, name), 0))
    asked = hits + misses
    return CacheStats(hits, misses, round(hits / asked, 4) if asked else None)


def _coverage(chunks: int, pending: int) -> float:
    if not chunks:
        return 100.0
    # Round down, so that incomplete coverage never shows as 100 %.
    return math.floor(10_000 * (chunks - pending) / chunks) / 100
