"""Accept connections, handle signals and stop in order, alone or as one of several processes.

The first process of a server listens and deals the connections out (`worker_pool.py`). The others
take them from their channel, and end when it is closed, also if the first process was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import anyio
import uvicorn

from byheart.interfaces.rest.shared_counts import SharedCounts
from byheart.interfaces.rest.work import Work
from byheart.interfaces.rest.worker_pool import CONNECTION, ENDED, READY, WorkerPool

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ACCEPTED_AT_ONCE = 64
# If no file can be opened, the others that wait are tried again after a moment.
_AFTER_FAILURE_SECONDS = 1.0
_TICKS_PER_SECOND = 10


class Server(uvicorn.Server):
    """Stop after the running work on the first signal, and at once on the second."""

    def __init__(self, config: uvicorn.Config, work: Work, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._work = work
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call `on_started`."""
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no new requests, wait for the running ones however long they take, then stop."""
        self._refuse()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        self._work.end()
        while any(self._work.under_way().values()):
            await anyio.sleep(0.02)
        await super().shutdown(sockets)

    def _refuse(self) -> None:
        """Accept no more connections."""
        for server in self.servers:
            server.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals, and do not raise them again at the end: a stop is not a failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop; on a second signal at once, since every acknowledged write is on disk already."""
        if self.should_exit:
            self._abort()
            os._exit(128 + sig)
        self.should_exit = True

    def _abort(self) -> None:
        """Do what is left to do before the process ends at once."""


class _SharingServer(Server):
    """Serve connections that were accepted elsewhere, and share the counts of requests."""

    def __init__(
        self,
        config: uvicorn.Config,
        work: Work,
        on_started: Callable[[], None],
        counts: SharedCounts,
    ) -> None:
        super().__init__(config, work, on_started)
        self._counts = counts
        self._arriving: set[asyncio.Task[Any]] = set()

    async def on_tick(self, counter: int) -> bool:
        """Write the counts every second."""
        if counter % _TICKS_PER_SECOND == 0:
            self._counts.write()
        return await super().on_tick(counter)

    def _take(self, connection: socket.socket) -> None:
        """Serve a connection."""
        loop = asyncio.get_running_loop()
        connection.setblocking(False)

        def make_protocol() -> asyncio.Protocol:
            protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
            )
            return protocol

        task = loop.create_task(self._connect(make_protocol, connection))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _connect(
        self, make_protocol: Callable[[], asyncio.Protocol], connection: socket.socket
    ) -> None:
        with contextlib.suppress(OSError):  # the client has gone already
            await asyncio.get_running_loop().connect_accepted_socket(make_protocol, connection)

    @property
    def _own_connections(self) -> int:
        return len(self.server_state.connections) + len(self._arriving)


class FirstServer(_SharingServer):
    """Listen, and share the connections with the processes of a pool."""

    def __init__(
        self,
        config: uvicorn.Config,
        work: Work,
        on_started: Callable[[], None],
        listener: socket.socket,
        pool: WorkerPool,
        counts: SharedCounts,
    ) -> None:
        super().__init__(config, work, on_started, counts)
        self._listener = listener
        self._pool = pool

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then start the other processes."""
        await super().startup(sockets)
        if self.started:
            self._listen()
            self._pool.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop all processes, and wait for them."""
        self._refuse()
        self._pool.stop()
        await super().shutdown(sockets)
        await self._pool.wait()

    def _refuse(self) -> None:
        if self._listener.fileno() != -1:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()

    def _abort(self) -> None:
        self._pool.kill()

    def _listen(self) -> None:
        if self._listener.fileno() != -1:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # too many files are open
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._listener)
                loop.call_later(_AFTER_FAILURE_SECONDS, self._listen)
                return
            if not self._pool.give(connection, self._own_connections):
                self._take(connection)


class OtherServer(_SharingServer):
    """Serve the connections that the first process passes on."""

    def __init__(
        self,
        config: uvicorn.Config,
        work: Work,
        on_started: Callable[[], None],
        channel: socket.socket,
        counts: SharedCounts,
    ) -> None:
        super().__init__(config, work, on_started, counts)
        self._channel = channel
        self._taken = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to take connections."""
        await super().startup(sockets)
        if self.started:
            self._channel.setblocking(False)
            asyncio.get_running_loop().add_reader(self._channel, self._receive)
            self._tell(READY)

    async def on_tick(self, counter: int) -> bool:
        """Tell the first process how many connections have ended."""
        ended = self._taken - self._own_connections
        if ended > 0 and self._tell(ENDED * ended):
            self._taken -= ended
        return await super().on_tick(counter)

    def _refuse(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)

    def _receive(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                told, files, _, _ = socket.recv_fds(self._channel, len(CONNECTION), 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                told, files = b"", []
            if not told:  # the server stops, or its first process was killed
                self.should_exit = True
                asyncio.get_running_loop().remove_reader(self._channel)
                return
            for each in files:
                self._taken += 1
                # TCP is named explicitly, as for the listener: see `serving.py`.
                self._take(_tcp_socket(each))

    def _tell(self, said: bytes) -> bool:
        try:
            return self._channel.send(said) == len(said)
        except OSError:
            return False


def _tcp_socket(file: int) -> socket.socket:
    plain = socket.socket(fileno=file)
    return socket.socket(plain.family, socket.SOCK_STREAM, socket.IPPROTO_TCP, plain.detach())
