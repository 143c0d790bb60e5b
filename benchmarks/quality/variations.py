"""Variations of the vector retriever: which texts are embedded, how they are pooled and compared.

Each changes one thing of what the product does, and says for which sets that makes a difference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sets import Document

from byheart.contracts import TokenCounter
from byheart.embedding import window_texts
from byheart.embedding.vectorizer import Passage
from byheart.language.terms import STOP_WORDS
from byheart.model import HEADING_SEPARATOR, Chunk

WINDOW_TOKENS = 254  # what all-MiniLM-L6-v2 was made for, less two special tokens
_LEAD_TOKENS = 80  # of the chunk before, in the first window: the product's default
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
_DATE = re.compile(r".* on (.*)")  # 1:56 pm on 8 May, 2023
_TITLED = ("scifact", "cisi", "cacm", "locomo_dev_sessions", "xquad")
_LONG = ("scifact", "cisi", "cacm", "locomo_dev_sessions", "longmemeval", "xquad_de")
_LONGEST = ("scifact", "locomo_dev_sessions", "longmemeval")
_TURNS, _CHATS = "locomo_dev_turns", "longmemeval"
_PAGES = ("wikitexts", "obsidian-help", "rust-book")  # with titles and sections
_SECTIONED = (*_PAGES, "pubmed")

Compared = Literal["best", "mean", "first"]
Said = Literal["bare", "dated"]
Headings = Literal["all", "innermost", "above", "none"]


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to make and compare vectors; without anything said, the product's own."""

    name: str
    sets: tuple[str, ...] = ("",)
    titles: bool = True
    headings: Headings = "all"
    title_apart: bool = False
    lead_tokens: int = _LEAD_TOKENS
    window_tokens: int = WINDOW_TOKENS
    overlap_tokens: int = 0
    windows: Compared = "best"
    pooling: Literal["mean", "first token", "rare tokens first"] = "mean"
    question: Literal["whole", "sentences, best", "sentences, mean", "telling words"] = "whole"
    said: Said | None = None
    said_in_words: bool = False

    def fits(self, name: str) -> bool:
        """Say whether it can make a difference to a set."""
        return name.startswith(self.sets)


AS_BUILT = Variation("as built")
VARIATIONS = (
    AS_BUILT,
    Variation("no titles", (*_TITLED, "obsidian-help"), titles=False),
    Variation("no headings", _SECTIONED, headings="none"),
    Variation("no titles and no headings", _PAGES, titles=False, headings="none"),
    Variation("title and innermost heading", _SECTIONED, headings="innermost"),
    Variation("innermost heading alone", _PAGES, titles=False, headings="innermost"),
    Variation("no heading that the chunk has itself", _SECTIONED, headings="above"),
    Variation("title as a window of its own too", _TITLED, title_apart=True),
    Variation("nothing of the chunk before", _LONG, lead_tokens=0),
    Variation("windows of 62 tokens", _LONG, window_tokens=62),
    Variation("windows of 126 tokens", _LONG, window_tokens=126),
    Variation("windows of 510 tokens", _LONG, window_tokens=510),
    Variation("windows overlap by 32 tokens", _LONGEST, overlap_tokens=32),
    Variation("mean over windows", _LONG, windows="mean"),
    Variation("mean over windows of 126", _LONG, window_tokens=126, windows="mean"),
    Variation("first window alone", _LONG, windows="first"),
    Variation("first token", ("cisi", "cosqa", _TURNS, "xquad_en"), pooling="first token"),
    Variation(
        "rare tokens first", ("cisi", "cosqa", _TURNS, "xquad_en"), pooling="rare tokens first"
    ),
    Variation("best of the question's sentences", ("cisi", "cacm"), question="sentences, best"),
    Variation("mean of the question's sentences", ("cisi", "cacm"), question="sentences, mean"),
    Variation("question without stop words", question="telling words"),
    Variation("without speaker", (_TURNS,), said="bare"),
    Variation("with date", (_TURNS, _CHATS), said="dated"),
    Variation("without speaker in both retrievers", (_TURNS,), said="bare", said_in_words=True),
    Variation("with date in both retrievers", (_TURNS, _CHATS), said="dated", said_in_words=True),
)


def retell(document: Document, said: Said) -> Document:
    """Give a text of a chat without its speaker, or with its date."""
    if document.said is None:  # a whole session
        return replace(document, title=document.date)
    if said == "bare":
        return replace(document, text=document.said)
    day = _DATE.sub(r"\1", document.date or "")
    return replace(document, text=f"{document.speaker}, {day}: {document.said}")


def texts_of(passage: Passage, how: Variation, tokens: TokenCounter) -> list[str]:
    """Give the texts that are embedded for a chunk."""
    title = passage.title if how.titles else None
    names = (title, *_choose_headings(passage.chunk, how.headings))
    header = HEADING_SEPARATOR.join(dict.fromkeys(each for each in names if each))
    made = window_texts(
        passage.chunk.content,
        before=passage.before if how.lead_tokens else "",
        header=header,
        tokens=tokens,
        window_tokens=how.window_tokens,
        overlap_tokens=how.lead_tokens,
    )
    if how.overlap_tokens and len(made) > 1:
        return _overlapping(passage.chunk.content, header, how, tokens)
    if how.title_apart and passage.title and passage.chunk.index == 0:
        made.append(passage.title)
    return made[:1] if how.windows == "first" else made


def _choose_headings(chunk: Chunk, which: Headings) -> list[str]:
    if which == "above":
        return [each.title for each in chunk.headings if each.start_char < chunk.start_char]
    titles = [each.title for each in chunk.headings]
    return {"all": titles, "innermost": titles[-1:], "none": []}[which]


def _overlapping(text: str, header: str, how: Variation, tokens: TokenCounter) -> list[str]:
    """Let each window of a chunk show the end of the one before and the start of the next."""
    room = how.window_tokens - 2 * how.overlap_tokens - len(tokens.token_starts(header))
    slices = window_texts(text, before="", header="", tokens=tokens, window_tokens=room)
    starts = [*tokens.token_starts(text), len(text)]
    shown, begin = [], 0
    for each in slices:
        end = begin + len(each)
        first = sum(start < begin for start in starts) - how.overlap_tokens
        last = sum(start < end for start in starts) + how.overlap_tokens
        wider = text[starts[max(first, 0)] : starts[min(last, len(starts) - 1)]]
        shown.append(f"{header}\n\n{wider}" if header else wider)
        begin = end
    return shown


def question_texts(question: str, how: Variation) -> Sequence[str]:
    """Give the texts that are embedded for a question."""
    if how.question.startswith("sentences"):
        return _SENTENCE_END.split(question.strip())
    if how.question == "telling words":
        telling = [word for word in question.split() if word.strip("?.,").lower() not in STOP_WORDS]
        return [" ".join(telling) or question]
    return [question]
