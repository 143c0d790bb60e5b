"""PostgreSQL: Byheart on it, Byheart on SQLite, and stores one could build instead, in one run.

    pip install -r benchmarks/requirements-peers.txt
    python benchmarks/postgres.py --data FOLDER [--sizes 10000,100000] [--spaces 10]
        [--stores DIR] [--server ADDRESS] [--seconds 20] [--questions 105]

FOLDER, passages and questions are those of speed.py; the vectors are those of the hash embedder, so
that filling is quick. All stores are asked in turns of a few questions: a busy machine is busy for
all of them. Times are milliseconds; CPU is that of this process and of the server together.
`--spaces 10` asks ten spaces of the last size as well: with 100,000, a million chunks. `--stores`
keeps filled SQLite and LanceDB stores between runs, and `--server` names a PostgreSQL server on
this machine, by its socket, that keeps the databases. By default, a server of the tests runs for
the time of the benchmark, with durable commits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import load
import numpy as np
import peers
import psycopg
import speed
from postgres_stores import (
    Byheart,
    Item,
    Lance,
    Question,
    Server,
    Statement,
    Where,
    copy_space,
    counting_round_trips,
    running_server,
)

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.opening import copy_store
from byheart.settings import load_settings

QUESTIONS, WARM_UP, PER_TURN = 105, 5, 5
SAVES = 40
CLIENTS = 32
POSTGRES, SQLITE = "Byheart, PostgreSQL", "Byheart, SQLite"
ANY_WORD, ALL_WORDS, LANCE = "pgvector, any word", "pgvector, all words", "LanceDB"
# At most these parts of the time of the statement that finds any of the words.
AIMS = {"no filter": 25, "10 %": 10, "1 %": 4}

# --- Measuring --------------------------------------------------------------------------------


@dataclass(slots=True)
class Series:
    """The times, the CPU time and the answers of one store to a series of calls."""

    times: list[float] = field(default_factory=list)
    client_ms: float = 0.0
    server_ms: float = 0.0
    answers: list[list[int]] = field(default_factory=list)

    @property
    def p50(self) -> float:
        return statistics.median(self.times)

    @property
    def cpu(self) -> float:
        """Give the CPU milliseconds of one call on average, client and server together."""
        return (self.client_ms + self.server_ms) / len(self.times)

    @contextmanager
    def counting(self, server: Server) -> Iterator[None]:
        """Add the CPU time of a block; reading the clocks of the server does not count."""
        of_server, of_client = server.cpu_seconds(), time.process_time()
        yield
        self.client_ms += (time.process_time() - of_client) * 1000
        self.server_ms += (server.cpu_seconds() - of_server) * 1000

    def __str__(self) -> str:
        took = speed.summarize(self.times)
        calls = len(self.times)
        cpu = f"{self.client_ms / calls:.1f} + {self.server_ms / calls:.1f}"
        return f"{took['p50_ms']} / {took['p95_ms']} ({cpu})"


def in_turns(
    server: Server, stores: Mapping[str, Any], call: Any, given: Sequence[Any], warm_up: int
) -> dict[str, Series]:
    """Call all stores with everything given, a few at a time in turns."""
    for store in stores.values():
        for each in given[:warm_up]:
            call(store, each)
    measured = {name: Series() for name in stores}
    for start in range(warm_up, len(given), PER_TURN):
        for name, store in stores.items():
            series = measured[name]
            with series.counting(server):
                for each in given[start : start + PER_TURN]:
                    started = time.perf_counter()
                    answer = call(store, each)
                    series.times.append((time.perf_counter() - started) * 1000)
                    series.answers.append(answer)
    return measured


def overlap(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> float:
    """Give the mean share of the first answers that is among the second ones."""
    pairs = zip(first, second, strict=True)
    return float(np.mean([len({*one} & {*two}) / max(1, len(one)) for one, two in pairs]))


FIRST_SEARCH = """
import json, sys, time
address, space, cache, questions = json.load(sys.stdin)
began = time.perf_counter()
import byheart
import byheart.embedding.hash_embedder, byheart.storage.postgres.backend, byheart.store
imported, started = time.perf_counter(), time.process_time()
store = byheart.open(address, space=space, embedding_provider="hash", cache_dir=cache)
opened = time.perf_counter()
assert store.search(questions[0]).total_results == 10
took, cpu = time.perf_counter() - imported, time.process_time() - started
for question in questions[1:]:
    store.search(question)
status = open("/proc/self/status").read()
memory = [int(status.split(name)[1].split()[0]) / 1024 for name in ("VmHWM:", "RssAnon:")]
print(json.dumps({"import_ms": (imported - began) * 1000, "open_ms": (opened - imported) * 1000,
    "first_ms": took * 1000, "cpu_ms": cpu * 1000, "peak_mb": memory[0], "private_mb": memory[1]}))
store.close()
"""


def first_search(
    address: str, cache: Path, questions: Sequence[str], space: str | None = None
) -> dict[str, float]:
    """Ask questions in a new process; report its times until the first answer, and its memory."""
    asked = json.dumps([address, space, str(cache), list(questions)])
    command = [sys.executable, "-c", FIRST_SEARCH]
    out = subprocess.run(command, input=asked, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout)  # type: ignore[no-any-return]


def measure_first_searches(
    server: Server, addresses: Mapping[str, str], folder: Path, questions: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Ask in new processes without and with a cache file; of three runs, the quickest counts."""
    rows: dict[str, list[dict[str, float]]] = {}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            for name in ("published copy", "cache file"):
                found = first_search(addresses[POSTGRES], Path(cache), questions[:1])
                rows.setdefault(f"PostgreSQL, {name}", []).append(found)
        found = first_search(addresses[SQLITE], folder / "cache", questions[:1])
        rows.setdefault("SQLite, index file", []).append(found)
    fastest = {name: min(each, key=lambda row: row["first_ms"]) for name, each in rows.items()}
    for name, key in ((POSTGRES, "PostgreSQL"), (SQLITE, "SQLite")):
        fastest[f"{key}, {len(questions)} questions"] = first_search(
            addresses[name], folder / "cache", questions
        )
    fastest["round trip"] = {"first_ms": server.round_trip(addresses[POSTGRES])}
    return fastest


def count_round_trips(address: str, cache: Path, items: Sequence[Item]) -> dict[str, float]:
    """Count the answers that calls wait for, after each was made some times."""
    with closing(Byheart(address, cache)) as ours, counting_round_trips() as trips:
        calls: dict[str, Any] = {
            "save": lambda item: ours.store.save(**item),
            "search": lambda item: ours.store.search(item["content"][:60]),
            "search, 10 %": lambda item: ours.store.search(item["content"][:60], kind="kind-3"),
        }
        found = {}
        for name, call in calls.items():
            for item in items[:4]:
                call(item)
            fresh = [{**item, "content": f"{name} {item['content']}"} for item in items[4:8]]
            counted = [trips.count(partial(call, item)) for item in fresh]
            found[name] = statistics.median(counted)
    return found


SIZES = """
    SELECT c.relname, sum(pg_total_relation_size(c.oid))::bigint
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm') AND n.nspname LIKE %s
    GROUP BY c.relname ORDER BY 2 DESC
"""


def measure_bytes(address: str, schemas: str) -> dict[str, int]:
    """Give the bytes of the tables, each with its indexes."""
    with psycopg.connect(address) as connection:
        return dict(connection.execute(SIZES, (schemas,)).fetchall())


# --- One size ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that the measurements of one run share."""

    server: Server
    folder: Path
    sentences: Sequence[str]
    questions: Sequence[Question]

    def items(self, size: int) -> list[Item]:
        """Make passages, each with its number."""
        made = speed.make_items(speed.make_passages(self.sentences), size)
        return [{**item, "task_code": str(number)} for number, item in enumerate(made)]

    def new_items(self, count: int) -> list[Item]:
        """Make passages that no store has."""
        chance = iter(self.sentences[::-7])
        return [
            {"content": f"{time.time_ns()}: " + " ".join(next(chance) for _ in range(6)), **fields}
            for fields in [{"kind": "new", "agent_id": "new", "task_code": "-2", "entities": []}]
            * count
        ]


def copy_to(source: str, target: str, size: int, cache: Path) -> float | None:
    """Copy a SQLite store to PostgreSQL, unless that was done before; give memories per second."""
    with psycopg.connect(target) as connection:
        row = connection.execute("SELECT to_regclass('byheart.memories')").fetchone()
        if row != (None,):
            row = connection.execute("SELECT count(*) FROM byheart.memories").fetchone()
            if row is not None and row[0] >= size:
                return None
    started = time.perf_counter()
    settings = load_settings({"embedding_provider": "hash", "cache_dir": str(cache)})
    copied = copy_store(source, target, settings=settings)
    assert copied.memories >= size, copied
    return size / (time.perf_counter() - started)


def fill_all(
    run: Run, size: int, folder: Path
) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Fill all stores; give them with their addresses and the rates."""
    items = run.items(size)
    addresses = {
        POSTGRES: run.server.database(f"byheart_{size}"),
        SQLITE: str(folder / "byheart.db"),
        ANY_WORD: run.server.database(f"statement_{size}"),
    }
    stores: dict[str, Any] = {}
    rates: dict[str, Any] = {}
    stores[SQLITE] = Byheart(addresses[SQLITE], folder / "cache")
    rates[SQLITE] = stores[SQLITE].fill(items)
    progress(f"{size:,}: filled {SQLITE}, {rates[SQLITE]} a second")
    rates[POSTGRES] = copy_to(addresses[SQLITE], addresses[POSTGRES], size, folder / "cache")
    stores[POSTGRES] = Byheart(addresses[POSTGRES], folder / "cache")
    progress(f"{size:,}: copied to {POSTGRES}, {rates[POSTGRES]} a second")
    vectors = embed(items, folder / "vectors.npy")
    stores[ANY_WORD] = Statement(addresses[ANY_WORD], any_word=True)
    rates[ANY_WORD] = stores[ANY_WORD].fill(items, vectors)
    stores[ALL_WORDS] = Statement(addresses[ANY_WORD], any_word=False)
    progress(f"{size:,}: filled {ANY_WORD}, {rates[ANY_WORD]} a second")
    if find_spec("lancedb") is None:
        progress("LanceDB is skipped: it is not installed")
    else:
        if not (folder / "lance").exists():
            (folder / "lance").mkdir()
            started = time.perf_counter()
            Lance.build(folder / "lance", items, vectors)  # type: ignore[arg-type]
            rates[LANCE] = size / (time.perf_counter() - started)
        stores[LANCE] = Lance(folder / "lance")
        progress(f"{size:,}: filled LanceDB, {rates.get(LANCE)} a second")
    for name in (POSTGRES, ANY_WORD):
        run.server.settle(addresses[name])
    return stores, addresses, rates


def embed(items: Sequence[Item], kept: Path) -> peers.Vectors:
    """Make the vectors of passages, unless they are kept from a run before."""
    if not kept.exists():
        np.save(kept, HashEmbedder().embed([item["content"] for item in items]))
    return np.load(kept)  # type: ignore[no-any-return]


def true_nearest(
    items: Sequence[Item], vectors: peers.Vectors, questions: Sequence[Question], where: Where
) -> list[list[int]]:
    """Find the passages whose vectors are truly nearest to each question."""
    matching = [all(item[name] == value for name, value in where.items()) for item in items]
    allowed = np.flatnonzero(matching)
    nearness = np.stack([question.vector for question in questions]) @ vectors[allowed].T
    order = np.argsort(-nearness, kind="stable")[:, : peers.LIMIT]
    return allowed[order].tolist()  # type: ignore[no-any-return]


def measure(run: Run, size: int) -> dict[str, Any]:
    """Measure everything about one size."""
    folder = run.folder / str(size)
    folder.mkdir(parents=True, exist_ok=True)
    stores, addresses, rates = fill_all(run, size, folder)
    items, vectors = run.items(size), np.load(folder / "vectors.npy")
    row: dict[str, Any] = {"size": size, "rates": rates, "searches": {}, "recall": {}}
    row["characters"] = statistics.mean(len(item["content"]) for item in items)
    row["tables"] = measure_bytes(addresses[POSTGRES], r"byheart%")
    row["statement_bytes"] = sum(measure_bytes(addresses[ANY_WORD], "public").values())
    row["sqlite_bytes"] = Path(addresses[SQLITE]).stat().st_size
    for title, where in speed.FILTERS.items():
        found = in_turns(
            run.server,
            stores,
            lambda store, question, where=where: store.search(question, where),
            run.questions,
            WARM_UP,
        )
        row["searches"][title] = found
        row[f"overlap, {title}"] = overlap(found[SQLITE].answers, found[POSTGRES].answers)
        row[f"same order, {title}"] = found[SQLITE].answers == found[POSTGRES].answers
        truth = true_nearest(items, vectors, run.questions, where)
        asked = {name: store for name, store in stores.items() if name != ALL_WORDS}
        row["recall"][title] = {
            name: overlap(truth, [store.nearest(each, where) for each in run.questions])
            for name, store in asked.items()
        }
        progress(f"{size:,}, {title}: " + ", ".join(f"{k} {v}" for k, v in found.items()))
    savers = {name: store for name, store in stores.items() if name != ALL_WORDS}
    row["saves"] = measure_saves(run, savers)
    row["trips"] = count_round_trips(addresses[POSTGRES], folder / "cache", run.new_items(8))
    for store in stores.values():
        store.close()
    texts = [question.text for question in run.questions]
    row["first"] = measure_first_searches(run.server, addresses, folder, texts)
    return row


def measure_saves(run: Run, stores: Mapping[str, Any]) -> dict[str, Series]:
    """Save passages one at a time, in turns."""
    fresh = run.new_items(SAVES)
    vectors = HashEmbedder().embed([item["content"] for item in fresh])
    given = list(zip(fresh, vectors, strict=True))
    return in_turns(run.server, stores, lambda store, each: store.save(*each) or [], given, 5)


def measure_spaces(run: Run, count: int, size: int) -> dict[str, Any]:
    """Ask one process in many spaces of one database, a question in each in turn.

    The database is a copy of that with one space of this size, and the other spaces are copies of
    its rows, made by the server, without the words for raw queries.
    """
    name = f"spaces_{count}_{size}"
    address = run.server.database(name, template=f"byheart_{size}")
    cache = run.folder / name
    spaces = ["default", *(f"space-{number}" for number in range(1, count))]
    with psycopg.connect(address) as connection:
        for space in spaces[1:]:
            copy_space(connection, spaces[0], space)
            progress(f"copied to {space}")
    run.server.settle(address)
    ours = Byheart(address, cache)
    built = Series()
    for question, space in zip(run.questions, spaces, strict=False):
        with built.counting(run.server):
            started = time.perf_counter()
            ours.store.search(question.text, space=space)
            built.times.append((time.perf_counter() - started) * 1000)
        progress(f"index of {space}: {built.times[-1]:.0f} ms")
    series = Series()
    with series.counting(run.server):
        for at, question in enumerate(run.questions):
            started = time.perf_counter()
            answer = ours.store.search(question.text, space=spaces[at % count])
            series.times.append((time.perf_counter() - started) * 1000)
            assert answer.total_results == peers.LIMIT
    ours.close()
    texts = [question.text for question in run.questions]
    first = first_search(address, cache, texts[:1], spaces[-1])
    return {"spaces": count, "size": size, "searches": series, "built": built, **first}


# --- A fleet ----------------------------------------------------------------------------------


@contextmanager
def running(address: str, cache: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command of Byheart in a process of its own until the end of the block."""
    environment = {
        **os.environ,
        "BYHEART_DB_PATH": address,
        "BYHEART_CACHE_DIR": str(cache),
        "BYHEART_EMBEDDING_PROVIDER": "hash",
        "BYHEART_EMBED_ON_SAVE": "false",
        "BYHEART_MAX_REQUESTS_PER_MINUTE": "0",
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "byheart", *command],  # this folder has an mcp.py too
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def measure_fleet(run: Run, size: int, seconds: float) -> list[dict[str, Any]]:
    """Load two servers and two workers on one PostgreSQL database, then one server on SQLite."""
    passages = [item["content"] for item in run.new_items(200)]
    calls = load.byheart_calls([each.text for each in run.questions], passages, repeated=False)
    folder = run.folder / str(size)
    rows = []
    for name, address, servers in (
        ("PostgreSQL, 2 servers, 2 workers", run.server.database(f"byheart_{size}"), 2),
        ("SQLite, 1 server, 1 worker", str(folder / "byheart.db"), 1),
    ):
        with ExitStack() as stack:
            with closing(Byheart(address, folder / "cache")) as ours:
                secret = ours.store.api_keys.create(f"fleet-{time.time_ns()}").secret
            headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
            targets = []
            for number in range(servers):
                cache = folder / f"server-{number}"
                options = ("serve", "--port", "0", "--json", "--quiet")
                server = stack.enter_context(running(address, cache, *options))
                assert server.stdout is not None
                port = json.loads(server.stdout.readline())["port"]
                targets.append(load.Target(name, port, headers, calls))
                stack.enter_context(running(address, cache, "worker"))
            rows.append(load_all(run, targets, seconds) | {"server": name})
        with closing(Byheart(address, folder / "cache")) as ours:
            rows[-1]["waiting"] = ours.store.status().index.pending_vectors
        progress(json.dumps(rows[-1]))
    return rows


def load_all(run: Run, targets: Sequence[load.Target], seconds: float) -> dict[str, Any]:
    """Load some servers at once with 32 clients in all; the slower one counts."""
    clients = CLIENTS // len(targets)
    found: list[dict[str, Any]] = []
    for each in targets:
        load.warm_up(each)

    def ask(number: int, target: load.Target) -> None:
        # Clients of different servers save different texts.
        shifted = target._replace(calls=lambda client: target.calls(client + 1000 * number))
        found.append(load.load(shifted, clients, seconds))

    threads = [threading.Thread(target=ask, args=each) for each in enumerate(targets)]
    before = run.server.cpu_seconds()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slower = max(found, key=lambda row: row["search"]["p95_ms"])
    return {
        **slower,
        "requests_per_second": sum(row["requests_per_second"] for row in found),
        "requests": sum(row["requests"] for row in found),
        "errors": sum(row["errors"] for row in found),
        "first_error": next((row["first_error"] for row in found if row["errors"]), None),
        "database_cpu_s": round(run.server.cpu_seconds() - before, 1),
    }


# --- Tables -----------------------------------------------------------------------------------


def table(lines: Sequence[Sequence[object]]) -> str:
    """Lay lines out as a Markdown table; the first is its head."""
    listed = [[str(cell) for cell in line] for line in lines]
    listed.insert(1, ["---", *["--:"] * (len(listed[0]) - 1)])
    return "\n".join("| " + " | ".join(line) + " |" for line in listed) + "\n"


def render(row: Mapping[str, Any]) -> str:
    """Lay the figures of one size out, with the figures to reach."""
    searches, size = row["searches"], row["size"]
    titles = list(searches)
    head = [f"{size:,} chunks: p50 / p95 ms (CPU ms)", *titles, "save", "recall of vectors"]
    lines: list[list[object]] = [head]
    for name in searches[titles[0]]:
        recalls = [row["recall"][title].get(name) for title in titles]
        lines.append(
            [
                name,
                *(searches[title][name] for title in titles),
                row["saves"].get(name, ""),
                " / ".join("–" if each is None else f"{each:.3f}" for each in recalls),
            ]
        )
    first = [
        ["first search, new process", "first ms", "of it open", "CPU", "import", "MB", "own MB"]
    ]
    for name, each in row["first"].items():
        keys = ("first_ms", "open_ms", "cpu_ms", "import_ms", "peak_mb", "private_mb")
        first.append([name, *(f"{each[key]:.1f}" if key in each else "" for key in keys)])
    sizes = [["table", "bytes a chunk"]]
    sizes += [[name, f"{each / size:,.0f}"] for name, each in row["tables"].items() if each > size]
    parts = (table(lines), table(aims_of(row)), table(first), table(sizes))
    return "\n".join(parts) + f"\nround trips: {row['trips']}; filled a second: {row['rates']}\n"


def aims_of(row: Mapping[str, Any]) -> list[list[object]]:
    """Compare with the figures to reach."""
    lines: list[list[object]] = [["", "time", "CPU", "aim"]]
    trip = row["first"]["round trip"]["first_ms"]
    for title, series in row["searches"].items():
        ours, sqlite, other = (series[name] for name in (POSTGRES, SQLITE, ANY_WORD))
        lines.append(
            [
                f"{title}: part of the statement",
                f"1/{other.p50 / ours.p50:.1f}",
                f"1/{other.cpu / ours.cpu:.1f}",
                f"1/{AIMS[title]}",
            ]
        )
        lines.append(
            [
                f"{title}: (p50 - 2 round trips) / SQLite",
                f"{(ours.p50 - 2 * trip) / sqlite.p50:.2f}",
                f"{ours.cpu / sqlite.cpu:.2f}",
                "2",
            ]
        )
        same = f"{row[f'overlap, {title}']:.4f}"
        lines.append([f"{title}: answers shared with SQLite", same, "", "1"])
    chunk = sum(row["tables"].values()) / row["size"]
    copy = row["tables"].get("published_index_parts", 0) / row["size"]
    longer = f"{chunk * 1000 / row['characters']:,.0f}"
    lines.append([f"bytes a chunk of {row['characters']:.0f} characters", f"{chunk:,.0f}", "", ""])
    lines.append(["the same for 1,000 characters", longer, "", "6,000"])
    lines.append(["of it the copy of the index", f"{copy:,.0f}", "", ""])
    lines.append(["SQLite file", f"{row['sqlite_bytes'] / row['size']:,.0f}", "", ""])
    lines.append(["table of the statement", f"{row['statement_bytes'] / row['size']:,.0f}", "", ""])
    return lines


def render_fleet(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay the figures of the servers under load out."""
    lines: list[list[object]] = [
        ["32 clients", "requests/s", "search p50 / p95 / p99", "save", "errors", "waiting vectors"]
    ]
    for row in rows:
        kinds = (row["search"].values(), row["save"].values())
        shown = (" / ".join(map(str, each)) for each in kinds)
        errors = f"{row['errors']} of {row['requests']:,}"
        rate = f"{row['requests_per_second']:.1f}"
        lines.append([row["server"], rate, *shown, errors, row["waiting"]])
    return table(lines)


def progress(text: str) -> None:
    """Tell how far the run is."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument(
        "--spaces", type=int, default=0, help="ask so many spaces of the last size in one database"
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--seconds", type=float, default=20, help="0 leaves the fleet out")
    parser.add_argument("--stores", type=Path, help="keep filled stores here between runs")
    parser.add_argument("--server", help="the address of a server that keeps the databases")
    options = parser.parse_args()
    sentences, questions = speed.read_texts(options.data)
    texts = questions[: options.questions]
    asked = list(map(Question, texts, HashEmbedder().embed(texts)))
    sizes = [int(size) for size in options.sizes.split(",") if size]
    with tempfile.TemporaryDirectory() as temporary, running_server(options.server) as server:
        run = Run(server, options.stores or Path(temporary), sentences, asked)
        print(f"PostgreSQL {server.version}, load {os.getloadavg()}\n")
        for size in sizes:
            print(render(measure(run, size)), flush=True)
        if options.spaces and sizes:
            found = measure_spaces(run, options.spaces, sizes[-1])
            spaces = f"{found['spaces']} spaces of {found['size']:,}"
            print(
                f"{spaces}: {found['searches']}, first search {found['first_ms']:.0f} ms, ", end=""
            )
            print(f"index of a space built in {found['built']}\n")
        if options.seconds and sizes:
            print(render_fleet(measure_fleet(run, sizes[0], options.seconds)))
        print(f"load at the end {os.getloadavg()}")


if __name__ == "__main__":
    main()
