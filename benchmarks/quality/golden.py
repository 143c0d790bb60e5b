"""Golden rankings: show that a change of the code leaves every answer as it was.

    python benchmarks/quality/golden.py fill  --data FOLDER --stores STORES
    python benchmarks/quality/golden.py write --data FOLDER --stores COPY --out BEFORE.jsonl
        [--verbs search recall context]
    python benchmarks/quality/golden.py compare BEFORE.jsonl AFTER.jsonl [--not-equal LIST.txt]

`fill` saves a sample of each retrieval set, and the Markdown documents, into stores that can be
kept. `write` asks 50 questions of each set and writes one line per answer:

- `search` in every mode, granularity and fusion, with and without filters: the ten best hits with
  scores, and the verdict;
- `recall` with and without filters: the ten best memories with every part of their scores;
- `context` in a conversation that asks these questions, with two token budgets and with a filter:
  the receipt, and the hash of the text.

Run `write` before and after a change, each time on a fresh copy of the same stores, because
`recall` counts accesses and a conversation adds turns. The clock shows ten days after the store
was filled and moves on with each question, so answers do not depend on the day. `compare` lists
the differences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sets import Document, Question, RetrievalSet, find_sets, read_set, sample_set
from stopped_clock import StoppedClock  # before byheart

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
_PARTS = ("score", "relevance", "importance", "recency", "frequency")
_AGE = timedelta(days=10)
_SESSION, _REPLY_CHARACTERS = "golden", 300
_CONTEXTS: Mapping[str, Mapping[str, Any]] = {
    "500": {"max_tokens": 500},
    "4000": {"max_tokens": 4000},
    "4000 filter=kind": {"max_tokens": 4000, "kind": "fact"},
}


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
    """Open the store of a sample."""
    return byheart.open(stores / f"{sample.name}.db", space=sample.name, collect_stats=False)


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
                StoppedClock.moment = store.get(next(iter(names))).created_at + _AGE
                for verb in options.verbs:
                    for question, how, found in _VERBS[verb](store, sample, names):
                        line = [sample.name, question.name, how, found]
                        out.write(json.dumps(line, ensure_ascii=False) + "\n")
            StoppedClock.moment = None
            print(sample.name, file=sys.stderr, flush=True)


def _searches(
    store: byheart.MemoryStore, sample: RetrievalSet, names: Mapping[str, str]
) -> Iterator[tuple[Question, str, list[Any]]]:
    ways = [
        {"mode": mode, "granularity": granularity}
        for mode in _MODES
        for granularity in _GRANULARITIES
    ]
    ways.append({"mode": "hybrid", "granularity": "fine", "fusion": "rrf"})
    for question in sample.questions:
        for label, filters in _FILTERS.items():
            for way in ways:
                answer = store.search(question.text, limit=10, **way, **_scope(question), **filters)
                found = [_hit(hit, names) for hit in answer.results]
                verdict = [answer.verdict, round(answer.confidence, 4)]
                yield question, f"{'/'.join(way.values())} filter={label}", [*found, verdict]
        word = max(re.findall(r"\w+", question.text), key=len, default="a")
        answer = store.search(f'"{word}"', limit=10, raw=True, mode="fts", **_scope(question))
        yield question, "raw", [_hit(hit, names) for hit in answer.results]


def _recalls(
    store: byheart.MemoryStore, sample: RetrievalSet, names: Mapping[str, str]
) -> Iterator[tuple[Question, str, list[Any]]]:
    for question in sample.questions:
        for label, filters in _FILTERS.items():
            StoppedClock.advance()
            answer = store.recall(
                question.text,
                limit=10,
                max_tokens=4000,
                explain=True,
                **_scope(question),
                **filters,
            )
            weighed = [
                [names[each.id], *(getattr(each, part) for part in _PARTS)]
                for each in answer.explanations or ()
            ]
            details = [names[each.id] for each in answer.details]
            verdict = [answer.verdict, round(answer.confidence, 4)]
            figures = [answer.tokens_used, answer.total_count, *verdict]
            yield question, f"recall filter={label}", [*_rounded(weighed), details, figures]


def _contexts(
    store: byheart.MemoryStore, sample: RetrievalSet, names: Mapping[str, str]
) -> Iterator[tuple[Question, str, list[Any]]]:
    """Ask for a context after each question of a conversation, and reply with a document's text.

    The conversation has a pinned document and a running summary.
    """
    names = dict(names)
    store.pin(next(iter(names)))
    summarize = getattr(store, "summarize", None) or store.sessions.summarize
    for session in sorted({question.group or _SESSION for question in sample.questions}):
        names[summarize(session, f"This is a talk about {sample.name}.").memory_id] = "summary"
    for at, question in enumerate(sample.questions):
        session = question.group or _SESSION
        StoppedClock.advance()
        names[store.log(session, "user", question.text).memory_id] = f"question {at}"
        for label, how in _CONTEXTS.items():
            StoppedClock.advance()
            answer = store.context(session, **how)
            items = [
                [each.part, names[each.memory_id], _places(each.chunk_ids), each.score, each.tokens]
                for each in answer.receipt.items
            ]
            left_out = [
                [each.part, names[each.memory_id], each.score, each.reason]
                for each in answer.receipt.left_out
            ]
            text = hashlib.sha256(answer.text.encode()).hexdigest()
            found = [*_rounded(items), _rounded(left_out), answer.tokens_used, text]
            yield question, f"context budget={label}", found
        StoppedClock.advance()
        reply = sample.documents[at % len(sample.documents)].text[:_REPLY_CHARACTERS]
        names[store.log(session, "assistant", reply).memory_id] = f"reply {at}"


_VERBS = {"search": _searches, "recall": _recalls, "context": _contexts}


def _scope(question: Question) -> dict[str, Any]:
    return {"session_id": question.group} if question.group else {}


def _places(chunk_ids: Sequence[str]) -> list[str]:
    return [each.partition("#")[2] for each in chunk_ids]


def _rounded(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [
        [round(each, _DIGITS) if isinstance(each, float) else each for each in row] for row in rows
    ]


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("fill", fill), ("write", write)):
        command = commands.add_parser(name)
        command.add_argument("--data", type=Path, required=True)
        command.add_argument("--stores", type=Path, required=True)
        command.set_defaults(run=run)
        if name == "write":
            command.add_argument("--out", type=Path, required=True)
            command.add_argument(
                "--verbs",
                nargs="+",
                choices=_VERBS,
                default=[*_VERBS],
                help="the verbs to ask, in this order; by default all",
            )
    command = commands.add_parser("compare")
    command.add_argument("before", type=Path)
    command.add_argument("after", type=Path)
    command.add_argument("--not-equal", type=Path)
    command.set_defaults(run=compare)
    options = parser.parse_args(arguments)
    options.run(options)


if __name__ == "__main__":
    main()
