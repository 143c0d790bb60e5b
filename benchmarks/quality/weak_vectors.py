"""Weak vectors: what is hybrid worth if the model knows nothing?

    python benchmarks/quality/weak_vectors.py --data FOLDER --stores FOLDER --sets NAME …

The store of a set, as `quality run` made it, is copied, and every vector in the copy replaced by a
random one. Questions get random vectors too. Hybrid should then be as good as keywords alone.
"""

from __future__ import annotations

import argparse
import tempfile
from hashlib import sha256
from pathlib import Path

import apsw
import numpy as np
from measures import compare, measure
from sets import read_set
from systems import open_store

from byheart.contracts import Vectors

_SEED_BYTES = 8


def make_random(text: str, dimensions: int) -> Vectors:
    """Make the same random vector of unit length each time for a text."""
    seed = int.from_bytes(sha256(text.encode()).digest()[:_SEED_BYTES], "little")
    numbers = np.random.default_rng(seed).standard_normal(dimensions)
    vector: Vectors = (numbers / np.linalg.norm(numbers)).astype("<f4")
    return vector


def copy_with_random(store: Path, copy: Path) -> int:
    """Copy a store, replace its vectors, and return how many dimensions they have."""
    original = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    original.execute("VACUUM INTO ?", (str(copy),))
    original.close()
    connection = apsw.Connection(str(copy))
    rows = connection.execute("SELECT vector_no, length(embedding) / 4 FROM vectors").fetchall()
    with connection:
        connection.executemany(
            "UPDATE vectors SET embedding = ? WHERE vector_no = ?",
            [(make_random(str(number), size).tobytes(), number) for number, size in rows],
        )
    connection.close()
    return int(rows[0][1])


def main() -> None:
    """Print a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question")
    given = parser.parse_args()
    print("| set | questions | fts | hybrid with random vectors | difference (95 %) |")
    print("|---|--:|--:|--:|---|")
    for name in given.sets:
        whole = read_set(given.data / name)
        with tempfile.TemporaryDirectory() as folder:
            size = copy_with_random(given.stores / f"{name}.db", Path(folder) / f"{name}.db")
            figures: dict[str, list[float]] = {"fts": [], "hybrid": []}
            with open_store(Path(folder), whole) as (store, names):
                for each in whole.questions[:: given.every]:
                    scope = (
                        {"session_id": each.group, "include_global": False} if each.group else {}
                    )
                    for mode, scores in figures.items():
                        vector = make_random(each.text, size).tolist() if mode != "fts" else None
                        found = store.search(
                            each.text, mode=mode, granularity="coarse", vector=vector, **scope
                        ).results
                        hits = [names[hit.memory_id] for hit in found]
                        scores.append(measure(hits, each.gains)["ndcg@10"])
        change = compare(figures["fts"], figures["hybrid"])
        means = " | ".join(f"{np.mean(scores):.3f}" for scores in figures.values())
        print(
            f"| {name} | {len(figures['fts'])} | {means} | {change.mean:+.3f} "
            f"({change.low:+.3f} to {change.high:+.3f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
