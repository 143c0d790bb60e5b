"""Write metrics for Prometheus: requests and latencies of this server, figures of the store.

No client library is used: the text format is a few lines, and counting in the event loop needs no
locks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from starlette.types import Scope

from byheart.interfaces.rest.work import Lane
from byheart.model import Stats

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ELSEWHERE = "elsewhere"
# A client can send any word as a method, but the number of different labels must stay small.
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_OTHER_METHOD = "other"

Labels = Mapping[str, str]
Snapshot = dict[str, list[list[Any]]]


class Observation(NamedTuple):
    """Describe one request for counting; `space` decides who may see the count."""

    space: str | None
    method: str
    route: str
    mode: str
    status: int
    seconds: float

    @classmethod
    def of(cls, scope: Scope, status: int, seconds: float) -> Observation:
        """Describe a request; all unknown paths share one label, so that labels stay few."""
        state, route = scope["state"], scope.get("route")
        grant = state.get("grant")
        method = scope["method"] if scope["method"] in _METHODS else _OTHER_METHOD
        return cls(
            None if grant is None else grant.space,
            method if route else "",
            getattr(route, "path", _ELSEWHERE),
            state.get("mode", ""),
            status,
            seconds,
        )


class _Histogram:
    """Count the durations of requests in buckets."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(_BOUNDS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """Count requests, and render all figures as text."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str | None, str, str, int], int] = defaultdict(int)
        self._latencies: dict[tuple[str | None, str, str], _Histogram] = defaultdict(_Histogram)

    def observe(self, seen: Observation) -> None:
        """Count a request."""
        self._requests[seen.space, seen.method, seen.route, seen.status] += 1
        self._latencies[seen.space, seen.route, seen.mode].add(seen.seconds)

    def snapshot(self) -> Snapshot:
        """Give all counts as values of JSON."""
        return {
            "requests": [[*key, number] for key, number in self._requests.items()],
            "latencies": [
                [*key, each.buckets, each.seconds] for key, each in self._latencies.items()
            ],
        }

    def add(self, counted: Snapshot) -> None:
        """Add the counts of another process."""
        for *key, number in counted["requests"]:
            self._requests[tuple(key)] += number
        for *key, buckets, seconds in counted["latencies"]:
            histogram = self._latencies[tuple(key)]
            histogram.buckets = [a + b for a, b in zip(histogram.buckets, buckets, strict=True)]
            histogram.seconds += seconds

    def render(self, space: str, stats: Stats, under_way: Mapping[Lane, int]) -> str:
        """Render what a space may see: its own requests, and those without an API key."""
        seen = (space, None)
        families = [
            ("byheart_requests_total", "counter", "Requests answered.", self._request_rows(seen)),
            (
                "byheart_request_seconds",
                "histogram",
                "How long requests took, by route and mode of search.",
                self._latency_rows(seen),
            ),
            (
                "byheart_requests_under_way",
                "gauge",
                "Requests that run or wait for a thread.",
                (("", {"lane": lane}, number) for lane, number in under_way.items()),
            ),
            *_store_families(stats),
        ]
        lines = []
        for name, kind, meaning, rows in families:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{suffix}{_labels(labels)} {value}" for suffix, labels, value in rows]
        return "\n".join(lines) + "\n"

    def _request_rows(self, seen: tuple[str | None, ...]) -> Iterator[_Row]:
        for (space, method, route, status), number in self._requests.items():
            if space in seen:
                known = "yes" if space is not None else "no"
                labels = {"method": method, "route": route, "status": str(status), "token": known}
                yield "", labels, number

    def _latency_rows(self, seen: tuple[str | None, ...]) -> Iterator[_Row]:
        for (space, route, mode), histogram in self._latencies.items():
            if space not in seen:
                continue
            labels = {"route": route, "mode": mode, "token": "yes" if space is not None else "no"}
            total = 0
            for bound, number in zip((*_BOUNDS, "+Inf"), histogram.buckets, strict=True):
                total += number
                yield "_bucket", {**labels, "le": str(bound)}, total
            yield "_sum", labels, round(histogram.seconds, 6)
            yield "_count", labels, total


_Row = tuple[str, Labels, float]
_Family = tuple[str, str, str, Iterator[_Row]]


def _store_families(stats: Stats) -> Iterator[_Family]:
    """Yield the figures of the store; its counters include all processes."""
    plain: dict[str, tuple[str, float]] = {
        "byheart_memories": ("Memories of the space.", stats.memories),
        "byheart_chunks": ("Chunks of the space.", stats.chunks),
        "byheart_vectors": ("Vectors of the space.", stats.vectors),
        "byheart_pending_vectors": ("Chunks without vectors yet.", stats.pending_vectors),
        "byheart_store_bytes": ("Size of the store on disk.", stats.sizes.store_bytes),
        "byheart_index_bytes": ("Size of the search index on disk.", stats.sizes.index_bytes),
        "byheart_log_bytes": ("Size of the write-ahead log.", stats.sizes.log_bytes),
    }
    for name, (meaning, value) in plain.items():
        yield name, "gauge", meaning, iter((("", {}, value),))
    saves = {each: getattr(stats.saves, each) for each in ("created", "updated", "unchanged")}
    yield (
        "byheart_upserts_total",
        "counter",
        "Texts saved, by what became of them.",
        (("", {"status": status}, number) for status, number in saves.items()),
    )
    yield (
        "byheart_queries_total",
        "counter",
        "Queries by kind of search.",
        (("", {"kind": kind}, each.count) for kind, each in stats.queries.kinds.items()),
    )
    yield (
        "byheart_slow_queries_total",
        "counter",
        "Queries slower than the setting slow_query_ms.",
        (("", {"kind": kind}, each.slow) for kind, each in stats.queries.kinds.items()),
    )
    yield (
        "byheart_verdicts_total",
        "counter",
        "Answers by what they said of their best hit.",
        (("", {"verdict": name}, number) for name, number in stats.queries.verdicts.items()),
    )
    for outcome in ("hits", "misses"):
        yield (
            f"byheart_cache_{outcome}_total",
            "counter",
            f"Cache {outcome}, by what is kept.",
            (("", {"cache": name}, getattr(each, outcome)) for name, each in stats.caches.items()),
        )


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
