"""How much and how often: bodies, rates, and work that waits."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator

import anyio
import pytest

from byheart.interfaces.rest.health import Watch
from byheart.interfaces.rest.limits import Rate
from tests.interfaces.rest.conftest import Serve, make_client

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
    connection.request("POST", "/memories", MEGABYTE[:500_000])
    assert connection.getresponse().status == 401


def test_little_is_read_of_what_a_stranger_sends(serve: Serve) -> None:
    server = serve()
    head = f"POST /memories HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {10**9}\r\n\r\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head.encode())
        with contextlib.suppress(ConnectionError):
            while sent < 200:
                connection.sendall(MEGABYTE)
                sent += 1
    assert sent < 100  # a few are in the buffers of the two ends


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


def test_a_text_of_too_many_chunks_is_422_with_advice(serve: Serve) -> None:
    text = "Plain words fill this passage. " * 300
    client = serve(max_chunks=3).client()
    for path, body in (
        ("/memories", {"content": text}),
        ("/sessions/s/log", {"role": "user", "content": text}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 422, path
        assert "more than 3 chunks" in answer.json()["detail"]
        assert "max_chunks" in answer.json()["hint"]


def test_a_token_that_asks_too_often_is_429_and_told_how_long_to_wait(serve: Serve) -> None:
    server = serve(max_requests_per_minute=5)
    first, second = server.client("first"), server.client("second")
    answers = [first.get("/status") for _ in range(7)]
    assert [each.status_code for each in answers] == [200] * 5 + [429] * 2
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 12
    assert answers[-1].json()["hint"]
    assert second.get("/status").status_code == 200  # another token has its own
    assert first.get("/health").status_code == 429


def test_strangers_are_counted_by_their_address_and_keep_nobody_else_out(serve: Serve) -> None:
    server = serve(max_requests_per_minute=5)
    client = server.client()
    with make_client(server.url) as stranger:
        answers = [stranger.get(path) for path in ("/health", "/status", "/health/ready") * 2]
        assert [each.status_code for each in answers] == [200, 401, 200, 200, 401, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 12
        wrong = stranger.get("/status", headers={"Authorization": "Bearer bh_wrong"})
        assert wrong.status_code == 429
    assert client.get("/status").status_code == 200


def test_readiness_is_looked_at_once_a_second_however_many_ask(serve: Serve) -> None:
    server = serve()
    now = [0.0]
    watch = Watch(server.store, lambda: now[0])

    async def look() -> None:
        assert (await watch.look(tell=True))[0].status == "ready"
        server.store.close()
        now[0] = 0.9
        assert (await watch.look(tell=True))[0].status == "ready"
        now[0] = 1.0
        seen, status = await watch.look(tell=False)
        assert (seen.status, seen.reason, status) == (
            "not ready",
            "the store is closed",
            503,
        )

    anyio.run(look)


def test_buckets_of_those_who_are_idle_are_forgotten() -> None:
    now = [0.0]
    rate = Rate(60, lambda: now[0])
    for number in range(1000):
        rate.wait_seconds(f"idle {number}")
    now[0] = 59.0
    for _ in range(60):
        rate.wait_seconds("busy")
    now[0] = 60.5
    assert rate.wait_seconds("new") == 0.0
    assert len(rate) == 2
    assert [rate.wait_seconds("busy") for _ in range(2)] == [0.0, pytest.approx(0.5)]


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


def test_reading_a_large_body_keeps_nobody_else_waiting(serve: Serve) -> None:
    server = serve()
    headers = {"Content-Type": "application/json"}
    client, statuses, moments = server.client(), list[int](), list[float]()

    def body() -> Iterator[bytes]:
        yield b'{"content": "x", "colours": [' + b"[]," * 240_000 + b"[]]}"
        moments.append(time.monotonic())

    def save() -> None:
        statuses.append(client.post("/memories", content=body(), headers=headers).status_code)
        moments.append(time.monotonic())

    saving = threading.Thread(target=save)
    saving.start()
    waits = list[float]()
    with make_client(server.url) as other:
        while saving.is_alive():
            asked = time.monotonic()
            assert other.get("/health").status_code == 200
            waits.append(time.monotonic() - asked)
    assert statuses == [422]
    sent, answered = moments
    # A body that is read in the event loop holds up one of them for nearly all of that time.
    assert max(waits) < (answered - sent) / 2
