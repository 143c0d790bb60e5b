"""Divide reStructuredText into sections, by the lines under and over their titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from byheart.chunking.block import Block
from byheart.chunking.headings import place_under_headings
from byheart.chunking.prose import find_paragraphs
from byheart.chunking.ruler import Ruler
from byheart.model import Heading
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

# One repeated character: the character, and whether it is above too, determine the level.
_DRAWN = late_pattern(r"([!-/:-@\[-`{-~])\1*")
_INLINE = late_pattern(
    r"``(.+?)``|(?::[\w:.+-]{1,50}:)?`([^`<>]+?)(?: *<[^`<>]*>)?`_{0,2}|\*\*(.+?)\*\*"
)
# From this length on, an underline shorter than its title is accepted.
_LEAST_DRAWN = 4
_MAX_LEVEL = 6
_MAX_TITLE_CHARS = 500
# A title takes 30 µs. After this many, unless the text is long enough, the rest is paragraphs.
_MANY_TITLES, _CHARS_PER_TITLE = 20_000, 50


@dataclass(frozen=True, slots=True)
class _Title:
    """Hold a title: from its overline, if any, to the line after its underline."""

    first_line: int
    after_line: int
    style: tuple[str, bool]
    text: str


class _Lines:
    """Return the lines of a text without trailing white space, on demand."""

    def __init__(self, ruler: Ruler) -> None:
        self._ruler = ruler

    def __len__(self) -> int:
        return len(self._ruler.line_starts)

    def __getitem__(self, number: int) -> str:
        start, end = self._ruler.line_start(number), self._ruler.line_start(number + 1)
        return self._ruler.content[start:end].rstrip()


def find_rst_blocks(ruler: Ruler) -> Iterator[Block]:
    """Divide reStructuredText into paragraphs, each under its headings."""
    return place_under_headings(_find_blocks(ruler))


def _find_blocks(ruler: Ruler) -> Iterator[Block]:
    lines = _Lines(ruler)
    titles = _with_levels(_find_titles(lines))
    title, level = next(titles, (None, 0))
    after_line, begins, found, count = 0, True, False, 0
    most = max(_MANY_TITLES, len(ruler.content) // _CHARS_PER_TITLE)
    for number in range(len(lines)):
        line = lines[number]
        start = ruler.line_start(number)
        if title is not None and number == title.first_line:
            found = True
            count += 1
            if count > most:
                yield from find_paragraphs(ruler, start)
                return
            yield Block(start, "heading", (Heading(level, _plain(title.text), start),))
            after_line = title.after_line
            title, level = next(titles, (None, 0))
        elif number >= after_line and line and begins:
            found = True
            yield Block(start, "text")
        # Text may follow a title without a blank line.
        begins = not line or number < after_line
    if not found:
        yield Block(0, "text")


def _with_levels(titles: Iterable[_Title]) -> Iterator[tuple[_Title | None, int]]:
    """Yield each title with its level; the order of first use determines a style's level."""
    levels: dict[tuple[str, bool], int] = {}
    for title in titles:
        level = levels.setdefault(title.style, len(levels) + 1)
        yield title, min(_MAX_LEVEL, level)


def _find_titles(lines: _Lines) -> Iterator[_Title]:
    free = 0
    below = lines[0]
    for number in range(len(lines) - 1):
        text, below = below, lines[number + 1]
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
    """Convert a title to text: literals, roles and links by their visible text."""
    shown = _INLINE.sub(lambda match: next(filter(None, match.groups())), title[:_MAX_TITLE_CHARS])
    return " ".join(shown.split())
