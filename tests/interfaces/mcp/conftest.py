"""A real server in a process of its own, spoken to by the SDK's client or by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.forked_program import start_program

Connect = Callable[..., AbstractAsyncContextManager[ClientSession]]
# A text whose vectors take a moment.
LONG = "\n\n".join(
    f"# Part {n}\n\nPump {n} of the harbour stops at {n} o'clock." for n in range(1500)
)
COMMAND = (sys.executable, "-m", "byheart")


def environment(**more: str) -> dict[str, str]:
    """Give the environment of the tests to a server, with an embedder that needs no model."""
    return {**os.environ, "BYHEART_EMBEDDING_PROVIDER": "hash", **more}


@pytest.fixture
def connect(path: Path) -> Connect:
    """Connect clients, each to a server of its own on the same store."""

    @asynccontextmanager
    async def connect_one(
        *flags: str, heard: Callable[[Any], None] | None = None, **variables: str
    ) -> AsyncIterator[ClientSession]:
        arguments, env = ("--db", str(path), *flags, "mcp"), environment(**variables)

        async def handle(message: Any) -> None:
            if heard is not None:
                heard(message)

        with running(*arguments, env=env) as parameters:
            async with (
                stdio_client(parameters) as streams,
                ClientSession(*streams, message_handler=handle) as session,
            ):
                await session.initialize()
                yield session

    return connect_one


@contextmanager
def running(*arguments: str, env: dict[str, str]) -> Iterator[StdioServerParameters]:
    """Run a server, and say how a client, which must start it by itself, comes to it."""
    if sys.platform != "linux":
        yield StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *arguments], env=env)
        return
    pipe = subprocess.PIPE
    with start_program(*arguments, stdin=pipe, stdout=pipe, env=env) as server:
        said, heard = (
            f"/proc/{os.getpid()}/fd/{each.fileno()}" for each in (server.stdin, server.stdout)
        )
        relay = f"cat <{heard} & exec cat >{said}"
        yield StdioServerParameters(command="sh", args=["-c", relay])
    assert server.returncode == 0


class RawServer:
    """A server spoken to line by line, for what no client would do."""

    def __init__(self, path: Path, **variables: str) -> None:
        self.process = start_program(
            "--db",
            str(path),
            "mcp",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**variables),
        )

    def send(self, message: Any) -> None:
        """Send one message, or a text that is none."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Read one message."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, method: str, params: Any = None, id: int = 1) -> dict[str, Any]:
        """Send a request and read the answer to it."""
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        while (message := self.read()).get("id") != id:
            pass
        return message

    def begin(self, version: str = "2025-06-18") -> dict[str, Any]:
        """Go through the handshake."""
        answer = self.ask(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": {},
                "clientInfo": {"name": "by-hand", "version": "1"},
            },
            id=0,
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer


@pytest.fixture
def raw_server(path: Path) -> Iterator[Callable[..., RawServer]]:
    servers: list[RawServer] = []

    def start(**variables: str) -> RawServer:
        servers.append(RawServer(path, **variables))
        return servers[-1]

    yield start
    for each in servers:
        each.process.kill()
        each.process.wait()
        for pipe in (each.process.stdin, each.process.stdout, each.process.stderr):
            if pipe:
                pipe.close()
