"""Facts of everyday life, asked about in their own words and in others, and unrelated questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sets import Document, Question, RetrievalSet

_FILE = Path(__file__).with_name("everyday_facts.json")
FAMILY = "everyday"
# General knowledge is what encyclopedias are about, so these questions may be answered by XQuAD.
GENERAL, GENERAL_FAMILY = "general knowledge", "xquad"


def read_everyday() -> list[RetrievalSet]:
    """Read all facts as one set, and the facts of each theme as a set of its own."""
    themes: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))["themes"]
    return [
        _make_set(FAMILY, themes),
        *(_make_set(f"{FAMILY}_{theme}", {theme: facts}) for theme, facts in themes.items()),
    ]


def read_general() -> RetrievalSet:
    """Read the questions that no fact answers, as a set without documents."""
    asked = json.loads(_FILE.read_text(encoding="utf-8"))["unrelated"]
    return RetrievalSet(GENERAL, (), [Question(each, each, None, None, {}) for each in asked])


def _make_set(name: str, themes: dict[str, Any]) -> RetrievalSet:
    facts = [
        (f"{theme}/{number}", fact)
        for theme, several in themes.items()
        for number, fact in enumerate(several)
    ]
    documents = [Document(label, None, text, None) for label, (text, *_) in facts]
    return RetrievalSet(name, documents, list(_questions(facts)))


def _questions(facts: list[tuple[str, Any]]) -> Iterator[Question]:
    for label, (_, *paraphrases, plain) in facts:
        for number, text in enumerate(paraphrases):
            yield Question(f"{label}/{number}", text, None, "other words", {label: 1.0})
        yield Question(f"{label}/plain", plain, None, "own words", {label: 1.0})
