"""Clients that are slow, do not go on, or are too many: the server keeps answering the others."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx2
import pytest

from tests.interfaces.rest.conftest import Serve, Server, make_client

SECONDS = 1.0
# More than the system takes in advance for a client that reads nothing.
ANSWER_BYTES = 9_000_000


def fill(server: Server) -> None:
    """Save memories that are listed in a long answer."""
    for number in range(10):
        server.store.save(f"Memory {number}.", metadata={"long": "x" * 950_000})


@contextmanager
def connect(server: Server, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            for _ in range(count)
        ]


def head(server: Server, method: str, path: str, *lines: str) -> bytes:
    first = (f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}")
    return "\r\n".join((*first, *lines, "", "")).encode()


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while data := connection.recv(65_536):
        received += data
    return received


def read_problem(connection: socket.socket) -> dict[str, Any]:
    answer, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert b"connection: close" in answer.lower()
    problem: dict[str, Any] = json.loads(body)
    assert answer.startswith(f"HTTP/1.1 {problem['status']} ".encode())
    return problem


def is_answering(server: Server) -> bool:
    with make_client(server.url) as client:
        return client.get("/health").status_code == 200


def test_heads_that_do_not_end_are_not_waited_for(serve: Serve) -> None:
    server = serve(client_timeout_seconds=SECONDS)
    with connect(server, 60) as connections:
        for each in connections:
            each.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        stop = threading.Event()

        def trickle() -> None:  # a byte now and then is no reason to wait for longer
            while not stop.wait(0.1):
                for each in connections:
                    try:
                        each.sendall(b"a")
                    except OSError:
                        continue

        trickling = threading.Thread(target=trickle)
        trickling.start()
        assert is_answering(server)
        problems = [read_problem(each) for each in connections]
        stop.set()
        trickling.join()
    assert {each["status"] for each in problems} == {408}
    assert "client_timeout_seconds" in problems[0]["hint"]


def test_a_connection_without_a_request_is_closed(serve: Serve) -> None:
    server = serve(client_timeout_seconds=SECONDS)
    with connect(server, 20) as connections:
        assert [read_all(each) for each in connections] == [b""] * 20


def test_the_head_of_a_second_request_has_as_long_as_that_of_the_first(serve: Serve) -> None:
    server = serve(client_timeout_seconds=SECONDS)
    with connect(server, 1) as [connection]:
        connection.sendall(head(server, "GET", "/health") + b"GET /health HTTP/1.1\r\nHo")
        received = read_all(connection)
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert b"HTTP/1.1 408 " in received


def test_a_body_that_stops_is_not_waited_for(serve: Serve) -> None:
    server = serve(client_timeout_seconds=SECONDS)
    key = f"Authorization: {server.client().headers['authorization']}"
    json_type = "Content-Type: application/json"
    for framing, begun in (
        ("Content-Length: 100", b'{"query": '),
        ("Transfer-Encoding: chunked", b'5\r\n{"que\r\n'),
    ):
        with connect(server, 10) as connections:
            for each in connections:
                each.sendall(head(server, "POST", "/search", key, json_type, framing) + begun)
            assert is_answering(server)
            assert {read_problem(each)["status"] for each in connections} == {408}


def test_a_slow_body_that_goes_on_is_waited_for(serve: Serve) -> None:
    server = serve(client_timeout_seconds=SECONDS)
    client = server.client()

    def body() -> Iterator[bytes]:
        yield b'{"content": "'
        for _ in range(6):
            yield b"slow but steady " * 60
            time.sleep(SECONDS / 2)
        yield b'"}'

    headers = {"Content-Type": "application/json"}
    assert client.post("/memories", content=body(), headers=headers).status_code == 201


def test_a_client_that_takes_nothing_of_its_answer_is_disconnected(serve: Serve) -> None:
    server = serve(client_timeout_seconds=SECONDS)
    fill(server)
    client = server.client()
    key = f"Authorization: {client.headers['authorization']}"
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with listener:
        listener.connect(("127.0.0.1", server.port))
        listener.settimeout(30)
        listener.sendall(head(server, "GET", "/memories", key))
        time.sleep(SECONDS * 3)
        received = 0
        with suppress(ConnectionError):
            while data := listener.recv(65_536):
                received += len(data)
    assert received < ANSWER_BYTES
    assert len(client.get("/memories").content) > ANSWER_BYTES


def test_a_large_answer_that_is_read_slowly_comes_whole(serve: Serve) -> None:
    server = serve(client_timeout_seconds=SECONDS)
    fill(server)
    key = f"Authorization: {server.client().headers['authorization']}"
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    with listener:
        listener.connect(("127.0.0.1", server.port))
        listener.settimeout(30)
        listener.sendall(head(server, "GET", "/memories", key, "Connection: close"))
        received = 0
        while data := listener.recv(400_000):
            received += len(data)
            time.sleep(0.02)
    assert received > ANSWER_BYTES


def test_one_connection_more_closes_the_one_that_waits_the_longest(serve: Serve) -> None:
    server = serve(max_connections=10)
    with connect(server, 10) as connections:
        time.sleep(0.1)
        for _ in range(5):
            assert is_answering(server)
        closed = [each for each in connections if is_closed(each)]
        assert closed == connections[: len(closed)]
        assert 1 <= len(closed) <= 5


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    finally:
        connection.settimeout(30)


def test_a_connection_is_refused_while_all_have_a_request_under_way(serve: Serve) -> None:
    server = serve(max_connections=5)
    key = f"Authorization: {server.client().headers['authorization']}"
    begun = head(
        server, "POST", "/search", key, "Content-Type: application/json", "Content-Length: 16"
    )
    with connect(server, 5) as busy:
        for each in busy:
            each.sendall(begun + b'{"query"')
        time.sleep(0.3)
        with connect(server, 3) as refused:
            problems = [read_problem(each) for each in refused]
        assert {each["status"] for each in problems} == {503}
        assert "max_connections" in problems[0]["hint"]
        for each in busy:
            each.sendall(b': "tea"}')
        assert {each.recv(65_536)[:12] for each in busy} == {b"HTTP/1.1 200"}
    assert is_answering(server)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["bytes", "version", "0.9", "hosts", "huge", "length", "chunk"],
)
def test_bytes_that_are_no_request_are_answered_and_harm_nobody(
    server: Server, sent: bytes
) -> None:
    with connect(server, 1) as [connection]:
        with suppress(ConnectionError):  # it may be answered before all was sent
            connection.sendall(sent)
        answer = connection.recv(65_536)
    assert re.match(rb"HTTP/1.1 4\d\d ", answer)
    assert b"Traceback" not in answer
    assert is_answering(server)


def test_a_small_call_has_a_small_body(client: httpx2.Client) -> None:
    query = {"query": "x" * 1_000_000}
    refused = client.post("/search", json=query)
    assert (refused.status_code, refused.json()["title"]) == (413, "Request Entity Too Large")
    assert client.post("/memories", json={"content": "x" * 1_100_000}).status_code == 201


@pytest.mark.parametrize("route", ["/search", "/memories"])
def test_bodies_nested_too_deeply_or_with_too_many_values_are_refused(
    client: httpx2.Client, route: str
) -> None:
    headers = {"Content-Type": "application/json"}
    deep = b'{"content": "x", "metadata": ' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}"
    answer = client.post(route, content=deep, headers=headers)
    assert (answer.status_code, "64 levels" in answer.json()["detail"]) == (400, True)
    wide = b'{"content": "x", "tags": [' + b"1," * 501_000 + b"1]}"
    answer = client.post(route, content=wide, headers=headers)
    assert answer.status_code == 413
