"""Context: what putting a prompt together costs beside a plain search of the same session.

    python benchmarks/context.py --data FOLDER [--size 100000] [--stores DIR]

The store and the questions are those of speed.py. The session has 30 turns of about 60 words, five
memories are pinned. Each question is asked both ways in turn, so that a busy machine slows down
both; processor time is told as well as the time that passed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from speed import fill, prepare

import byheart
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

SESSION, TURNS, PINNED = "benchmark", 30, 5
WARMING = 20


def converse(store: MemoryStore, questions: Sequence[str]) -> None:
    """Make a session with a past, and pin some memories."""
    for number in range(TURNS):
        said = " ".join(questions[number * 4 : number * 4 + 6])
        role = ("user", "assistant")[number % 2]
        store.log(SESSION, role, said, client_id=str(number))
    for hit in store.search(questions[0], limit=PINNED).results:
        store.pin(hit.memory_id)


def clock(work: Callable[[], Any]) -> tuple[float, float]:
    """Give the milliseconds that passed and those that the processor worked."""
    passed, worked = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - passed) * 1000, (time.process_time() - worked) * 1000


def measure(store: MemoryStore, questions: Sequence[str]) -> str:
    """Ask every question both ways, and lay the figures out as a Markdown table."""
    searches, contexts = [], []
    for number, question in enumerate(questions):
        # Two spellings, so that neither finds the other's vector in the cache.
        search = clock(partial(store.search, f"{question} please", session_id=SESSION))
        context = clock(partial(store.context, SESSION, f"{question} thanks"))
        if number >= WARMING:
            searches.append(search)
            contexts.append(context)
    lines = ["| | time, p50 / p95 ms | processor, p50 / p95 ms |", "|---|---|---|"]
    for name, rows in (("search", searches), ("context", contexts)):
        cells = []
        for column in zip(*rows, strict=True):
            ordered = sorted(column)
            cells.append(
                f"{statistics.median(ordered):.1f} / {ordered[len(ordered) * 19 // 20]:.1f}"
            )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    ratios = [
        statistics.median(row[at] for row in contexts)
        / statistics.median(row[at] for row in searches)
        for at in (0, 1)
    ]
    lines.append(f"| context / search | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--stores", type=Path, help="keep the filled store here between runs")
    given = parser.parse_args()
    embedder, data = prepare(given.data)
    with tempfile.TemporaryDirectory() as folder:
        path = (given.stores or Path(folder)) / f"{given.size}.db"
        with MemoryStore(SqliteStorage(path), embedder, load_settings()) as store:
            if store.status().index.chunks < given.size:
                fill(store, data["passages"], given.size)
        # Copied, because a session is added to it; a closed store is one file.
        copy = shutil.copy(path, Path(folder) / "copy.db")
        with byheart.open(copy) as store:
            converse(store, data["questions"])
            print(measure(store, data["questions"]))


if __name__ == "__main__":
    main()
