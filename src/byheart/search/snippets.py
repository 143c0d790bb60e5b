"""Make snippets: the part of a passage that matched, and where its matching words are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from byheart.language.terms import spans_in_texts

_ELLIPSIS = "…"
# Matches with only these between them are parts of one word, as in `SECRET_KEY`.
_JOINERS = "_-."
# The number of characters that a cut may move to fall between words.
_SLACK = 20

Span = tuple[int, int]


class Snippet(NamedTuple):
    """Hold a text as it was saved, and where each match in it starts and ends."""

    text: str
    marks: tuple[Span, ...]


def make_snippet(
    text: str,
    terms: Iterable[str],
    length: int,
    find_nearest: Callable[[], float] = lambda: 0.0,
) -> Snippet:
    """Make the snippet of a single text, as `make_snippets` does."""
    return make_snippets([text], terms, length, lambda _: find_nearest())[0]


def make_snippets(
    texts: Sequence[str],
    terms: Iterable[str],
    length: int,
    find_nearest: Callable[[int], float] = lambda _: 0.0,
) -> list[Snippet]:
    """Cut the stretch with the most matches out of each text, and say where they are.

    If no word of a text matched, `find_nearest` takes the place of the text in the list and returns
    the position to show: 0 is the start of the text, 1 its end.
    """
    found = spans_in_texts(texts, terms)
    return [
        _make(text, spans, length, partial(find_nearest, at))
        for at, (text, spans) in enumerate(zip(texts, found, strict=True))
    ]


def _make(
    text: str, spans: Sequence[Span], length: int, find_nearest: Callable[[], float]
) -> Snippet:
    if spans or len(text) <= length:
        start, end = _window(text, spans, length)
    else:
        start, end = _window_from(text, int(find_nearest() * (len(text) - length)), length)
    head, tail = _ELLIPSIS if start else "", _ELLIPSIS if end < len(text) else ""
    body = text[start:end]
    shift = len(head) - start - (len(body) - len(body.lstrip()))
    shown = [each for each in spans if start <= each[0] and each[1] <= end]
    marks = tuple((low + shift, high + shift) for low, high in _join(text, shown))
    return Snippet(f"{head}{body.strip()}{tail}", marks)


def _window(text: str, spans: Sequence[Span], length: int) -> Span:
    if len(text) <= length:
        return 0, len(text)
    first, last = _densest(spans, length)
    spare = max(0, length - (last - first))
    start = min(max(0, first - spare // 2), len(text) - length)
    start = _next_gap(text, start, first) if start else 0
    return start, _previous_gap(
        text, min(len(text), start + length), at_least=min(last, start + length)
    )


def _window_from(text: str, start: int, length: int) -> Span:
    start = _next_gap(text, start, len(text)) if start else 0
    return start, _previous_gap(text, min(len(text), start + length))


def _densest(spans: Sequence[Span], length: int) -> Span:
    """Find the stretch with the most matches within the length; the earliest wins a tie."""
    best, best_count, low = spans[0], 0, 0
    for high, (_, end) in enumerate(spans):
        while end - spans[low][0] > length and low < high:
            low += 1
        if high - low + 1 > best_count:
            best, best_count = (spans[low][0], end), high - low + 1
    return best


def _next_gap(text: str, at: int, limit: int) -> int:
    for position in range(at, min(at + _SLACK, limit) + 1):
        if position == limit or text[position - 1].isspace():
            return position
    return at


def _previous_gap(text: str, at: int, at_least: int = 0) -> int:
    if at >= len(text):
        return len(text)
    for position in range(at, max(at - _SLACK, at_least), -1):
        if text[position].isspace():
            return position
    return at


def _join(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Join the spans that are parts of one word."""
    begun: Span | None = None
    for low, high in spans:
        if begun and not text[begun[1] : low].strip(_JOINERS):
            begun = begun[0], high
            continue
        if begun:
            yield begun
        begun = low, high
    if begun:
        yield begun
