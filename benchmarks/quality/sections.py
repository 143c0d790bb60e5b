"""Sections: sets whose documents have headings, and whose answers are places in them.

What a question asks for is a stretch of a document, so what answers it are the chunks that the
product cuts there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sets import Document, Question, RetrievalSet, name_chunk

from byheart.chunking import guess_format, split
from byheart.contracts import TokenCounter
from byheart.model import Chunk
from byheart.settings import load_settings

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the stretches, by document, that answer it."""

    text: str
    answers: Sequence[tuple[str, Span]]


def make_set(
    name: str, documents: Sequence[Document], asked: Sequence[Asked], tokens: TokenCounter
) -> RetrievalSet:
    """Name the chunks that answer each question, each as good as the other."""
    chunks = {each.name: _cut(each.text, tokens) for each in documents}
    questions = [
        Question(str(number), each.text, None, None, _gains(each, chunks))
        for number, each in enumerate(asked)
    ]
    return RetrievalSet(name, documents, questions, in_chunks=True)


def _gains(asked: Asked, chunks: Mapping[str, Sequence[Chunk]]) -> dict[str, float]:
    return {
        name_chunk(document, chunk.start_char): 1.0
        for document, (start, end) in asked.answers
        for chunk in chunks[document]
        if chunk.start_char < end and start < chunk.end_char
    }


def _cut(text: str, tokens: TokenCounter) -> list[Chunk]:
    """Cut a text as a store does that is told nothing about it."""
    return split(
        text,
        format=guess_format(text, None),
        tokens=tokens,
        target_tokens=load_settings().chunk_tokens,
    )
