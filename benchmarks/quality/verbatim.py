"""Verbatim questions: some words in a row of one passage among very many."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from sets import Document, Question, RetrievalSet, find_sets, read_set

NAME = "verbatim"
_SEED, _QUESTIONS = 13, 300
_LEAST, _MOST = 170, 600
_FEWEST_WORDS, _MOST_WORDS = 3, 10
_END = re.compile(r"(?<=[.!?。؟।])\s+|\n+")


def make_verbatim(data: Path, passages: int) -> RetrievalSet:
    """Cut the documents of all sets into passages, and ask some of them by words they have."""
    found = dict.fromkeys(
        passage
        for folder in find_sets(data, None)
        for document in read_set(folder).documents
        for passage in _cut(document.text)
    )
    chance = random.Random(_SEED)
    kept = chance.sample(sorted(found), min(passages, len(found)))
    documents = [Document(f"p{at}", None, text, None) for at, text in enumerate(kept)]
    long_enough = [each for each in documents if len(each.text.split()) > _MOST_WORDS]
    questions = []
    for each in chance.sample(long_enough, _QUESTIONS):
        words = each.text.split()
        count = chance.randint(_FEWEST_WORDS, _MOST_WORDS)
        first = chance.randint(0, len(words) - count)
        text = " ".join(words[first : first + count])
        questions.append(Question(each.name, text, None, None, {each.name: 1.0}))
    return RetrievalSet(f"{NAME}_{len(documents)}", documents, questions)


def _cut(text: str) -> Iterator[str]:
    """Join sentences until they are long enough for a passage."""
    passage = ""
    for sentence in _END.split(text):
        passage = f"{passage} {sentence}".strip()
        if len(passage) >= _LEAST:
            yield passage[:_MOST]
            passage = ""
