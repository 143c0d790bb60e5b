"""Golden rankings: show that a change of the code leaves every answer as it was.

    python benchmarks/quality/golden.py fill  --data FOLDER --stores STORES
    python benchmarks/quality/golden.py write --data FOLDER --stores STORES --out BEFORE.jsonl
    python benchmarks/quality/golden.py compare BEFORE.jsonl AFTER.jsonl [--not-equal LIST.txt]

`fill` saves a sample of each retrieval set, and the Markdown documents, into stores that can be
kept. `write` asks 50 questions of each set in every mode, granularity and fusion, with and without
filters, by `search` and by `recall`, and writes the ten best ids and scores, one line per answer.
Run `write` before and after a change, each time on a copy of the same stores; `compare` lists the
differences.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sets import Document, Question, RetrievalSet, find_sets, read_set, sample_set

import byheart

_QUESTIONS, _DOCUMENTS, _MOST_CHARACTERS = 50, 400, 1_500_000
_KINDS = ("note", "fact", "report")
_FILTERS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "kind": {"kind": "fact"},
    "tag": {"tags": ["t3"]},
    "importance": {"min_importance": 7},
    "path": {"path": "docs/1/"},
}
_MODES = ("fts", "vector", "hybrid")
_GRANULARITIES = ("fine", "medium", "coarse")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_DIGITS = 5


def read_samples(data: Path) -> Iterator[RetrievalSet]:
    """Sample every retrieval set, and make one of the Markdown documents and their headings."""
    for folder in find_sets(data, None):
        sample = sample_set(read_set(folder), _DOCUMENTS, _QUESTIONS)
        yield _shorten(sample)
    for folder in sorted((data / "markdown").glob("*")):
        yield _markdown_set(folder)


def _shorten(sample: RetrievalSet) -> RetrievalSet:
    """Keep conversations whole until the sample is large enough to embed in a minute or two."""
    wanted = {name for each in sample.questions for name in each.gains}
    kept, characters = [], 0
    for each in sorted(sample.documents, key=lambda each: each.name not in wanted):
        characters += len(each.text)
        if characters <= _MOST_CHARACTERS:
            kept.append(each)
    order = {each.name: at for at, each in enumerate(sample.documents)}
    kept.sort(key=lambda each: order[each.name])
    return RetrievalSet(sample.name, kept, sample.questions)


def _markdown_set(folder: Path) -> RetrievalSet:
    documents = [
        Document(str(path.relative_to(folder)), path.stem, text, None)
        for path in sorted(folder.rglob("*.md"))
        if (text := path.read_text(encoding="utf-8")).strip()
    ][:_DOCUMENTS]
    headings = sorted({match for each in documents for match in _HEADING.findall(each.text)})
    asked = random.Random(folder.name).sample(headings, min(_QUESTIONS, len(headings)))
    questions = [Question(text, text, None, None, {}) for text in asked]
    return RetrievalSet(folder.name, documents, questions)


def open_golden(stores: Path, sample: RetrievalSet) -> byheart.MemoryStore:
    """Open the store of a sample, so that the same question always gets the same answer.

    Recency and frequency would change what `recall` answers from day to day, and by asking.
    """
    return byheart.open(
        stores / f"{sample.name}.db",
        space=sample.name,
        collect_stats=False,
        recall_recency_weight=0,
        recall_frequency_weight=0,
    )


def _items(sample: RetrievalSet) -> list[dict[str, Any]]:
    return [
        {
            "content": each.text,
            "title": each.title,
            "session_id": each.group,
            "kind": _KINDS[at % len(_KINDS)],
            "tags": [f"t{at % 10}"],
            "importance": float(at % 11),
            "path": f"docs/{at % 5}/{at}.md",
        }
        for at, each in enumerate(sample.documents)
    ]


def fill(options: argparse.Namespace) -> None:
    """Save every sample into its store."""
    options.stores.mkdir(parents=True, exist_ok=True)
    for sample in read_samples(options.data):
        with open_golden(options.stores, sample) as store:
            saved = store.save_many(_items(sample))
        names = {
            each.memory_id: document.name
            for each, document in zip(saved, sample.documents, strict=True)
        }
        (options.stores / f"{sample.name}.json").write_text(json.dumps(names), encoding="utf-8")
        print(f"{sample.name}: {len(names):,} documents", file=sys.stderr, flush=True)


def write(options: argparse.Namespace) -> None:
    """Ask every question in every way and write the answers."""
    with options.out.open("w", encoding="utf-8") as out:
        for sample in read_samples(options.data):
            names = json.loads((options.stores / f"{sample.name}.json").read_text("utf-8"))
            with open_golden(options.stores, sample) as store:
                for question in sample.questions:
                    for how, found in _answers(store, question, names):
                        line = [sample.name, question.name, how, found]
                        out.write(json.dumps(line, ensure_ascii=False) + "\n")
            print(sample.name, file=sys.stderr, flush=True)


def _answers(
    store: byheart.MemoryStore, question: Question, names: Mapping[str, str]
) -> Iterator[tuple[str, list[Any]]]:
    scope: dict[str, Any] = {"session_id": question.group} if question.group else {}
    for label, filters in _FILTERS.items():
        ways = [
            {"mode": mode, "granularity": granularity}
            for mode in _MODES
            for granularity in _GRANULARITIES
        ]
        ways.append({"mode": "hybrid", "granularity": "fine", "fusion": "rrf"})
        for way in ways:
            answer = store.search(question.text, limit=10, **way, **scope, **filters)
            found = [_hit(hit, names) for hit in answer.results]
            verdict = [answer.verdict, round(answer.confidence, 4)]
            yield f"{'/'.join(way.values())} filter={label}", [*found, verdict]
        recalled = store.recall(
            question.text, limit=10, max_tokens=4000, explain=True, **scope, **filters
        )
        shown = [
            [names[each.id], round(each.relevance, _DIGITS), round(each.score, _DIGITS)]
            for each in recalled.explanations or ()
        ]
        yield f"recall filter={label}", [*shown, [each.id for each in recalled.details]]
    word = max(re.findall(r"\w+", question.text), key=len, default="a")
    answer = store.search(f'"{word}"', limit=10, raw=True, mode="fts", **scope)
    yield "raw", [_hit(hit, names) for hit in answer.results]


def _hit(hit: Any, names: Mapping[str, str]) -> list[Any]:
    place = getattr(hit, "chunk_index", None)
    if place is None:
        place = getattr(hit, "header_path", None)
    return [names[hit.memory_id], place, round(hit.score, _DIGITS)]


def compare(options: argparse.Namespace) -> None:
    """List the answers that are not equal, by set and by way of asking."""
    before, after = _read(options.before), _read(options.after)
    missing = before.keys() ^ after.keys()
    different = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    counts = Counter((name, how.split()[0]) for name, _, how in different)
    for (name, how), count in sorted(counts.items()):
        print(f"{name:28} {how:24} {count:6,} differ")
    if options.not_equal:
        lines = (
            json.dumps([*key, before[key], after[key]], ensure_ascii=False)
            for key in sorted(different)
        )
        options.not_equal.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(before):,} answers, {len(different):,} differ, {len(missing):,} missing")
    sys.exit(1 if different or missing else 0)


def _read(path: Path) -> dict[tuple[str, str, str], list[Any]]:
    with path.open(encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return {(name, question, how): found for name, question, how, found in rows}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("fill", fill), ("write", write)):
        command = commands.add_parser(name)
        command.add_argument("--data", type=Path, required=True)
        command.add_argument("--stores", type=Path, required=True)
        command.set_defaults(run=run)
        if name == "write":
            command.add_argument("--out", type=Path, required=True)
    command = commands.add_parser("compare")
    command.add_argument("before", type=Path)
    command.add_argument("after", type=Path)
    command.add_argument("--not-equal", type=Path)
    command.set_defaults(run=compare)
    options = parser.parse_args(arguments)
    options.run(options)


if __name__ == "__main__":
    main()
