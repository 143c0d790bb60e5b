"""How text becomes keyword terms: one rule for the index, the query and the highlights.

SQLite's own tokenizer (porter over unicode61) does the work, so that our terms are the terms of
FTS5, at about 30 ns a character. It leaves two things unfindable, which `spread` adds:
the parts of identifiers (`getUserName`: get, user, name) and of unspaced scripts (CJK and its kin:
overlapping pairs of characters, and single ones).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator

import apsw

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, Han, Hangul.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
# A letter run with an inner capital, or letters next to digits: what people split when they search.
_COMPOUND = re.compile(r"[^\W\d_]*[a-z][A-Z][^\W_]*|[A-Z]{2,}[a-z][^\W_]*|[^\W\d_]{2,}\d[^\W_]*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_LONGEST_COMPOUND = 100

STOP_WORDS = frozenset(
    "a about after again all also am an and any are as at be because been before being between both "
    "but by can could did do does doing down during each few for from further had has have having he "
    "her here hers him his how i if in into is it its itself just let me more most my no nor not now "
    "of off on once only or other our ours out over own same she should so some such than that the "
    "their theirs them then there these they this those through to too under until up very was we "
    "were what when where which while who whom why will with would you your yours s t don ve ll re d m"
    .split()
)

_local = threading.local()


def _tokenizer() -> apsw.FTS5Tokenizer:
    tokenizer: apsw.FTS5Tokenizer | None = getattr(_local, "tokenizer", None)
    if tokenizer is None:
        _local.connection = apsw.Connection(":memory:")
        tokenizer = _local.connection.fts5_tokenizer(
            "porter", ["unicode61", "remove_diacritics", "2"]
        )
        _local.tokenizer = tokenizer
    return tokenizer


def _tokens(text: str) -> list[str]:
    return _tokenizer()(  # type: ignore[no-any-return]
        text.encode(),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )


def _compound_parts(text: str) -> Iterator[tuple[str, int, int]]:
    for compound in _COMPOUND.finditer(text):
        if compound.end() - compound.start() <= _LONGEST_COMPOUND:
            parts = list(_PART.finditer(compound.group()))
            if len(parts) > 1:
                for part in parts:
                    start = compound.start() + part.start()
                    yield part.group(), start, start + len(part.group())


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def spread(text: str) -> str:
    """Rewrite text so that FTS5's tokenizer finds the parts of identifiers and unspaced scripts.

    Pairs stay side by side, so that a phrase of them still matches; everything else goes to the end.
    """
    extra = [part for part, _, _ in _compound_parts(text)]
    if _UNSPACED_RUN.search(text):
        extra.extend(char for run in _UNSPACED_RUN.findall(text) if len(run) > 1 for char in run)
        text = _UNSPACED_RUN.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", text)
    return f"{text}\n{' '.join(extra)}" if extra else text


def spread_syntax(part: str, *, quoted: bool) -> str:
    """Rewrite part of a raw query so that runs of unspaced script become phrases of their pairs."""
    mark = "" if quoted else '"'
    return _UNSPACED_RUN.sub(lambda run: f"{mark}{' '.join(_pairs(run.group()))}{mark}", part)


def terms(text: str) -> list[str]:
    """List the terms of a text to be indexed, each as often as it occurs."""
    return _tokens(spread(text))


def query_terms(text: str) -> list[str]:
    """List the distinct terms of a question in the order asked, stop words out if others remain."""
    asked = _UNSPACED_RUN.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", text)
    parts = [part for part, _, _ in _compound_parts(text)]
    words = re.findall(r"[^\W_]+", " ".join([asked, *parts]))
    telling = [word for word in words if word.casefold() not in STOP_WORDS]
    return list(dict.fromkeys(_tokens(" ".join(telling or words))))


def term_spans(text: str, wanted: Iterable[str]) -> list[tuple[int, int]]:
    """Find where a text has any of the wanted terms: sorted, non-overlapping character spans."""
    sought = frozenset(wanted)
    spans = [span for term, *span in _positions(text) if term in sought]
    merged: list[tuple[int, int]] = []
    for start, end in sorted((start, end) for start, end in spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _positions(text: str) -> Iterator[tuple[str, int, int]]:
    encoded = text.encode()
    to_char = _char_offsets(text, len(encoded))
    for start, end, term in _tokenizer()(
        encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False
    ):
        yield term, to_char(start), to_char(end)
    for part, start, end in _compound_parts(text):
        for term in _tokens(part):
            yield term, start, end
    for run in _UNSPACED_RUN.finditer(text):
        for at, pair in enumerate(_pairs(run.group())):
            yield pair, run.start() + at, run.start() + at + len(pair)
        for at, char in enumerate(run.group()):
            yield char, run.start() + at, run.start() + at + 1


def _char_offsets(text: str, length_bytes: int):  # type: ignore[no-untyped-def]
    if length_bytes == len(text):
        return lambda offset: offset
    table = {}
    at = 0
    for index, char in enumerate(text):
        table[at] = index
        at += len(char.encode())
    table[at] = len(text)
    return table.__getitem__
