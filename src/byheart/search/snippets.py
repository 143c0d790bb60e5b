"""Make snippets: the part of a passage that matched, with the matching words marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from byheart.language.terms import term_spans

OPEN_MARK, CLOSE_MARK = "**", "**"
_ELLIPSIS = "…"
# The number of characters that a cut may move to fall between words.
_SLACK = 20

Span = tuple[int, int]


def make_snippet(
    text: str,
    terms: Iterable[str],
    length: int,
    find_nearest: Callable[[], float] = lambda: 0.0,
) -> str:
    """Cut out the stretch with the most matches, and mark them.

    If no word matched, `find_nearest` returns the position to show: 0 is the start, 1 the end.
    """
    spans = term_spans(text, terms)
    if spans or len(text) <= length:
        start, end = _window(text, spans, length)
    else:
        start, end = _window_from(text, int(find_nearest() * (len(text) - length)), length)
    body = _mark(text, spans, start, end)
    return f"{_ELLIPSIS if start else ''}{body.strip()}{_ELLIPSIS if end < len(text) else ''}"


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


def _mark(text: str, spans: Sequence[Span], start: int, end: int) -> str:
    parts, at = [], start
    for low, high in spans:
        if low >= start and high <= end:
            parts += [text[at:low], OPEN_MARK, text[low:high], CLOSE_MARK]
            at = high
    return "".join([*parts, text[at:end]])
