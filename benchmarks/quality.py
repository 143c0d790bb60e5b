"""Quality: nDCG@10 and recall@10 of each mode on public retrieval sets, through the product.

    python benchmarks/quality.py --data FOLDER [--sets a,b] [--stores FOLDER] [--out FILE]

FOLDER holds one folder per set with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`;
docs/benchmarks.md says where to get them. Every document is saved as a memory; a set with
conversations keeps each in its own session, and asks within it. A question is answered by
`search(granularity="coarse")`. Stores are kept between runs when a folder for them is given.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import byheart

DEPTH = 10
MODES = ("fts", "vector", "hybrid")


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Read one object a line."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_gains(path: Path) -> dict[str, dict[str, float]]:
    """Read which documents answer which question, and how well."""
    gains: dict[str, dict[str, float]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines, delimiter="\t"):
            if len(row) == 3 and row[2].replace(".", "").isdigit() and float(row[2]) > 0:
                gains[row[0]][row[1]] = float(row[2])
    return gains


def to_items(corpus: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Turn documents into what `save` takes."""
    for row in corpus:
        yield {
            "content": row["text"] if row["text"].strip() else row["title"] or row["_id"],
            "title": (row.get("title") or "").strip()[:200] or None,
            "session_id": row.get("conv"),
            "metadata": {"id": row["_id"]},
        }


def open_filled(folder: Path, path: Path) -> byheart.MemoryStore:
    """Open the store of a set, saving what is not in it yet."""
    store = byheart.open(path, space=folder.name)
    items = list(to_items(read_jsonl(folder / "corpus.jsonl")))
    started = time.perf_counter()

    def show(progress: byheart.Progress) -> None:
        rate = progress.memories / (time.perf_counter() - started)
        print(f"\r{progress.memories:,} of {len(items):,}, {rate:.0f}/s ", end="", file=sys.stderr)

    store.save_many(items, show)
    print(file=sys.stderr)
    return store


def ndcg(found: Sequence[str], gains: Mapping[str, float]) -> float:
    """Score a ranking with linear gain."""
    gained = sum(gains.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(found))
    best = sorted(gains.values(), reverse=True)[:DEPTH]
    return gained / sum(gain / math.log2(rank + 2) for rank, gain in enumerate(best))


def evaluate(folder: Path, store: byheart.MemoryStore) -> dict[str, Any]:
    """Ask every judged question in every mode."""
    gains = read_gains(folder / "qrels.tsv")
    names = name_same_texts(folder)
    row: dict[str, Any] = {"set": folder.name}
    questions = [
        question
        for question in read_jsonl(folder / "queries.jsonl")
        if question["_id"] in gains and not question.get("abstention")
    ]
    row["questions"] = len(questions)
    for mode in MODES:
        scores, recalls = [], []
        for question in questions:
            scope = {"session_id": question.get("conv"), "include_global": False}
            answer = store.search(
                question["text"],
                limit=DEPTH,
                mode=mode,
                granularity="coarse",
                **(scope if question.get("conv") else {}),
            )
            found = [hit.metadata["id"] for hit in answer.results]
            wanted = {names[name]: gain for name, gain in gains[question["_id"]].items()}
            scores.append(ndcg(found, wanted))
            recalls.append(len(wanted.keys() & set(found)) / len(wanted))
        row[mode] = {
            "ndcg@10": round(sum(scores) / len(scores), 4),
            "recall@10": round(sum(recalls) / len(recalls), 4),
        }
    return row


def name_same_texts(folder: Path) -> dict[str, str]:
    """Name documents of the same text by the first of them: the store keeps such a text once."""
    first: dict[tuple[str | None, str], str] = {}
    return {
        item["metadata"]["id"]: first.setdefault(
            (item["session_id"], item["content"]), item["metadata"]["id"]
        )
        for item in to_items(read_jsonl(folder / "corpus.jsonl"))
    }


def render(rows: Sequence[dict[str, Any]]) -> str:
    """Lay the figures out as a Markdown table."""
    lines = ["| set | questions | fts | vector | hybrid |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [f"{row[mode]['ndcg@10']:.3f} / {row[mode]['recall@10']:.3f}" for mode in MODES]
        lines.append("| " + " | ".join([row["set"], f"{row['questions']:,}", *cells]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets")
    parser.add_argument("--stores", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.sets.split(",") if options.sets else None
    folders = [
        path.parent
        for path in sorted(options.data.glob("*/qrels.tsv"))
        if names is None or path.parent.name in names
    ]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        stores = options.stores or Path(temporary)
        stores.mkdir(parents=True, exist_ok=True)
        for folder in folders:
            with open_filled(folder, stores / f"{folder.name}.db") as store:
                rows.append(evaluate(folder, store))
            print(json.dumps(rows[-1]), file=sys.stderr)
    print(render(rows))
    if options.out:
        machine = {
            "date": datetime.now(UTC).date().isoformat(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        options.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
