"""Compare the cost of two versions of Byheart, asked in turns.

    python benchmarks/versions.py --before CHECKOUT --after CHECKOUT --data FOLDER --stores DIR
        [--sizes 10000,100000] [--real STORE.db] [--rounds 5]

Each checkout has its own `.venv`. One process of each version answers the same questions on its
own copy of the same store, a few questions in turn, so that a busy machine slows both. Figures are
CPU milliseconds of the process (all threads): the mean over all questions of the fastest answer to
each, because other programs make an answer slower, never faster. `--real` names a store that was
filled with the real model (`quality/golden.py fill`). The stores of `--sizes` get vectors at
random, with as many dimensions as real ones, and the vectors of questions are ready.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

QUESTIONS, PER_TURN = 60, 4
MODES = ("fts", "vector", "hybrid")
FILTERS: dict[str, dict[str, Any]] = {
    "": {},
    ", filter 10 %": {"kind": "kind-3"},
    ", filter 1 %": {"agent_id": "agent-42"},
}
REAL_FILTERS: dict[str, dict[str, Any]] = {"": {}, ", filter 33 %": {"kind": "fact"}}
SESSION = "talk"
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
HELP = ["-m", "byheart", "--help"]
FIRST_ANSWER = """
import sys, byheart
settings = {"embedding_provider": "hash", "collect_stats": False}
with byheart.open(sys.argv[1], space=sys.argv[2], **settings) as store:
    store.search(sys.argv[3], mode="fts")
"""
EMPTY_STORE = """
import sys, byheart
byheart.open(sys.argv[1], embedding_provider="hash").close()
"""


# --- One version, in a process of its own -----------------------------------------------------


class RandomEmbedder:
    """Give texts mixtures of a few random directions; questions have theirs ready."""

    name, dimensions, window_tokens = "random", 384, 254

    def __init__(self) -> None:
        import numpy as np

        from byheart.embedding.estimated_tokens import EstimatedTokens

        chance = np.random.default_rng(7)
        self._directions = chance.standard_normal((300, self.dimensions)).astype(np.float32)
        self._ready: dict[str, Any] = {}
        self.token_starts = EstimatedTokens().token_starts

    def embed(self, texts: Sequence[str]) -> Any:
        """Make the same vector for the same text each time."""
        import numpy as np

        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Any:
        """Give the vector of a question."""
        if text not in self._ready:
            self._ready[text] = self._vector(text)
        return self._ready[text]

    def _vector(self, text: str) -> Any:
        import zlib

        import numpy as np

        chance = np.random.default_rng(zlib.crc32(text.encode()))
        mixed = self._directions[chance.integers(0, len(self._directions), 3)].sum(axis=0)
        mixed += 0.4 * chance.standard_normal(self.dimensions, np.float32)
        return (mixed / np.linalg.norm(mixed)).astype(np.float32)


def open_store(path: Path, space: str | None) -> Any:
    """Open a store filled with the real model, or with random vectors."""
    import byheart
    from byheart.settings import load_settings
    from byheart.storage.sqlite import SqliteStorage

    if space is not None:
        return byheart.open(path, space=space, collect_stats=False)
    settings = load_settings({"db_path": str(path), "collect_stats": False})
    return byheart.MemoryStore(SqliteStorage(path), RandomEmbedder(), settings)


def fill(store: Any, size: int, data: Path) -> None:
    """Save passages made of real sentences, and a conversation."""
    from speed import make_items, make_passages, read_texts

    sentences, _ = read_texts(data)
    passages = make_passages(sentences)
    store.save_many(make_items(passages, size))
    chance = random.Random(7)
    for at in range(60):
        text = sentences[chance.randrange(len(sentences))]
        store.log(SESSION, "user" if at % 2 == 0 else "assistant", text)


def ask(store: Any, verb: str, questions: Sequence[str], given: dict[str, Any]) -> list[float]:
    """Ask questions; return the CPU milliseconds of each."""
    call = getattr(store, verb)
    if verb == "context":
        call = partial(call, SESSION)
    times = []
    for question in questions:
        started = time.process_time()
        call(question, **given)
        times.append((time.process_time() - started) * 1000)
    return times


def save(store: Any, number: int) -> list[float]:
    """Save new texts one by one; return the CPU milliseconds of each."""
    chance = random.Random(number)
    times = []
    for _ in range(PER_TURN):
        text = " ".join(chance.choices(WORDS, k=60))
        started = time.process_time()
        store.save(text)
        times.append((time.process_time() - started) * 1000)
    return times


WORDS = [f"{first}{last}" for first in ("ba", "ko", "mi", "re", "tu") for last in "bdfgklmnprst"]


def count_statements(path: Path, text: str) -> dict[str, int]:
    """Count the statements and transactions of a save, a search and an update in a new store."""
    import apsw

    seen: list[str] = []

    def trace(connection: Any) -> None:
        connection.trace_v2(
            apsw.SQLITE_TRACE_STMT,
            lambda event: seen.append(event["sql"] or "") if not event.get("trigger") else None,
        )

    apsw.connection_hooks.append(trace)
    counted: dict[str, int] = {}
    store = open_store(path, None)
    saved = store.save("the first text warms everything up")
    store.search("first text")
    for name, call in {
        "save": lambda: store.save(text),
        "search": lambda: store.search("text"),
        "update": lambda: store.update(saved.memory_id, content="the first text is another one"),
    }.items():
        seen.clear()
        call()
        begun = [sql for sql in seen if sql.lstrip().upper().startswith("BEGIN")]
        counted[f"{name}, transactions"] = len(begun)
        counted[f"{name}, statements"] = len(seen)
    store.close()
    apsw.connection_hooks.remove(trace)
    return counted


def serve(stream: IO[str]) -> None:
    """Carry out the jobs that the other process names, one line each."""
    store: Any = None
    for line in stream:
        job = json.loads(line)
        kind, answer = job.pop("do"), None
        if kind == "open":
            store = open_store(Path(job["path"]), job["space"])
        elif kind == "fill":
            fill(store, job["size"], Path(job["data"]))
        elif kind == "close":
            store.close()
        elif kind == "ask":
            answer = ask(store, **job)
        elif kind == "save":
            answer = save(store, **job)
        elif kind == "count":
            answer = count_statements(Path(job["path"]), job["text"])
        elif kind == "memory":
            answer = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(answer), flush=True)


# --- Both versions ----------------------------------------------------------------------------


class Version:
    """One checkout, its process and its copies of the stores."""

    def __init__(self, checkout: Path, stores: Path) -> None:
        self.python = str(checkout / ".venv/bin/python")
        self.stores = stores
        stores.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Start a process of this version."""
        self._process = subprocess.Popen(
            [self.python, str(Path(__file__).resolve()), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, what: str, **job: Any) -> Any:
        """Have the process do a job, and wait for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **job}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def stop(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, *arguments: str) -> float:
        """Run Python once; return its CPU milliseconds."""
        # With compiled modules, as users have them, even if the caller writes none.
        own = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
        own["PYTHONPYCACHEPREFIX"] = str(self.stores / "bytecode")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([self.python, *arguments], check=True, stdout=subprocess.DEVNULL, env=own)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return spent * 1000


Jobs = dict[str, dict[str, Any]]


def asking(filters: dict[str, dict[str, Any]], *, context: bool) -> Jobs:
    """Name every way to ask."""
    ways: Jobs = {
        f"{mode}{name}": {"verb": "search", "given": {"mode": mode, **given}}
        for mode in MODES
        for name, given in filters.items()
    }
    ways["rrf"] = {"verb": "search", "given": {"fusion": "rrf"}}
    for granularity in ("medium", "coarse"):
        ways[granularity] = {"verb": "search", "given": {"granularity": granularity}}
    for name, given in filters.items():
        ways[f"recall{name}"] = {"verb": "recall", "given": given}
    if context:
        ways["context"] = {"verb": "context", "given": {}}
    return ways


def in_turns(
    versions: Sequence[Version], ways: Jobs, questions: Sequence[str], rounds: int
) -> Iterator[tuple[str, list[float]]]:
    """Ask both versions the same in turns; give the mean of each question's fastest answer."""
    for name, job in ways.items():
        for each in versions:
            each.do("ask", questions=questions[:5], **job)
        fastest = [[math.inf] * len(questions) for _ in versions]
        for number in range(rounds):
            for at in range(0, len(questions), PER_TURN):
                part = slice(at, at + PER_TURN)
                for which in (0, 1) if number % 2 else (1, 0):
                    times = versions[which].do("ask", questions=questions[part], **job)
                    fastest[which][part] = map(min, fastest[which][part], times)
        yield name, [statistics.fmean(each) for each in fastest]


def saving(versions: Sequence[Version], rounds: int) -> Iterator[tuple[str, list[float]]]:
    """Save new texts in turns; give the time that nine of ten saves take at least."""
    times: list[list[float]] = [[], []]
    for number in range(2 * rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which] += versions[which].do("save", number=number)
    yield "save", [statistics.quantiles(each, n=10)[0] for each in times]


def starting(versions: Sequence[Version], arguments: dict[str, Any]) -> dict[str, list[float]]:
    """Start new processes in turns; keep the lowest CPU time of each."""
    figures: dict[str, list[float]] = {}
    for name, make in arguments.items():
        spent: list[list[float]] = [[], []]
        for _ in range(12):
            for which, each in enumerate(versions):
                spent[which].append(each.run(*make(each)))
        figures[name] = [min(each) for each in spent]
    return figures


def give_copy(version: Version, source: Path, space: str | None) -> None:
    """Copy a closed store for a version, which migrates it and makes its own index."""
    target = version.stores / source.name
    if not target.exists():
        shutil.copy(source, target)
        for _ in range(2):  # the first time makes the index, the second reads its file
            version.start()
            version.do("open", path=str(target), space=space)
            version.do("ask", verb="search", questions=["anything"], given={})
            version.do("close")
            version.stop()


def prepare(versions: Sequence[Version], size: int, options: Any) -> str:
    """Fill a store with the first version, once, and give both a copy."""
    path = options.stores / f"{size}.db"
    if not path.exists():
        versions[0].start()
        versions[0].do("open", path=str(path), space=None)
        versions[0].do("fill", size=size, data=str(options.data))
        versions[0].do("close")
        versions[0].stop()
    for each in versions:
        give_copy(each, path, None)
    return path.name


def compare(
    versions: Sequence[Version], name: str, space: str | None, ways: Jobs, options: Any
) -> Iterator[tuple[str, list[float]]]:
    """Measure both versions on one store."""
    from speed import read_texts

    questions = read_texts(options.data)[1][:QUESTIONS]
    for each in versions:
        each.start()
        each.do("open", path=str(each.stores / name), space=space)
    yield from in_turns(versions, ways, questions, options.rounds)
    yield "memory, MB", [each.do("memory") for each in versions]
    if options.saves:
        with tempfile.TemporaryDirectory() as folder:
            for at, each in enumerate(versions):
                each.do("open", path=f"{folder}/{at}.db", space=None)
            yield from saving(versions, options.rounds)
            counts = [
                each.do("count", path=f"{folder}/{at}-counted.db", text="a text to be saved " * 9)
                for at, each in enumerate(versions)
            ]
            for counted in counts[0]:
                yield counted, [each[counted] for each in counts]
    for each in versions:
        each.stop()


def processes(versions: Sequence[Version], name: str) -> Iterator[tuple[str, list[float]]]:
    """Measure what begins with a new process."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))
        commands = {
            "byheart --help": lambda _: HELP,
            "import byheart": lambda _: ["-c", "import byheart"],
            "import byheart; byheart.MemoryStore": lambda _: [
                "-c",
                "import byheart; byheart.MemoryStore",
            ],
            "open a new store": lambda _: ["-c", EMPTY_STORE, f"{folder}/{next(numbers)}.db"],
            "first answer of a process": lambda each: [
                *("-c", FIRST_ANSWER, str(each.stores / name), "default", "membrane protein")
            ],
        }
        yield from starting(versions, commands).items()


def show(title: str, rows: Iterator[tuple[str, list[float]]]) -> None:
    """Print a Markdown table, a line as soon as it is known."""
    print(f"\n{title}\n\n| | before | after | change |\n|---|---|---|---|", flush=True)
    for name, (before, after) in rows:
        change = f"{(after / before - 1) * 100:+.0f} %" if before else ""
        print(f"| {name} | {before:.2f} | {after:.2f} | {change} |", flush=True)


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--after", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--stores", type=Path)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--real", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="ask only in ways whose names contain this")
    parser.add_argument("--saves", action="store_true", help="measure saving and starting too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(sys.stdin)
        return
    versions = (
        Version(options.before, options.stores / "before"),
        Version(options.after, options.stores / "after"),
    )

    def chosen(ways: Jobs) -> Jobs:
        return {name: way for name, way in ways.items() if (options.only or "") in name}

    if options.real:
        for each in versions:
            give_copy(each, options.real, options.real.stem)
        ways = chosen(asking(REAL_FILTERS, context=True))
        rows = compare(versions, options.real.name, options.real.stem, ways, options)
        show(options.real.stem, rows)
    for size in map(int, filter(None, options.sizes.split(","))):
        name = prepare(versions, size, options)
        ways = chosen(asking(FILTERS, context=True))
        show(f"{size:,} chunks", compare(versions, name, None, ways, options))
        if options.saves and size == 10_000:
            show("new processes", processes(versions, name))


if __name__ == "__main__":
    main()
