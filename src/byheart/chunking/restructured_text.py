"""reStructuredText: its sections, by the lines drawn under and over their titles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from byheart.chunking.block import Block
from byheart.chunking.headings import place_under_headings
from byheart.chunking.ruler import Ruler

# One sign, repeated: which one, and whether above too, tells the level.
_DRAWN = re.compile(r"([!-/:-@\[-`{-~])\1*")
_INLINE = re.compile(
    r"``(.+?)``|(?::[\w:.+-]{1,50}:)?`([^`<>]+?)(?: *<[^`<>]*>)?`_{0,2}|\*\*(.+?)\*\*"
)
# A shorter line under a longer title is a mistake that is forgiven from here on.
_LEAST_DRAWN = 4
_MAX_LEVEL = 6
_MAX_TITLE_CHARS = 500


@dataclass(frozen=True, slots=True)
class _Title:
    """A title, from the line drawn above it, if any, to the one after the line below."""

    first_line: int
    after_line: int
    style: tuple[str, bool]
    text: str


def find_rst_blocks(ruler: Ruler) -> list[Block]:
    """Divide reStructuredText into paragraphs, each under its headings."""
    bounds = pairwise([*ruler.line_starts, len(ruler.content)])
    lines = [ruler.content[start:end].rstrip() for start, end in bounds]
    titles = {title.first_line: title for title in _find_titles(lines)}
    blocks: list[Block] = []
    after_line, begins = 0, True
    for number, line in enumerate(lines):
        if number in titles:
            blocks.append(Block(ruler.line_start(number), "heading"))
            after_line = titles[number].after_line
        elif number >= after_line and line and begins:
            blocks.append(Block(ruler.line_start(number), "text"))
        # Below a title a text may begin without a blank line.
        begins = not line or number < after_line
    return place_under_headings(blocks or [Block(0, "text")], _levels(titles.values()))


def _levels(titles: Iterable[_Title]) -> Iterator[tuple[int, str]]:
    """Give the level of each title: that of a style is where it first appears."""
    levels: dict[tuple[str, bool], int] = {}
    for title in titles:
        level = levels.setdefault(title.style, len(levels) + 1)
        yield min(_MAX_LEVEL, level), _plain(title.text)


def _find_titles(lines: Sequence[str]) -> Iterator[_Title]:
    free = 0
    for number, (text, below) in enumerate(pairwise(lines)):
        drawn = _DRAWN.fullmatch(below)
        if number < free or not drawn or not text or _DRAWN.fullmatch(text):
            continue
        if len(below) < max(2, min(len(text.strip()), _LEAST_DRAWN)):
            continue
        has_line_above = number > free and lines[number - 1] == below
        first = number - has_line_above
        follows_text = first > free and lines[first - 1]
        if follows_text or (text[0].isspace() and not has_line_above):
            continue
        free = number + 2
        yield _Title(first, free, (drawn[1], has_line_above), text.strip())


def _plain(title: str) -> str:
    """Read a title as text: literals, roles and links by what they show."""
    shown = _INLINE.sub(lambda match: next(filter(None, match.groups())), title[:_MAX_TITLE_CHARS])
    return " ".join(shown.split())
