"""Retrieval sets: folders with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`."""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_SEED = 5


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be found; `group` is the conversation that it belongs to.

    Of a turn it is known who said it and when, and `said` is it without the speaker's name.
    """

    name: str
    title: str | None
    text: str
    group: str | None
    date: str | None = None
    speaker: str | None = None
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, within which conversation, and which documents answer it how well."""

    name: str
    text: str
    group: str | None
    category: str | None
    gains: Mapping[str, float]
    date: str | None = None


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Documents and the questions that are asked about them, or about chunks of them."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]
    in_chunks: bool = False
    # Questions about the subjects of the set that no document answers.
    unanswerable: Sequence[Question] = ()
    is_whole: bool = True


def name_chunk(document: str, start_char: int) -> str:
    """Name a chunk of a document by where it begins."""
    return f"{document} @ {start_char}"


def find_sets(data: Path, names: Sequence[str] | None) -> list[Path]:
    """List the folders of the sets that are wanted."""
    folders = [path.parent for path in sorted(data.glob("*/qrels.tsv"))]
    return [each for each in folders if names is None or each.name in names]


def read_set(folder: Path) -> RetrievalSet:
    """Read a set; questions that are to be left unanswered are kept apart.

    Of documents with the same text, which a store keeps once, the first stands for all.
    """
    first: dict[tuple[str | None, str], str] = {}
    same: dict[str, str] = {}
    documents = []
    for row in _read_lines(folder / "corpus.jsonl"):
        document = _document(row)
        key = (document.group, document.text)
        if key not in first:
            documents.append(document)
        same[document.name] = first.setdefault(key, document.name)
    gains = _read_gains(folder / "qrels.tsv")
    rows = list(_read_lines(folder / "queries.jsonl"))
    questions = [
        _question(row, {same[name]: gain for name, gain in gains[row["_id"]].items()})
        for row in rows
        if row["_id"] in gains and not row.get("abstention")
    ]
    unanswerable = [_question(row, {}) for row in rows if row.get("abstention")]
    return RetrievalSet(folder.name, documents, questions, unanswerable=unanswerable)


def _question(row: Mapping[str, Any], gains: Mapping[str, float]) -> Question:
    return Question(
        row["_id"], row["text"], row.get("conv"), row.get("category"), gains, row.get("date")
    )


def sample_set(whole: RetrievalSet, documents: int, questions: int) -> RetrievalSet:
    """Take some questions, what answers them, and more by chance; conversations stay whole."""
    chance = random.Random(f"{_SEED} {whole.name}")
    asked = chance.sample(list(whole.questions), min(questions, len(whole.questions)))
    wanted = {name for each in asked for name in each.gains}
    rest = [each.name for each in whole.documents if each.name not in wanted]
    in_groups = any(each.group for each in whole.documents)
    more = len(rest) if in_groups else min(max(documents - len(wanted), 0), len(rest))
    kept = wanted | set(chance.sample(rest, more))
    return replace(
        whole,
        documents=[each for each in whole.documents if each.name in kept],
        questions=asked,
        is_whole=len(kept) == len(whole.documents),
    )


def _document(row: Mapping[str, Any]) -> Document:
    title = (row.get("title") or "").strip()[:200] or None
    text = row["text"] if row["text"].strip() else title or row["_id"]
    told = (row.get("date"), row.get("speaker"), row.get("raw"))
    return Document(row["_id"], title, text, row.get("conv"), *told)


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _read_gains(path: Path) -> dict[str, dict[str, float]]:
    gains: dict[str, dict[str, float]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines, delimiter="\t"):
            if len(row) == 3 and row[2].replace(".", "").isdigit() and float(row[2]) > 0:
                gains[row[0]][row[1]] = float(row[2])
    return gains
