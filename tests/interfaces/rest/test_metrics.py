"""What Prometheus reads, and what health says."""

from __future__ import annotations

import re

import httpx2

from tests.conftest import WatchedEmbedder
from tests.interfaces.rest.conftest import Serve, Server

LINE = re.compile(
    r'(?P<name>[a-z_]+)(\{(?P<labels>[a-z]+="[^"]*"(,[a-z]+="[^"]*")*)\})? (?P<value>[0-9.e+-]+)'
)


def read(client: httpx2.Client) -> dict[str, float]:
    """Read the figures as Prometheus would: each line a name, labels and a number."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    figures = {}
    for line in answer.text.splitlines():
        if not line.startswith(("# HELP ", "# TYPE ")):
            match = LINE.fullmatch(line)
            assert match, line
            figures[line.rpartition(" ")[0]] = float(match["value"])
    return figures


def test_requests_are_counted_by_route_method_and_status(
    client: httpx2.Client, report: str
) -> None:
    client.get(f"/memories/{report}")
    client.get("/memories/unknown")
    client.get("/memories/unknown2")
    client.get("/no/such/path")
    figures = read(client)
    name = 'byheart_requests_total{{method="{}",route="{}",status="{}",token="yes"}}'
    assert figures[name.format("GET", "/memories/{memory_id}", 200)] == 1
    assert figures[name.format("GET", "/memories/{memory_id}", 404)] == 2
    assert figures[name.format("", "elsewhere", 404)] == 1


def test_latencies_are_told_apart_by_route_and_mode(client: httpx2.Client, report: str) -> None:
    for mode in ("fts", "fts", "hybrid"):
        client.post("/search", json={"query": "march", "mode": mode})
    figures = read(client)
    name = 'byheart_request_seconds_{}{{route="/search",mode="{}",token="yes"{}}}'
    assert figures[name.format("count", "fts", "")] == 2
    assert figures[name.format("count", "hybrid", "")] == 1
    assert figures[name.format("sum", "fts", "")] > 0
    buckets = [value for key, value in figures.items() if "_bucket" in key and '"fts"' in key]
    assert buckets == sorted(buckets)
    assert buckets[-1] == figures[name.format("bucket", "fts", ',le="+Inf"')] == 2


def test_the_figures_of_the_store_are_there(client: httpx2.Client, report: str) -> None:
    client.post("/memories", json={"content": "One more"})
    client.post("/memories", json={"content": "One more"})
    client.post("/search", json={"query": "march"})
    client.post("/search", json={"query": "march"})
    figures = read(client)
    assert figures["byheart_memories"] == 2
    assert figures["byheart_pending_vectors"] == 0
    assert figures['byheart_upserts_total{status="created"}'] == 2
    assert figures['byheart_upserts_total{status="unchanged"}'] == 1
    assert figures['byheart_queries_total{kind="hybrid/fine"}'] == 2
    assert figures["byheart_store_bytes"] > 0
    assert {"byheart_index_bytes", 'byheart_requests_under_way{lane="read"}'} <= set(figures)
    assert any(key.startswith("byheart_cache_hits_total{cache=") for key in figures)


def test_pending_vectors_are_counted_and_readiness_says_degraded(
    serve: Serve, open_store: object, watched: WatchedEmbedder
) -> None:
    store = open_store(embedder=watched)  # type: ignore[operator]
    server = serve(store)
    watched.down = True
    store.save("No vector for this")
    client = server.client()
    assert read(client)["byheart_pending_vectors"] == 1
    ready = client.get("/health/ready").json()
    assert (ready["status"], ready["degraded"]) == ("ready", True)
    assert "1 of 1 chunks" in ready["reason"]
    stranger = httpx2.get(f"{server.url}/health/ready", trust_env=False).json()
    assert stranger == {"status": "ready", "degraded": True, "reason": None}


def test_a_store_that_does_not_answer_is_not_ready_but_the_server_is_alive(
    server: Server, stranger: httpx2.Client
) -> None:
    server.store.close()
    assert stranger.get("/health").status_code == 200
    answer = stranger.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")


def test_methods_that_nobody_knows_are_counted_as_one(client: httpx2.Client) -> None:
    for method in ("FOO", "BAR", "BAZ"):
        assert client.request(method, "/search").status_code == 405
    figures = read(client)
    name = 'byheart_requests_total{method="other",route="/search",status="405",token="yes"}'
    assert figures[name] == 3
    assert not any("FOO" in each for each in figures)
