"""Speed: save rate, search latency, start-up, size and memory, at growing numbers of chunks.

    python benchmarks/speed.py --data FOLDER [--sizes 1000,10000,100000] [--stores DIR]

FOLDER holds retrieval sets (`*/corpus.jsonl`, `*/queries.jsonl`; docs/benchmarks.md says where to
get them). Passages are made of their real sentences, about 120 words each, and questions are their
real questions. Questions are embedded with the real model, each time; passages get the vectors of
5,000 really embedded sentences, mixed and shaken, because embedding 100,000 passages on a laptop
takes an hour and does not change what a search costs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import re
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from byheart import MemoryStore
from byheart.contracts import Embedder, Vectors
from byheart.opening import embedder_for
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage

SENTENCE = re.compile(r"(?<=[.!?])\s+")
# Sentences with these would cut a passage in two, or give it a heading.
MARKDOWN = re.compile(r"[\n#*`|<>]|^\s*(?:[-+=]|\d+\.)")
REAL_SENTENCES = 5000
WORDS_PER_PASSAGE = 120
QUESTIONS = 200
ROUNDS = 10
FILTERS: dict[str, dict[str, str]] = {
    "no filter": {},
    "10 %": {"kind": "kind-3"},
    "1 %": {"agent_id": "agent-42"},
}


class ShakenEmbedder:
    """Embed questions for real, and passages as shaken mixtures of really embedded sentences."""

    def __init__(self, real: Embedder, base: Vectors) -> None:
        self._real = real
        self._base = base
        self._random = np.random.default_rng(7)
        self.name, self.dimensions = real.name, real.dimensions
        self.window_tokens = real.window_tokens
        self.token_starts = real.token_starts

    def embed_query(self, text: str) -> Vectors:
        """Embed a question for real, past the cache that would answer it the second time."""
        return self._real.embed([text])[0]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Make vectors that spread like real ones."""
        picks = self._random.integers(0, len(self._base), (len(texts), 3))
        mixed = self._base[picks].mean(axis=1)
        mixed += self._random.normal(0, 0.02, mixed.shape).astype(np.float32)
        return (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32)


def read_lines(data: Path, name: str, *keys: str) -> list[str]:
    """Read the texts of every set in the folder."""
    texts = []
    for path in sorted(data.glob(f"*/{name}.jsonl")):
        # The peers' stemmers and chunks of one size are for English.
        if path.parent.name.startswith("xquad_") and path.parent.name != "xquad_en":
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            texts.append(" ".join(row.get(key) or "" for key in keys).strip())
    return texts


def read_texts(data: Path) -> tuple[list[str], list[str]]:
    """Read the sentences that passages are made of, and the questions, in an order of chance."""
    sentences = sorted(
        {
            sentence
            for text in read_lines(data, "corpus", "title", "text")
            for sentence in SENTENCE.split(text)
            if 40 <= len(sentence) <= 300 and not MARKDOWN.search(sentence)
        }
    )
    random.Random(7).shuffle(sentences)
    questions = list(dict.fromkeys(read_lines(data, "queries", "text")))
    random.Random(7).shuffle(questions)
    return sentences, questions[:QUESTIONS]


def make_passages(sentences: Sequence[str]) -> Iterator[str]:
    """Make passages of sentences at random, without end."""
    for places in choose_sentences(sentences):
        yield " ".join(sentences[place] for place in places)


def choose_sentences(sentences: Sequence[str]) -> Iterator[list[int]]:
    """Choose sentences at random, without end, until each passage has its words."""
    chance = random.Random(7)
    while True:
        words, chosen = 0, list[int]()
        while words < WORDS_PER_PASSAGE:
            chosen.append(chance.randrange(len(sentences)))
            words += sentences[chosen[-1]].count(" ") + 1
        yield chosen


def make_items(passages: Iterator[str], count: int) -> Iterator[dict[str, Any]]:
    """Give passages fields for filters of 10 % and 1 %."""
    for number in range(count):
        yield {
            "content": next(passages),
            "kind": f"kind-{number % 10}",
            "agent_id": f"agent-{number % 100}",
            "entities": [],
            "importance": number % 11,
        }


def fill(store: MemoryStore, passages: Iterator[str], count: int) -> float:
    """Save passages; give memories per second."""
    started = time.perf_counter()
    store.save_many(make_items(passages, count))
    return count / (time.perf_counter() - started)


def summarize(times: Sequence[float]) -> dict[str, float]:
    """Sum milliseconds up."""
    ordered = sorted(times)
    return {
        "p50_ms": round(statistics.median(ordered), 2),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)], 2),
    }


def time_searches(store: MemoryStore, questions: Sequence[str], **given: Any) -> dict[str, float]:
    """Ask every question once, uncached, and sum the times up."""
    for question in questions[:5]:
        store.search(f"{question} please", **given)
    times = []
    for question in questions[5:]:
        started = time.perf_counter()
        answer = store.search(question, **given)
        times.append((time.perf_counter() - started) * 1000)
        assert answer.total_results == 10 or answer.mode == "fts", (question, given)
        assert answer.degraded is None, answer.degraded
    return summarize(times)


def time_undisturbed(
    store: MemoryStore, questions: Sequence[str], **given: Any
) -> dict[str, float]:
    """Ask all questions several times over, uncached, and sum up the fastest time of each.

    Between two askings of one come all others, whose passages, postings and words are other ones.
    Others on the machine make a search slower, never faster: this is what it takes by itself.
    """
    fastest = [math.inf] * len(questions)
    for _ in range(ROUNDS):
        for number, question in enumerate(questions):
            started = time.perf_counter()
            store.search(question, **given)
            took = (time.perf_counter() - started) * 1000
            fastest[number] = min(fastest[number], took)
    return summarize(fastest)


def time_embedding(embedder: Embedder, questions: Sequence[str]) -> dict[str, float]:
    """Embed every question once: what no search by meaning can be faster than."""
    times = []
    for question in questions[5:]:
        started = time.perf_counter()
        embedder.embed_query(question)
        times.append((time.perf_counter() - started) * 1000)
    return summarize(times)


def time_numpy(size: int, dimensions: int) -> dict[str, float]:
    """Compare a question with all vectors in numpy, on all cores: a measure of the machine."""
    chance = np.random.default_rng(7)
    vectors = chance.standard_normal((size, dimensions), np.float32)
    times = []
    for question in chance.standard_normal((100, dimensions), np.float32):
        started = time.perf_counter()
        np.argpartition(vectors @ question, -10)[-10:]
        times.append((time.perf_counter() - started) * 1000)
    return summarize(times)


FIRST_QUERY = """
import json, sys, time
first, *others = json.load(sys.stdin)
started = time.perf_counter()
import byheart
store = byheart.open(sys.argv[1])
answer = store.search(first)
assert answer.total_results == 10, answer
took = time.perf_counter() - started
for question in others:
    store.search(question)
status = open("/proc/self/status").read()
peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
anonymous = int(status.split("RssAnon:")[1].split()[0]) / 1024
print(took * 1000, peak, anonymous)
"""


def ask_in_new_process(path: Path, questions: Sequence[str]) -> tuple[float, ...]:
    """Give the milliseconds of all and until the first answer, and the memory, all and private."""
    started = time.perf_counter()
    out = subprocess.run(
        [sys.executable, "-c", FIRST_QUERY, str(path)],
        input=json.dumps(questions),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    return ((time.perf_counter() - started) * 1000, *map(float, out))


def measure_process(path: Path, questions: Sequence[str]) -> dict[str, float]:
    """Open the store in a new process and ask a question, the best of three; then ask them all."""
    whole, inside, peak, anonymous = min(ask_in_new_process(path, questions[:1]) for _ in range(3))
    _, _, peak_of_all, anonymous_of_all = ask_in_new_process(path, questions)
    return {
        "process_ms": round(whole),
        "open_and_first_query_ms": round(inside),
        "peak_mb": round(peak),
        "private_mb": round(anonymous),
        f"peak_mb, {QUESTIONS} questions": round(peak_of_all),
        f"private_mb, {QUESTIONS} questions": round(anonymous_of_all),
    }


def measure_help() -> dict[str, float]:
    """Ask the command for its help in a new process; the best of three."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        command = [sys.executable, "-m", "byheart", "--help"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - started) * 1000)
    return {"help_ms": round(min(times))}


def time_saves(store: MemoryStore, passages: Iterator[str], count: int) -> dict[str, float]:
    """Save one by one, and look for each at once."""
    saving, finding = [], []
    for _ in range(count):
        marker = "".join(random.choices(string.ascii_lowercase, k=16))
        started = time.perf_counter()
        saved = store.save(f"{marker}. {next(passages)}")
        between = time.perf_counter()
        found = store.search(marker, limit=1)
        finding.append((time.perf_counter() - between) * 1000)
        saving.append((between - started) * 1000)
        assert found.results[0].memory_id == saved.memory_id
    return {
        "save_p50_ms": round(statistics.median(saving), 2),
        "next_search_p50_ms": round(statistics.median(finding), 2),
    }


def measure(size: int, folder: Path, embedder: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Fill a store and measure everything about it."""
    path = folder / f"{size}.db"
    storage = SqliteStorage(path)
    store = MemoryStore(storage, embedder, load_settings({"db_path": str(path)}))
    row: dict[str, Any] = {"chunks": size}
    kept = store.status().index.chunks
    row["saves_per_second"] = round(fill(store, data["passages"], size)) if kept < size else None
    for mode in ("fts", "vector", "hybrid"):
        for name, given in FILTERS.items():
            row[f"{mode}, {name}"] = time_searches(store, data["questions"], mode=mode, **given)
    for name, given in FILTERS.items():
        fastest = time_undisturbed(store, data["questions"][5:], **given)
        row[f"hybrid, {name}, fastest of {ROUNDS}"] = fastest
    row["question embedded, alone"] = time_embedding(embedder, data["questions"])
    row["all vectors compared in numpy"] = time_numpy(size, embedder.dimensions)
    row["medium"] = time_searches(store, data["questions"], granularity="medium")
    row |= time_saves(store, data["passages"], 30)
    store.close()
    row["store_mb"] = round(path.stat().st_size / 1e6, 1)
    row["index_mb"] = round((folder / f"{size}.db-index").stat().st_size / 1e6, 1)
    row |= measure_process(path, data["questions"])
    row |= measure_help()
    return row


def render(rows: Sequence[dict[str, Any]]) -> str:
    """Lay the figures out as a Markdown table."""
    names = list(rows[0])
    lines = ["| " + " | ".join(["", *(f"{row['chunks']:,} chunks" for row in rows)]) + " |"]
    lines.append("|---" * (len(rows) + 1) + "|")
    for name in names[1:]:
        cells = [
            f"{row[name]['p50_ms']} / {row[name]['p95_ms']}"
            if isinstance(row[name], dict)
            else "–"
            if row[name] is None
            else f"{row[name]:,}"
            for row in rows
        ]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def prepare(folder: Path) -> tuple[ShakenEmbedder, dict[str, Any]]:
    """Make an embedder, endless passages, and questions from the sets in a folder."""
    sentences, questions = read_texts(folder)
    real = embedder_for(load_settings())
    print(f"embedding {REAL_SENTENCES:,} sentences …", file=sys.stderr)
    embedder = ShakenEmbedder(real, real.embed(sentences[:REAL_SENTENCES]))
    return embedder, {"passages": make_passages(sentences), "questions": questions}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--stores", type=Path, help="keep filled stores here between runs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    embedder, data = prepare(options.data)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.stores or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for size in map(int, options.sizes.split(",")):
            rows.append(measure(size, folder, embedder, data))
            print(json.dumps(rows[-1]), file=sys.stderr)
    print(render(rows))
    if options.out:
        machine = {
            "date": datetime.now(UTC).date().isoformat(),
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        }
        options.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
