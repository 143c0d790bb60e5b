"""Hostile bytes and clients: the server goes on answering /health and a search.

Broken framing, huge heads, abused chunks, pipelines, and clients that are slow or hang up.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import time
from collections.abc import Callable

import httpx2
import psutil

from tests.fuzz.report import Report
from tests.fuzz.served import Served, find_tracebacks, serving

_TIMEOUT_SECONDS = 2
_MOST_OPEN = 150
_MOST_GROWTH_BYTES = 400_000_000
_CHECKED_EVERY = 25
# Generous: what matters is that an answer comes at all while others misbehave.
_PATIENCE_SECONDS = 20.0
_METHODS = (b"GET", b"POST", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT", b"X")
_TARGETS = (
    *(b"/search", b"/memories", b"/mcp", b"/health", b"/", b"/docs", b"/../..", b"/%00", b"//"),
    *(b"*", b"http://other/x", b"/memories/%F0%9F", b"/search?q=%", b"/" + b"a" * 9_000),
)
_HEADERS = (
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Connection: close"),
    *(b"Content-Length: 5", b"Content-Length: 99999999999", b"Content-Length: -3"),
    *(b"Content-Length: 5, 6", b"Content-Length: 1e3", b"Expect: 100-continue"),
    *(b"Upgrade: websocket", b"Connection: upgrade", b"Upgrade: h2c", b"X: \x00", b": empty"),
    *(b"Host: 127.0.0.1", b"Host: evil.example", b"X: " + b"y" * 70_000, b" folded", b"No-Colon"),
    *(b"Origin: http://evil.example", b"Accept: \xff\xfe", b"Content-Type: application/json"),
    *(b"Content-Encoding: gzip", b"Range: bytes=0-", b"Trailer: X", b"TE: trailers"),
)
_BODIES = (
    *(b"", b"{}", b'{"query": "harbour"}', b"[" * 3_000, b"\xff" * 300, b"x" * 200_000),
    *(b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n", b"-1\r\n", b"5;" + b"e" * 9_000),
    *(b"1\r\nx", b"zz\r\n", b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
)


def run(seconds: float, seed: int, most: int | None = None) -> Report:
    """Misbehave for so long, or so many times if that is fewer."""
    report, chance = Report(), random.Random(seed)
    limits = {
        "BYHEART_CLIENT_TIMEOUT_SECONDS": str(_TIMEOUT_SECONDS),
        "BYHEART_MAX_CONNECTIONS": "120",
    }
    with serving(**limits) as served:
        attacker = _Attacker(served, chance)
        process = psutil.Process(served.process.pid)
        before = process.memory_info().rss
        end = time.monotonic() + seconds
        while time.monotonic() < end and report.tried != most:
            name = attacker.attack()
            report.tried += 1
            if report.tried % _CHECKED_EVERY == 0:
                report.failures += [f"after {name}: {each}" for each in _look(served)]
        attacker.leave()
        report.failures += _look(served) + find_tracebacks(served)
        grown = process.memory_info().rss - before
        if grown > _MOST_GROWTH_BYTES:
            report.failures.append(f"the server grew by {grown / 1e6:.0f} MB")
        report.failures += _wait_until_closed(process)
    return report


class _Attacker:
    """Make connections that misbehave; some of them stay open, as many as there may be."""

    def __init__(self, served: Served, chance: random.Random) -> None:
        self._served = served
        self._chance = chance
        self._open: list[socket.socket] = []
        self._attacks: tuple[Callable[[], None], ...] = (
            *(self._send_noise, self._send_noise, self._send_request, self._send_request),
            *(self._send_in_pieces, self._pipeline, self._hang_up, self._hang_up_in_the_middle),
            *(self._trickle, self._stop_in_the_head, self._stop_in_the_body, self._read_nothing),
            *(self._send_large_body, self._go_on_trickling),
        )

    def attack(self) -> str:
        """Do one of them, and name it."""
        attack = self._chance.choice(self._attacks)
        with contextlib.suppress(OSError):  # the server may close whenever it likes
            attack()
        while len(self._open) > _MOST_OPEN:
            self._open.pop(self._chance.randrange(len(self._open))).close()
        return attack.__name__

    def leave(self) -> None:
        """Close everything."""
        for each in self._open:
            each.close()

    def _connect(self) -> socket.socket:
        connection = socket.create_connection((self._served.host, self._served.port), timeout=5)
        connection.settimeout(0.05)
        self._open.append(connection)
        return connection

    def _send(self, data: bytes) -> socket.socket:
        connection = self._connect()
        with contextlib.suppress(TimeoutError):
            connection.sendall(data)
        return connection

    def _close(self, connection: socket.socket) -> None:
        self._open.remove(connection)
        connection.close()

    def _key(self) -> bytes:
        name = self._chance.choice(("write", "read", "session", "none"))
        secret = self._served.keys.get(name, "bh_wrong")
        return f"Authorization: Bearer {secret}".encode()

    def _request(self) -> bytes:
        chance = self._chance
        version = chance.choice((b"HTTP/1.1",) * 5 + (b"HTTP/1.0", b"HTTP/2.0", b"HTTP/", b""))
        first = b" ".join((chance.choice(_METHODS), chance.choice(_TARGETS), version))
        lines = chance.sample(_HEADERS, chance.randint(0, 4))
        usual = [b"Host: 127.0.0.1", self._key()] if chance.random() < 0.8 else []
        end = chance.choice((b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r"))
        return end.join((first, *usual, *lines, b"", chance.choice(_BODIES)))

    def _valid(self, method: str, path: str, body: bytes = b"", more: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + self._key() + b"\r\n"
        if body:
            head += b"Content-Type: application/json\r\n"
            head += more or f"Content-Length: {len(body)}\r\n".encode()
        return head + b"\r\n" + body

    def _send_noise(self) -> None:
        self._close(self._send(self._chance.randbytes(self._chance.randint(1, 3_000))))

    def _send_request(self) -> None:
        connection = self._send(self._request())
        with contextlib.suppress(TimeoutError):
            connection.recv(65_536)
        if self._chance.random() < 0.8:
            self._close(connection)

    def _send_in_pieces(self) -> None:
        connection, data = self._connect(), self._request()[:2_000]
        for at in range(0, len(data), 97):
            connection.sendall(data[at : at + 97])
        self._close(connection)

    def _pipeline(self) -> None:
        one = self._valid("POST", "/search", b'{"query": "pump"}')
        self._send(one * self._chance.randint(2, 30) + self._request())

    def _hang_up(self) -> None:
        path = self._chance.choice(("/memories?limit=300", "/sessions", "/memories"))
        for _ in range(20):
            self._close(self._send(self._valid("GET", path)))

    def _hang_up_in_the_middle(self) -> None:
        data = self._valid("POST", "/memories", b'{"content": "never whole"}')
        self._close(self._send(data[: self._chance.randrange(len(data))]))

    def _trickle(self) -> None:
        self._send(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")

    def _go_on_trickling(self) -> None:
        for each in self._chance.sample(self._open, min(20, len(self._open))):
            with contextlib.suppress(OSError):
                each.sendall(b"a")

    def _stop_in_the_head(self) -> None:
        data = self._valid("GET", "/health")
        self._send(data[: self._chance.randrange(len(data))])

    def _stop_in_the_body(self) -> None:
        body = b'{"query": "harbour"}'
        chunked = b"Transfer-Encoding: chunked\r\n"
        more = self._chance.choice((b"Content-Length: 500\r\n", chunked))
        self._send(self._valid("POST", "/search", body if more != chunked else b"9\r\n{", more))

    def _read_nothing(self) -> None:
        self._send(self._valid("GET", "/memories?limit=300") * 20)

    def _send_large_body(self) -> None:
        nested = b"[" * self._chance.choice((10, 70, 50_000))
        wide = b'{"query": [' + b"[]," * 200_000
        path = self._chance.choice(("/mcp", "/search", "/memories"))
        connection = self._connect()
        connection.settimeout(2)
        connection.sendall(self._valid("POST", path, self._chance.choice((nested, wide))))
        with contextlib.suppress(TimeoutError):
            connection.recv(65_536)
        self._close(connection)


def _look(served: Served) -> list[str]:
    """Ask what everybody else asks; a connection may be refused, but only for a moment."""
    if served.process.poll() is not None:
        return [f"the server has ended with {served.process.returncode}"]
    headers = {"Authorization": f"Bearer {served.keys['watch']}"}
    end, wrong = time.monotonic() + _PATIENCE_SECONDS, "was never asked"
    while time.monotonic() < end:
        try:
            with httpx2.Client(base_url=served.url, trust_env=False, timeout=10) as client:
                health = client.get("/health")
                found = client.post("/search", json={"query": "harbour pump"}, headers=headers)
            if health.status_code == 200 and found.status_code == 200:
                return [] if found.json()["count"] else ["the search found nothing"]
            wrong = f"/health {health.status_code}, /search {found.status_code}"
        except (httpx2.HTTPError, json.JSONDecodeError) as error:
            wrong = f"{type(error).__name__}: {error}"
        time.sleep(0.1)
    return [f"others are not answered: {wrong}"]


def _wait_until_closed(process: psutil.Process) -> list[str]:
    """Wait until the connections of clients that have gone are closed here too."""
    end = time.monotonic() + 10 * _TIMEOUT_SECONDS
    while time.monotonic() < end:
        left = [each for each in process.net_connections("tcp") if each.status != "LISTEN"]
        if not left:
            return []
        time.sleep(0.2)
    return [f"{len(left)} connections stayed open"]
