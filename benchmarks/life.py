"""The life of memories, timed: recall, search as of then, update, forget, stats, doctor, transfer.

    python benchmarks/life.py --data FOLDER [--sizes 1000,10000,100000] [--stores DIR]

Stores are those of `speed.py` (filled here if `--stores` has none). Each is copied first, since
updates and forgetting change it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speed import ShakenEmbedder, fill, prepare

from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

QUESTIONS, UPDATES = 60, 100


def milliseconds(work: Callable[[], Any]) -> float:
    """Time one piece of work."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def median(times: list[float]) -> float:
    """Sum times up."""
    return round(statistics.median(times), 2)


def measure(
    size: int, filled: Path, embedder: ShakenEmbedder, data: dict[str, Any]
) -> dict[str, Any]:
    """Time every verb on a copy of a store."""
    questions = data["questions"][:QUESTIONS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        shutil.copyfile(filled, path)
        store = MemoryStore(SqliteStorage(path), embedder, load_settings({"db_path": str(path)}))
        store.search("warm up")
        row: dict[str, Any] = {"chunks": size}
        row["search"] = median([milliseconds(lambda q=q: store.search(q)) for q in questions])
        row["recall"] = median([milliseconds(lambda q=q: store.recall(q)) for q in questions])
        before = datetime.now(UTC)
        chosen = store.list(limit=UPDATES).memories
        row["update text"] = median(
            [
                milliseconds(lambda m=m: store.update(m.memory_id, content=f"Later: {m.content}"))
                for m in chosen
            ]
        )
        row["update tags"] = median(
            [milliseconds(lambda m=m: store.update(m.memory_id, tags=["x"])) for m in chosen]
        )
        row["search as_of"] = median(
            [milliseconds(lambda q=q: store.search(q, as_of=before)) for q in questions]
        )
        row["forget"] = median(
            [milliseconds(lambda m=m: store.forget(m.memory_id)) for m in chosen]
        )
        row["restore"] = median(
            [milliseconds(lambda m=m: store.restore(m.memory_id)) for m in chosen]
        )
        row["forget hard"] = round(
            milliseconds(lambda: store.forget(chosen[0].memory_id, hard=True))
        )
        row["stats"] = round(milliseconds(store.admin.stats), 1)
        row["doctor"] = round(milliseconds(store.admin.doctor))
        store.close()
        row |= transfer(path, Path(folder))
    return row


TRANSFER = """
import sys, time
import byheart

def peak():  # not ru_maxrss: that is inherited from whoever started this process
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024

verb, store, path = sys.argv[1:]
opened = byheart.open(store, embedding_provider="none")
opened.list(limit=1)
base = peak()
started = time.perf_counter()
opened.export(path, vectors=True) if verb == "export" else opened.import_(path)
took = time.perf_counter() - started
print(took, peak() - base)
"""


def transfer(path: Path, folder: Path) -> dict[str, Any]:
    """Export and import in processes of their own: seconds, and megabytes over the start."""
    row: dict[str, Any] = {}
    for verb, store in (("export", path), ("import", folder / "second.db")):
        out = subprocess.run(
            [sys.executable, "-c", TRANSFER, verb, str(store), str(folder / "all.jsonl")],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        row[f"{verb} s"], row[f"{verb} MB"] = round(float(out[0]), 1), round(float(out[1]))
    return row


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--stores", type=Path, help="keep filled stores here between runs")
    options = parser.parse_args()
    embedder, data = prepare(options.data)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.stores or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for size in map(int, options.sizes.split(",")):
            filled = folder / f"{size}.db"
            if not filled.exists():
                store = MemoryStore(SqliteStorage(filled), embedder, load_settings())
                fill(store, data["passages"], size)
                store.close()
            rows.append(measure(size, filled, embedder, data))
            print(json.dumps(rows[-1]), file=sys.stderr)
    print("| | " + " | ".join(f"{row['chunks']:,} chunks" for row in rows) + " |")
    print("|---" * (len(rows) + 1) + "|")
    for name in list(rows[0])[1:]:
        print(f"| {name} | " + " | ".join(f"{row[name]:,}" for row in rows) + " |")


if __name__ == "__main__":
    main()
