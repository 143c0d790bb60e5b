"""The MCP server: how long a client waits for it, how soon it is gone, and what more of them cost.

    python benchmarks/mcp.py [--servers 10] [--rounds 10]

The wait is compared with an empty server of the same SDK, started in turn in the same run. Memory
is what a process has for itself (private) and its share of what it has in common with others (PSS).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

EMPTY_SERVER = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(context, params):
    return types.ListToolsResult(tools=[])

async def main():
    server = Server("empty", version="1", on_list_tools=list_tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""
HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
MB = 1024


class Server:
    """A server process and the time it was started at."""

    def __init__(self, command: list[str], **variables: str) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **variables},
        )

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        self._send(message)
        assert self.process.stdout
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert "result" in answer, answer
        return answer

    def begin(self) -> float:
        """Go through the handshake; give the seconds from the start to the answer."""
        self.ask("initialize", HANDSHAKE)
        waited = time.perf_counter() - self.started
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return waited

    def call(self, tool: str, **arguments: Any) -> float:
        """Call a tool; give the seconds it took."""
        started = time.perf_counter()
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not answer["result"].get("isError"), answer
        return time.perf_counter() - started

    def memory(self) -> tuple[float, float]:
        """Give megabytes: private, and with a fair share of what is shared."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        kilobytes = {
            line.split(":")[0]: int(line.split()[1])
            for line in rollup.splitlines()
            if line.endswith("kB")
        }
        private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
        return private / MB, kilobytes["Pss"] / MB

    def end(self) -> float:
        """Close its stdin; give the seconds until it is gone."""
        assert self.process.stdin
        started = time.perf_counter()
        self.process.stdin.close()
        self.process.wait()
        return time.perf_counter() - started

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def measure_start(rounds: int, ours: list[str]) -> None:
    """Start an empty server and ours in turn, and compare what a client waits for."""
    waits: dict[str, list[float]] = {"empty": [], "byheart": []}
    listing, ending = [], []
    for _ in range(rounds):
        empty = Server([sys.executable, "-c", EMPTY_SERVER])
        waits["empty"].append(empty.begin())
        empty.end()
        server = Server(ours)
        waits["byheart"].append(server.begin())
        started = time.perf_counter()
        server.ask("tools/list")
        listing.append(time.perf_counter() - started)
        ending.append(server.end())
    for name, times in waits.items():
        print(
            f"initialize, {name}: median {statistics.median(times):.2f} s, worst {max(times):.2f}"
        )
    later = statistics.median(
        mine - theirs for mine, theirs in zip(waits["byheart"], waits["empty"], strict=True)
    )
    print(f"byheart answers {later:+.2f} s after the empty server (limit +0.30)")
    print(f"tools/list right after: median {statistics.median(listing) * 1000:.0f} ms")
    print(
        f"gone after its client: median {statistics.median(ending):.2f} s, worst {max(ending):.2f}"
    )


def measure_memory(count: int, ours: list[str]) -> None:
    """Start servers on one store one after the other, and see what each has taken."""
    servers = [Server(ours, BYHEART_UNLOAD_AFTER_SECONDS="8") for _ in range(count)]
    for server in servers:
        server.begin()
    show("just started", servers)
    first = servers[0].call("memory_save", content="The deploy key is in the vault.")
    print(f"first save of a new store: {first * 1000:.0f} ms")
    for server in servers:
        server.call("memory_search", query="where is the key?")
    show("right after a search", servers)
    time.sleep(12)
    show("idle since", servers)
    again = statistics.median(
        server.call("memory_search", query="and the lock?") for server in servers
    )
    print(f"first search after idling: median {again * 1000:.0f} ms")
    for server in servers:
        server.end()


def show(when: str, servers: list[Server]) -> None:
    """Print what the servers take, each and all together."""
    private, shared = zip(*(server.memory() for server in servers), strict=True)
    print(
        f"{when}: {len(servers)} servers, private {statistics.median(private):.0f} MB each, "
        f"PSS {statistics.median(shared):.0f} MB each, {sum(shared):.0f} MB together"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        ours = [sys.executable, "-m", "byheart", "--db", f"{folder}/memory.db", "mcp"]
        measure_start(options.rounds, ours)
        measure_memory(options.servers, ours)


if __name__ == "__main__":
    main()
