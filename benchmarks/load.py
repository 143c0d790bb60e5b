"""Load: `byheart serve` under 32 clients at once, and beside it a server one could take instead.

    pip install -r benchmarks/requirements-peers.txt
    python benchmarks/load.py --data FOLDER [--memories 10000] [--seconds 60] [--clients 32]

FOLDER is that of speed.py, and so are passages, vectors and questions. Four fifths of the requests
are searches for ten hits, one fifth saves one passage. The clients are threads of this process, the
servers processes of their own, all on one machine. Byheart embeds every question and every passage;
Chroma is sent their vectors, made before, because its server embeds nothing. `repeated` asks
Byheart the same 200 questions again and again, whose vectors it remembers.

The last two rows only search, by vectors that both servers are sent: Byheart by words as well, and
by the vector alone, as Chroma does. On a busy machine, compare the processor time per request: that
of the server with all its processes.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import speed

import byheart
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

LIMIT = 10
SAVES = 0.2  # of all requests, at random: in step, clients would all save at once
STARTS_WITHIN_SECONDS = 60
CHROMA_PATH = "/api/v2/tenants/default_tenant/databases/default_database/collections"
CHROMA_BATCH = 500


class Call(NamedTuple):
    """One request, and whether it searches."""

    path: str
    body: dict[str, Any]
    searches: bool


class Target(NamedTuple):
    """A server under load: its process, where it is, what is asked, and what requests carry."""

    name: str
    process: int
    port: int
    headers: dict[str, str]
    calls: Callable[[int], Iterator[Call]]

    def processor_seconds(self) -> float:
        """Give the processor time of the server so far, with all its processes."""
        first = psutil.Process(self.process)
        times = [each.cpu_times() for each in (first, *first.children(recursive=True))]
        return sum(each.user + each.system for each in times)


def ask(connection: http.client.HTTPConnection, call: Call, headers: dict[str, str]) -> int:
    """Send one request, read the whole answer, and give its status."""
    connection.request("POST", call.path, json.dumps(call.body), headers)
    answer = connection.getresponse()
    body = answer.read()
    if call.searches and answer.status == 200:
        found = json.loads(body)
        hits = found["results"] if "results" in found else found["ids"][0]
        assert len(hits) == LIMIT, f"{len(hits)} hits"
    return answer.status


def load(target: Target, clients: int, seconds: float) -> dict[str, Any]:
    """Ask with so many clients for so long; give rates, latencies and what went wrong."""
    times: dict[bool, list[float]] = {True: [], False: []}
    wrong: list[str] = []
    until = time.perf_counter() + seconds

    def run(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60)
        for call in target.calls(client):
            started = time.perf_counter()
            if started > until:
                break
            try:
                status = ask(connection, call, target.headers)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                wrong.append(repr(error))
                connection.close()
                continue
            times[call.searches].append((time.perf_counter() - started) * 1000)
            if status not in (200, 201):
                wrong.append(str(status))
        connection.close()

    threads = [threading.Thread(target=run, args=(each,)) for each in range(clients)]
    worked, started = target.processor_seconds(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    requests = sum(map(len, times.values()))
    return {
        "server": target.name,
        "requests_per_second": round(requests / took, 1),
        "processor_ms": round((target.processor_seconds() - worked) / max(requests, 1) * 1000, 1),
        "search": percentiles(times[True]),
        "save": percentiles(times[False]),
        "requests": requests,
        "errors": len(wrong),
        "first_error": wrong[0] if wrong else None,
    }


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Sum milliseconds up."""
    ordered = sorted(times) or [0.0]
    return {
        f"p{each}_ms": round(ordered[min(len(ordered) - 1, len(ordered) * each // 100)], 1)
        for each in (50, 95, 99)
    }


# --- Byheart ----------------------------------------------------------------------------------


def vector_calls(
    questions: Sequence[str], vectors: Sequence[Any], mode: str
) -> Callable[[int], Iterator[Call]]:
    """Search with the vectors of questions, and save nothing."""

    def calls(client: int) -> Iterator[Call]:
        chance = random.Random(client)
        while True:
            at = chance.randrange(len(questions))
            body = {"query": questions[at], "vector": vectors[at], "mode": mode, "limit": LIMIT}
            yield Call("/search", body, searches=True)

    return calls


def byheart_calls(
    questions: Sequence[str], passages: Sequence[str], repeated: bool
) -> Callable[[int], Iterator[Call]]:
    """Search by text and save texts; unless `repeated`, no question is the same as another."""

    def calls(client: int) -> Iterator[Call]:
        chance = random.Random(client)
        for number in range(10**9):
            if chance.random() < SAVES:
                text = f"{client}-{number}. {chance.choice(passages)}"
                yield Call("/memories", {"content": text}, searches=False)
                continue
            question = chance.choice(questions)
            text = question if repeated else f"{question} {client} {number}"
            yield Call("/search", {"query": text, "limit": LIMIT}, searches=True)

    return calls


@contextmanager
def serving(path: Path) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Run `byheart serve` in a process of its own, as it is out of the box but for the rate."""
    with byheart.open(path) as store:
        secret = store.api_keys.create(f"load-{time.time_ns()}").secret
    environment = {
        **os.environ,
        "BYHEART_DB_PATH": str(path),
        "BYHEART_MAX_REQUESTS_PER_MINUTE": "0",
    }
    command = [sys.executable, "-c", "from byheart.interfaces.cli import main; main()"]
    running = subprocess.Popen(
        [*command, "serve", "--port", "0", "--json", "--quiet"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        port = json.loads(running.stdout.readline())["port"]
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        yield running.pid, port, headers
    finally:
        running.terminate()
        assert running.wait(30) == 0


def fill_byheart(path: Path, embedder: Any, passages: Sequence[str]) -> None:
    """Save the passages, unless they are there."""
    store = MemoryStore(SqliteStorage(path), embedder, load_settings({"db_path": str(path)}))
    if store.status().index.memories < len(passages):
        store.save_many({"content": text, "entities": []} for text in passages)
    store.close()


# --- Chroma -----------------------------------------------------------------------------------


def chroma_calls(
    collection: str,
    questions: Sequence[Any],
    passages: Sequence[str],
    vectors: Sequence[Any],
    saves: float = SAVES,
) -> Callable[[int], Iterator[Call]]:
    """Search by vectors that are there already, and save texts with theirs."""

    def calls(client: int) -> Iterator[Call]:
        chance = random.Random(client)
        for number in range(10**9):
            if chance.random() < saves:
                at = chance.randrange(len(passages))
                body: dict[str, Any] = {
                    "ids": [f"{client}-{number}-{chance.random()}"],
                    "embeddings": [vectors[at]],
                    "documents": [passages[at]],
                    "metadatas": [{"kind": "note"}],
                }
                yield Call(f"{CHROMA_PATH}/{collection}/add", body, searches=False)
                continue
            body = {
                "query_embeddings": [chance.choice(questions)],
                "n_results": LIMIT,
                "include": ["documents", "metadatas", "distances"],
            }
            yield Call(f"{CHROMA_PATH}/{collection}/query", body, searches=True)

    return calls


@contextmanager
def running_chroma(program: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Run `chroma run` in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen(
        [program, "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port)
        yield running.pid, port
    finally:
        running.terminate()
        running.wait(30)


def wait_for(port: int) -> None:
    """Wait until something listens."""
    until = time.monotonic() + STARTS_WITHIN_SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on {port}")


def fill_chroma(port: int, passages: Sequence[str], vectors: Sequence[Any]) -> str:
    """Make a collection of the passages, and give its id."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(path: str, body: dict[str, Any]) -> Any:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), text
        return json.loads(text)

    space = {"hnsw": {"space": "cosine"}}
    collection: str = post(CHROMA_PATH, {"name": "load", "configuration": space})["id"]
    for start in range(0, len(passages), CHROMA_BATCH):
        block = range(start, min(start + CHROMA_BATCH, len(passages)))
        post(
            f"{CHROMA_PATH}/{collection}/add",
            {
                "ids": [str(each) for each in block],
                "embeddings": [vectors[each] for each in block],
                "documents": [passages[each] for each in block],
                "metadatas": [{"kind": "note"} for _ in block],
            },
        )
    connection.close()
    return collection


# --- The run ----------------------------------------------------------------------------------


def measure(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Load each server in turn, on the same passages."""
    embedder, data = speed.prepare(options.data)
    passages = [next(data["passages"]) for _ in range(options.memories)]
    more = [next(data["passages"]) for _ in range(1000)]
    questions = data["questions"]
    stored = folder / "load.db"
    fill_byheart(stored, embedder, passages)
    asked = [embedder.embed_query(each).tolist() for each in questions]
    own = {
        "Byheart": byheart_calls(questions, more, False),
        "Byheart, repeated questions": byheart_calls(questions, more, True),
        "Byheart, sent vectors, searches alone": vector_calls(questions, asked, "hybrid"),
        "Byheart, the same by the vector alone": vector_calls(questions, asked, "vector"),
    }
    for name, calls in own.items():
        with serving(stored) as server:
            yield run(Target(name, *server, calls), options)
    program = options.chroma or shutil.which("chroma")
    if program is None:
        print("chroma is not installed: skipped", file=sys.stderr)
        return
    vectors = embedder.embed(passages).round(6).tolist()
    headers = {"Content-Type": "application/json"}
    with running_chroma(program, folder / "chroma") as (process, port):
        collection = fill_chroma(port, passages, vectors)
        for name, saves in (("Chroma", SAVES), ("Chroma, searches alone", 0.0)):
            calls = chroma_calls(collection, asked, more, vectors, saves)
            yield run(Target(name, process, port, headers, calls), options)


def run(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Ask a little before it counts, so that models and caches are loaded, then measure."""
    warm_up(target)
    return load(target, options.clients, options.seconds)


def warm_up(target: Target) -> None:
    """Ask a little before it counts: models and caches are loaded by then."""
    load(target, 2, 3)


def render(rows: Sequence[dict[str, Any]]) -> str:
    """Lay the figures out as a Markdown table."""
    titles = ("server", "requests/s", "processor, ms", "search p50 / p95 / p99")
    titles += ("save p50 / p95 / p99", "errors")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for row in rows:
        shown = [
            " / ".join(str(each) for each in row[kind].values()) for kind in ("search", "save")
        ]
        lines.append(
            f"| {row['server']} | {row['requests_per_second']} | {row['processor_ms']} "
            f"| {shown[0]} | {shown[1]} | {row['errors']} of {row['requests']:,} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--chroma", help="the program `chroma`, if it is not on the path")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(options, Path(folder)):
            rows.append(row)
            print(json.dumps(row), file=sys.stderr)
    print(render(rows))
    if any(row["errors"] for row in rows if row["server"].startswith("Byheart")):
        sys.exit(1)


if __name__ == "__main__":
    main()
