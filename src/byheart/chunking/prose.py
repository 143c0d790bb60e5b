"""Divide running text into paragraphs and sentences, and cut text without boundaries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from byheart.chunking.block import Block
from byheart.chunking.ruler import Ruler
from byheart.startup.late_patterns import late_pattern

# A paragraph begins after a blank line. The possessive `++` keeps long runs of white space linear.
_PARAGRAPH_BREAK = late_pattern(r"(?:\r\n?|\n)[^\S\r\n]*+(?:\r\n?|\n)\s*+")

# The look-behind lets a match begin only at the start of a run of marks: `.....` is read once.
_MARKS, _CJK_MARKS, _CLOSERS = r".!?…", r"。！？｡", r"""["'”’»)\]」』）】*_]"""
_SENTENCE_END = late_pattern(
    rf"(?<![{_MARKS}{_CJK_MARKS}])"
    rf"(?:[{_MARKS}]++{_CLOSERS}*+\s++|[{_CJK_MARKS}]++{_CLOSERS}*+\s*+)"
)
_ABBREVIATION = late_pattern(
    r"\b(?:\w|mrs?|ms|dr|prof|st|jr|sr|vs|cf|fig|figs|eq|no|nos|vol|pp|ed|eds|inc|ltd|co|corp|al"
    r"|approx|dept|est|gen|gov|rev|sen|rep|usw|bzw|vgl|nr|abb)\Z",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION = 8
# After this many sentences in a paragraph, short ones are not split: each takes 10 µs.
_MANY_SENTENCES, _SHORT_SENTENCE_CHARS = 50_000, 64
_LAST_SPACE = late_pattern(r".*\s", re.DOTALL)
_LONGEST_CLUSTER = 64


def find_paragraphs(ruler: Ruler, start: int = 0) -> Iterator[Block]:
    """Divide plain text, from `start` on, at its blank lines."""
    content = ruler.content
    yield Block(start, "text")
    for match in _PARAGRAPH_BREAK.finditer(content, start):
        if match.end() < len(content):
            # A paragraph keeps the indentation of its first line.
            yield Block(ruler.line_start(ruler.line_at(match.end()) - 1), "text")


def cut_sentences(ruler: Ruler, start: int, end: int) -> Iterator[int]:
    """Yield the ends of the sentences in a slice, except the last."""
    content = ruler.content
    last = start
    for count, match in enumerate(_SENTENCE_END.finditer(content, start, end)):
        cut = match.end()
        if count > _MANY_SENTENCES and cut - last < _SHORT_SENTENCE_CHARS:
            continue
        if cut < end and not _goes_on(content, match) and not _joins(content, cut):
            last = cut
            yield cut


def _goes_on(content: str, match: re.Match[str]) -> bool:
    """Check whether a full stop ends an abbreviation rather than a sentence."""
    if content[match.start()] != ".":
        return False
    before = content[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()]
    return content[match.end()].islower() or _ABBREVIATION.search(before) is not None


def cut_to_size(ruler: Ruler, start: int, end: int, limit_tokens: int, first: int) -> Iterator[int]:
    """Yield cuts that keep each piece within the limit: at lines, words, characters.

    The first piece may reach to `first`, which is less if the piece shares its chunk with a
    heading.
    """
    limit = first if first > start else ruler.reach(start, limit_tokens)
    while limit < end:
        start = _last_seam(ruler.content, start, limit)
        yield start
        limit = ruler.reach(start, limit_tokens)


def _last_seam(content: str, start: int, limit: int) -> int:
    """Find the best cut up to `limit`: a line end in the second half, else a space, else any."""
    line_end = max(content.rfind("\n", start, limit), content.rfind("\r", start, limit)) + 1
    space = _LAST_SPACE.match(content, start, limit)
    for cut in (
        line_end if line_end > (start + limit) // 2 else start,
        space.end() if space else start,
    ):
        if cut > start and not _joins(content, cut):
            return cut
    limit = max(limit, start + 1)
    for cut in range(limit, max(start, limit - _LONGEST_CLUSTER), -1):
        if not _joins(content, cut):
            return cut
    return limit + 1 if content[limit - 1 : limit + 1] == "\r\n" else limit


def _joins(content: str, cut: int) -> bool:
    """Check whether the characters on both sides of a cut form one visible character."""
    if cut >= len(content):
        return False
    left, right = content[cut - 1], content[cut]
    if right < "\u0300":
        return left == "\r" and right == "\n"
    return (
        "\u200d" in (left, right)
        or unicodedata.category(right).startswith("M")
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= right <= "\U000e007f"  # tags, as in the flag of Scotland
        or ("\U0001f1e6" <= left <= "\U0001f1ff" and "\U0001f1e6" <= right <= "\U0001f1ff")
        or ("\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff")
    )
