"""Weak vectors: what is hybrid worth if the model knows little or nothing?

    python benchmarks/quality/weak_vectors.py --data FOLDER --stores FOLDER --sets NAME …
        [--vectors own random lsa] [--verbatim 105000]

The store of a set, as `quality run` made it, is copied, and every vector in the copy replaced by a
random one, or by one of latent semantic analysis; questions get such vectors too. Hybrid should
then be as good as keywords alone. `own` keeps the vectors of the model. `--verbatim` adds a store
of so many distinct passages of all sets, and 300 questions of 3 to 10 words in a row.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import apsw
import numpy as np
from lsa import LatentSemantics
from measures import compare, measure
from sets import RetrievalSet, find_sets, read_set
from stores import open_store, store_path
from verbatim import make_verbatim

from byheart.contracts import Vectors

_SEED_BYTES = 8
KINDS = ("own", "random", "lsa")
MakeVector = Callable[[str], Vectors]


def make_random(text: str, dimensions: int) -> Vectors:
    """Make the same random vector of unit length each time for a text."""
    seed = int.from_bytes(sha256(text.encode()).digest()[:_SEED_BYTES], "little")
    numbers = np.random.default_rng(seed).standard_normal(dimensions)
    vector: Vectors = (numbers / np.linalg.norm(numbers)).astype("<f4")
    return vector


def copy_with(kind: str, store: Path, copy: Path) -> MakeVector:
    """Copy a store, replace its vectors, and return what makes the vector of a question."""
    original = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    original.execute("VACUUM INTO ?", (str(copy),))
    original.close()
    connection = apsw.Connection(str(copy))
    rows = connection.execute(
        "SELECT vector_no, chunk_no, length(embedding) / 4 FROM vectors ORDER BY vector_no"
    ).fetchall()
    size = int(rows[0][2])
    make: MakeVector = lambda text: make_random(text, size)  # noqa: E731
    vectors: Sequence[Vectors] = [make_random(str(number), size) for number, _, _ in rows]
    if kind == "lsa":
        texts = dict(
            connection.execute(
                "SELECT chunk_no, coalesce(title || ' ', '') || content "
                "FROM chunks JOIN memories USING (memory_no)"
            )
        )
        semantics = LatentSemantics(list(texts.values()))

        def make(text: str) -> Vectors:
            return _pad(semantics.embed([text]), size)[0]

        vectors = list(_pad(semantics.embed([texts[chunk] for _, chunk, _ in rows]), size))
    changes = zip(vectors, rows, strict=True)
    with connection:
        connection.executemany(
            "UPDATE vectors SET embedding = ? WHERE vector_no = ?",
            [(vector.tobytes(), row[0]) for vector, row in changes],
        )
    connection.close()
    return make


def _pad(vectors: Vectors, size: int) -> Vectors:
    """Add zeros up to the dimensions of the store, which change no cosine."""
    padded: Vectors = np.zeros((len(vectors), size), "<f4")
    padded[:, : vectors.shape[1]] = vectors
    padded[~vectors.any(axis=1), -1] = 1.0  # a vector of unit length that is near to no other
    return padded


def ask(
    folder: Path, whole: RetrievalSet, make: MakeVector | None, every: int
) -> dict[str, list[float]]:
    """Give nDCG@10 of each question by keywords and in hybrid mode."""
    figures: dict[str, list[float]] = {"fts": [], "hybrid": []}
    with open_store(folder, whole) as filled:
        for each in whole.questions[::every]:
            for mode, scores in figures.items():
                vector = make(each.text).tolist() if make and mode != "fts" else None
                found = filled.find(each, mode=mode, granularity="coarse", vector=vector)
                scores.append(measure(found, each.gains)["ndcg@10"])
    return figures


def measure_kinds(
    stores: Path, whole: RetrievalSet, kinds: Sequence[str], every: int
) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Ask a set with each kind of vectors."""
    with open_store(stores, whole):
        pass
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            if kind == "own":
                yield kind, ask(stores, whole, None, every)
                continue
            make = copy_with(kind, store_path(stores, whole), store_path(Path(folder), whole))
            yield kind, ask(Path(folder), whole, make, every)


def main() -> None:
    """Print a row for each set and kind of vectors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--vectors", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--verbatim", type=int, help="passages of the store; none by default")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question")
    given = parser.parse_args()
    given.stores.mkdir(parents=True, exist_ok=True)
    wanted = [read_set(folder) for folder in find_sets(given.data, given.sets)]
    if given.verbatim:
        wanted.append(make_verbatim(given.data, given.verbatim))
    print("| set | vectors | questions | fts | hybrid | difference (95 %) |")
    print("|---|---|--:|--:|--:|---|")
    for whole in wanted:
        for kind, figures in measure_kinds(given.stores, whole, given.vectors, given.every):
            change = compare(figures["fts"], figures["hybrid"])
            means = " | ".join(f"{np.mean(scores):.3f}" for scores in figures.values())
            print(
                f"| {whole.name} | {kind} | {len(figures['fts'])} | {means} | {change.mean:+.3f} "
                f"({change.low:+.3f} to {change.high:+.3f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
