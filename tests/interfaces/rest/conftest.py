"""The real server on a loopback port, asked by a real client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.routing import BaseRoute

import byheart
from byheart.interfaces.rest import create_app
from byheart.interfaces.rest.serving import make_config
from byheart.settings import Settings, load_settings
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.forked_program import start_program
from tests.waiting import PATIENCE_SECONDS

REPORT = """\
# Performance Report

The **service** was slow in March.

## Database

The order query went from 40 ms to 900 ms after the index was dropped.

## Frontend

The first paint takes 2.1 s on a phone.
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs: its store, its settings and clients for it."""

    url: str
    store: MemoryStore
    settings: Settings
    client: Callable[..., httpx2.Client]

    @property
    def port(self) -> int:
        """Name its port."""
        return int(self.url.rpartition(":")[2])


Serve = Callable[..., Server]


class PromptServer(uvicorn.Server):
    """Look for the end often, and do not pause before it: it comes after every test."""

    async def main_loop(self) -> None:
        """Serve until told to end."""
        ticks = 0
        while not await self.on_tick(ticks // 10):
            ticks += 1
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End as soon as all that is under way has ended."""
        for each in (*self.servers, *(sockets or ())):
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.002)


@contextmanager
def running(
    store: MemoryStore, settings: Settings, mounts: tuple[BaseRoute, ...] = ()
) -> Iterator[str]:
    """Run a server in a thread, and end it in order."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # as `serve` does: no Nagle's delay
        listener.bind(("127.0.0.1", 0))
        listener.listen(512)
        app = create_app(store, settings, mounts=mounts)
        server = PromptServer(make_config(app, settings, lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def make_client(url: str, **more: Any) -> httpx2.Client:
    """Make a client for a server on this machine.

    The environment may name a proxy, which nobody needs to get here; and where nothing is
    encrypted, the certificates of the world need not be read anew for every test.
    """
    return httpx2.Client(
        base_url=url, **{"trust_env": False, "verify": False, "timeout": 60, **more}
    )


@dataclass(slots=True)
class Process:
    """A server in a process of its own."""

    running: subprocess.Popen[str]
    url: str
    store: str

    def client(self) -> httpx2.Client:
        """Make a token and ask with it."""
        with byheart.open(self.store, embedding_provider="hash") as store:
            secret = store.api_keys.create(os.urandom(4).hex()).secret
        headers = {"Authorization": f"Bearer {secret}"}
        return make_client(self.url, headers=headers)

    def stop(self, signal_: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal, and give the exit code and what was written to stderr."""
        self.running.send_signal(signal_)
        _, errors = self.running.communicate(timeout=PATIENCE_SECONDS)
        return self.running.returncode, errors


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers on any free port; those that are left are killed."""
    started: list[subprocess.Popen[str]] = []

    def launch(*arguments: str, **variables: str) -> Process:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BYHEART_")},
            "BYHEART_CONFIG": str(tmp_path / "config.toml"),
            "BYHEART_DB_PATH": str(tmp_path / "memory.db"),
            "BYHEART_EMBEDDING_PROVIDER": "hash",
            **variables,
        }
        running = start_program(
            *("serve", "--json", "--port", "0", *arguments),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(running)
        assert running.stdout is not None
        line = running.stdout.readline()
        assert line, running.communicate()[1]
        return Process(running, json.loads(line)["url"], str(tmp_path / "memory.db"))

    yield launch
    for each in started:
        if each.poll() is None:
            each.kill()
        each.wait()
        for stream in (each.stdout, each.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def serve(open_store: OpenStore, tmp_path: Path) -> Iterator[Serve]:
    """Start servers with settings, and stop them at the end."""
    with ExitStack() as stack:

        def start(
            store: MemoryStore | None = None, mounts: tuple[BaseRoute, ...] = (), **given: Any
        ) -> Server:
            chosen = {"files_dir": tmp_path / "files", "db_path": tmp_path / "memory.db", **given}
            settings = load_settings(chosen)
            opened = store or open_store(**chosen)
            url = stack.enter_context(running(opened, settings, mounts))

            def client(name: str = "tester", **token: Any) -> httpx2.Client:
                secret = opened.api_keys.create(name, **token).secret
                headers = {"Authorization": f"Bearer {secret}"}
                return stack.enter_context(make_client(url, headers=headers))

            return Server(url, opened, settings, client)

        yield start


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve()


@pytest.fixture
def client(server: Server) -> httpx2.Client:
    return server.client()


@pytest.fixture(scope="module")
def shared_client(
    shared_store: MemoryStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx2.Client]:
    """Ask a server that the tests of a module share, since all they ask is refused."""
    folder = tmp_path_factory.mktemp("served")
    given = {"files_dir": folder / "files", "max_requests_per_minute": 0}
    settings = load_settings(given, environ={}, config_path=folder / "none")
    headers = {"Authorization": f"Bearer {shared_store.api_keys.create('tester').secret}"}
    with (
        running(shared_store, settings) as url,
        make_client(url, headers=headers) as client,
    ):
        yield client


@pytest.fixture
def stranger(server: Server) -> Iterator[httpx2.Client]:
    """Ask without a token."""
    with make_client(server.url) as client:
        yield client


@pytest.fixture
def report(server: Server) -> str:
    """Save a report with headings, and give its id."""
    return server.store.save(REPORT, kind="report", title="March", session_id="s1").memory_id
