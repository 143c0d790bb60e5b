"""Ask the questions of retrieval sets where the index of every space is kept in PostgreSQL.

    python benchmarks/quality/large_spaces.py --data FOLDER --stores STORES [--sets cacm,cisi]
        [--questions 100]

STORES keeps filled SQLite stores between runs, as for the other benchmarks of this folder. Each is
copied to PostgreSQL, where words and vectors of every space are moved into the database. Both are
asked the same questions; a line says how many answers differ in ids, order or scores, and nDCG@10.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from measures import measure
from sets import RetrievalSet, find_sets, read_set
from stores import open_store, store_path
from systems import MODES

import byheart
from byheart.opening import copy_store

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.postgres_server import private_server


def compare(whole: RetrievalSet, stores: Path, address: str, most: int) -> Iterator[str]:
    """Ask both databases; give a line for each mode."""
    with open_store(stores, whole) as local:
        copy_store(store_path(stores, whole), address)
        with byheart.open(address, space=whole.name, postgres_local_chunks=0) as large:
            large.search("the first question reads the index")
            large._storage.refresh(whole.name)
            both = (local, local._replace(store=large))
            for mode in MODES:
                figures: list[list[float]] = [[], []]
                differing = 0
                for question in whole.questions[:most]:
                    answers = [each.search(question, limit=10, mode=mode) for each in both]
                    assert answers[1].index.kept_in == "database"
                    differing += answers[0].results != answers[1].results
                    for at, each in enumerate(both):
                        found = each.find(question, mode=mode, granularity="coarse")
                        figures[at].append(measure(found, question.gains)["ndcg@10"])
                means = [statistics.mean(each) for each in figures]
                yield (
                    f"{whole.name:22} {mode:7} {len(figures[0]):4} questions, {differing} answers "
                    f"differ; nDCG@10 in the file {means[0]:.4f}, in the database {means[1]:.4f}"
                )


def main() -> None:
    """Compare all sets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--sets", type=lambda given: given.split(","))
    parser.add_argument("--questions", type=int, default=100)
    asked = parser.parse_args()
    with private_server() as server:
        for folder in find_sets(asked.data, asked.sets):
            whole = read_set(folder)
            address = server.url(schema=whole.name, parts="1")
            for line in compare(whole, asked.stores, address, asked.questions):
                print(line, flush=True)


if __name__ == "__main__":
    main()
