"""How much and how often: bodies, rates, and work that waits."""

from __future__ import annotations

import http.client
import json
import threading
import tracemalloc
from collections.abc import Iterator

import pytest

from byheart.interfaces.rest.limits import Rate
from tests.interfaces.rest.conftest import Serve

MEGABYTE = b"x" * 1_000_000


def token(serve_client: object) -> str:
    return str(serve_client.headers["authorization"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_100_megabytes_is_413_and_never_held(serve: Serve, chunked: bool) -> None:
    server = serve(max_body_bytes=1_000_000)
    authorization = token(server.client())

    def body() -> Iterator[bytes]:
        for _ in range(100):
            yield MEGABYTE

    headers = {"Authorization": authorization, "Content-Type": "application/json"}
    if not chunked:
        headers["Content-Length"] = str(100 * len(MEGABYTE))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    tracemalloc.start()
    try:
        connection.request("POST", "/memories", body(), headers, encode_chunked=chunked)
        answer = connection.getresponse()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status == 413
    assert json.loads(answer.read())["hint"]
    assert peak < 20_000_000
    assert server.store.status().index.memories == 0


def test_a_large_body_without_a_token_is_answered_too(serve: Serve) -> None:
    server = serve(max_body_bytes=1_000)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", "/memories", MEGABYTE * 20)
    assert connection.getresponse().status == 401


def test_a_body_just_within_the_limit_is_read(serve: Serve) -> None:
    server = serve(max_body_bytes=1_000)
    client = server.client()
    body = json.dumps({"content": "x"})
    headers = {"Content-Type": "application/json"}
    padded = body + " " * (1_000 - len(body))
    assert client.post("/memories", content=padded, headers=headers).status_code == 201
    assert client.post("/memories", content=padded + " ", headers=headers).status_code == 413


def test_a_text_over_max_content_bytes_is_422(serve: Serve) -> None:
    answer = serve(max_content_bytes=10).client().post("/memories", json={"content": "x" * 11})
    assert answer.status_code == 422


def test_a_token_that_asks_too_often_is_429_and_told_how_long_to_wait(serve: Serve) -> None:
    server = serve(max_requests_per_minute=5)
    first, second = server.client("first"), server.client("second")
    answers = [first.get("/status") for _ in range(7)]
    assert [each.status_code for each in answers] == [200] * 5 + [429] * 2
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 12
    assert answers[-1].json()["hint"]
    assert second.get("/status").status_code == 200  # another token has its own
    assert first.get("/health").status_code == 429


def test_a_bucket_fills_as_time_passes() -> None:
    now = [0.0]
    rate = Rate(60, lambda: now[0])
    assert [rate.wait_seconds("a") for _ in range(60)] == [0.0] * 60
    assert rate.wait_seconds("a") == pytest.approx(1.0)
    now[0] += 0.4
    assert rate.wait_seconds("a") == pytest.approx(0.6)
    now[0] += 0.6
    assert rate.wait_seconds("a") == 0.0
    now[0] += 10_000
    assert [rate.wait_seconds("a") for _ in range(60)] == [0.0] * 60
    assert rate.wait_seconds("a") > 0


def test_no_rate_means_any_number_of_times() -> None:
    rate = Rate(0)
    assert {rate.wait_seconds("a") for _ in range(10_000)} == {0.0}


def test_more_work_than_may_wait_is_503(serve: Serve) -> None:
    import apsw

    server = serve(max_concurrent_writes=1, max_waiting_requests=1, busy_timeout_seconds=20)
    client = server.client()
    other = apsw.Connection(server.store.status().store)
    other.execute("BEGIN IMMEDIATE")
    statuses: list[int] = []

    def save(number: int) -> None:
        statuses.append(client.post("/memories", json={"content": f"{number}"}).status_code)

    threads = [threading.Thread(target=save, args=(each,)) for each in range(5)]
    for thread in threads:
        thread.start()
    # One runs and waits for the lock, one waits for its thread, and three are refused at once.
    while len(statuses) < 3:
        threads[-1].join(0.05)
    assert client.get("/status").status_code == 200
    assert set(statuses) == {503}
    other.execute("ROLLBACK")
    for thread in threads:
        thread.join()
    other.close()
    assert sorted(statuses) == [201, 201, 503, 503, 503]
