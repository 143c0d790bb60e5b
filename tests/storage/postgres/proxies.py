"""Stand between a client and the PostgreSQL server: cut connections, or pool transactions.

A message of the protocol is a letter, its length, and its content; only the first message of a
client has no letter.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["to server", "to client"]
_LENGTH = struct.Struct("!I")


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Read so many bytes; raise `EOFError` if the connection ends before."""
    got = bytearray()
    while len(got) < size:
        part = connection.recv(size - len(got))
        if not part:
            raise EOFError
        got += part
    return bytes(got)


def read_message(connection: socket.socket, *, first: bool = False) -> bytes:
    """Read one message."""
    letter = b"" if first else read_exactly(connection, 1)
    length = read_exactly(connection, _LENGTH.size)
    return letter + length + read_exactly(connection, _LENGTH.unpack(length)[0] - _LENGTH.size)


class Proxy:
    """Listen on a port of this machine, and serve each client in threads of its own."""

    def __init__(self, server_socket: str) -> None:
        self._server_socket = server_socket
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._begin(self._accept)

    @property
    def parameters(self) -> dict[str, str]:
        """Give the parameters of libpq that lead through this proxy."""
        port = str(self._listening.getsockname()[1])
        return {"host": "127.0.0.1", "port": port, "sslmode": "disable", "gssencmode": "disable"}

    def serve(self, client: socket.socket) -> None:
        """Serve one client until it leaves."""
        raise NotImplementedError

    def connect(self) -> socket.socket:
        """Open a connection to the server."""
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._server_socket)
        with self._lock:
            self._open.add(server)
        return server

    def leave(self, *connections: socket.socket) -> None:
        """Close connections."""
        for each in connections:
            with self._lock:
                self._open.discard(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut_all(self) -> None:
        """Close all connections."""
        self.leave(*list(self._open))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut_all()

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open.add(client)
            self._begin(self.serve, client)

    @staticmethod
    def _begin(work: object, *given: object) -> None:
        def quietly() -> None:
            with contextlib.suppress(OSError, EOFError):
                work(*given)  # type: ignore[operator]

        threading.Thread(target=quietly, daemon=True).start()


@dataclass
class Cut:
    """Cut all connections at a message, whole, half sent or not sent at all."""

    direction: Direction
    number: int
    share: float


@dataclass
class Passed:
    """Count the messages that passed."""

    counts: dict[Direction, int] = field(default_factory=lambda: {"to server": 0, "to client": 0})


class CuttingProxy(Proxy):
    """Cut all connections once, at a chosen message."""

    def __init__(self, server_socket: str) -> None:
        self._cut: Cut | None = None
        self._passed = Passed()
        self._counting = threading.Lock()
        self._cutting = threading.Lock()
        super().__init__(server_socket)

    def arm(self, cut: Cut | None) -> None:
        """Count messages from now on, and cut at the chosen one, when the last cut is over."""
        with self._cutting, self._counting:
            self._cut, self._passed = cut, Passed()

    @property
    def counts(self) -> dict[Direction, int]:
        return dict(self._passed.counts)

    @property
    def is_armed(self) -> bool:
        """Tell whether the cut is still to come."""
        return self._cut is not None

    def serve(self, client: socket.socket) -> None:
        server = self.connect()
        server.sendall(read_message(client, first=True))
        self._begin(self._pass, client, server, "to server")
        self._pass(server, client, "to client")

    def _pass(self, source: socket.socket, target: socket.socket, direction: Direction) -> None:
        try:
            while True:
                message = read_message(source)
                share = self._count(direction)
                if share is None:
                    target.sendall(message)
                    continue
                with self._cutting:
                    target.sendall(message[: round(len(message) * share)])
                    self.cut_all()
                return
        finally:
            self.leave(source, target)

    def _count(self, direction: Direction) -> float | None:
        with self._counting:
            self._passed.counts[direction] += 1
            cut = self._cut
            if cut is None or cut.direction != direction:
                return None
            if self._passed.counts[direction] != cut.number:
                return None
            self._cut = None
            return cut.share


class PoolingProxy(Proxy):
    """Give every transaction to a new server process, as the strictest pooler would.

    Nothing of a session outlives a transaction: no setting, no prepared statement, no lock.
    `sent_early` counts the transactions that began before the client could know the end of the one
    before: PgBouncer 1.18 would send them to the server process of that one, and drop the answers.
    """

    def __init__(self, server_socket: str) -> None:
        self.processes = 0
        self.sent_early = 0
        super().__init__(server_socket)

    def serve(self, client: socket.socket) -> None:
        startup = read_message(client, first=True)
        server = self._log_in(startup, client)
        self.leave(server)
        try:
            while True:
                message = read_message(client)
                if message[:1] == b"X":
                    return
                server = self._log_in(startup, None)
                self._run_transaction(client, server, message)
        finally:
            self.leave(client)

    def _log_in(self, startup: bytes, client: socket.socket | None) -> socket.socket:
        """Connect to a new server process; a client gets the answers of the first one."""
        server = self.connect()
        server.sendall(startup)
        self.processes += 1
        while True:
            message = read_message(server)
            if client is not None:
                client.sendall(message)
            if message[:1] == b"Z":
                return server
            if message[:1] == b"E":
                raise EOFError

    def _run_transaction(self, client: socket.socket, server: socket.socket, first: bytes) -> None:
        """Pass messages on until the server is in no transaction and has answered everything."""
        waiting = threading.Semaphore(0)
        state = {"asked": 0, "answered": 0}
        over = threading.Event()

        def answer() -> None:
            for message in _messages(server):
                if message[:1] == b"Z":
                    state["answered"] += 1
                    if message[5:6] == b"I" and state["answered"] == state["asked"]:
                        self.sent_early += _sends_early(client)
                        over.set()
                client.sendall(message)
                if message[:1] in (b"Z", b"G"):  # after G, the server waits for rows of a COPY
                    waiting.release()
            over.set()
            waiting.release()

        self._begin(answer)
        message = first
        while True:
            # A query and a sync are answered by `ReadyForQuery`.
            ends = message[:1] in (b"Q", b"S")
            state["asked"] += ends
            server.sendall(message)
            if ends or message[:1] in (b"c", b"f"):  # the end of a COPY
                waiting.acquire()
                if over.is_set():
                    break
            message = read_message(client)
        self.leave(server)


def _sends_early(client: socket.socket) -> bool:
    """Say whether a client goes on while the answer to the end of its transaction is late."""
    time.sleep(0.002)
    readable, _, _ = select.select([client], [], [], 0)
    # A client may leave at any time; psycopg asks for a flush behind each end of a pipeline.
    return bool(readable) and client.recv(1, socket.MSG_PEEK) not in (b"", b"X", b"H")


def _messages(connection: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError, EOFError):
        while True:
            yield read_message(connection)
