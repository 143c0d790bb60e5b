"""Divide Markdown into the blocks and sections that a CommonMark parser finds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from byheart.chunking.block import Block, Grain
from byheart.chunking.headings import place_under_headings
from byheart.chunking.prose import find_paragraphs
from byheart.chunking.ruler import Ruler
from byheart.model import Heading
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_KINDS: dict[str, tuple[str, Grain]] = {
    "fence": ("code_block", "whole"),
    "code_block": ("code_block", "lines"),
    "table_open": ("table", "lines"),
    "bullet_list_open": ("list", "sentences"),
    "ordered_list_open": ("list", "sentences"),
    "html_block": ("text", "lines"),
}
_STRUCTURE = {"heading_open", *_KINDS} - {"code_block", "html_block"}

# A title is part of the path of every chunk below it: without a limit, a heading of a megabyte
# would be stored a thousand times. Inline parsing also takes 45 µs for each `![` of a long run.
_MAX_TITLE_CHARS = 500

# `---` directly followed by a key or a comment, up to `---` or `...`; two thematic breaks do not
# match.
_FRONT_MATTER = late_pattern(
    r"\ufeff?(?:---[ \t]*+(?:\r\n?|\n)(?=#|[\w\"'][^\r\n]*:)(?s:.*?)(?<=[\r\n])(?:---|\.\.\.)"
    r"|\+\+\+[ \t]*+(?:\r\n?|\n)(?s:.*?)(?<=[\r\n])\+\+\+)"
    r"[ \t]*+(?:\r\n?|\n|\Z)(?:[ \t]*(?:\r\n?|\n))*+"
)

# Most texts can be classified without a parser. They have a heading in the first non-blank line, or
# they have no line that begins like a heading, a fence or a list, or that underlines a heading or a
# table head.
_HEADING_FIRST = late_pattern(r"(?:[ \t]*(?:\r\n?|\n))*+ {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_SIGN = late_pattern(
    r"(?:\A|[\r\n])[ \t>]*+"
    r"(?:(?:#{1,6}|[-+*]|\d{1,9}[.)])(?:[ \t\r\n]|\Z)|```|~~~"
    r"|(?:=++|[-:|][-:| \t]*+)[ \t]*+(?:[\r\n]|\Z))"
)
# Most other texts show their structure near the beginning, and parsing a whole megabyte may take 20
# s. After the beginning only unmistakable signs count: in a log, any line may look like a list or a
# fence.
_BEGINNING_CHARS = 20_000
_HEADING_BEHIND_BLANK = late_pattern(r"\n[ \t]*+\r?\n {0,3}#{1,6}[ \t]++\S")
_FENCE_MARK = late_pattern(r"\n {0,3}(?:```|~~~)")

# The size of one piece to parse. A piece grows while it contains only the start of one block.
_PIECE_LINES, _MOST_LINES, _LONG_LINE_CHARS = 4_000, 32_000, 64
_MOST_TOKENS, _LONG_PARAGRAPH_LINES = 100_000, 4_000
# Ten megabytes of `- a` are 12 million tokens, which take two minutes and five gigabytes. Documents
# have 35 characters per token, the densest of 315 had 6; a token and a line take about 8 µs each.
_LEAST_WORK, _CHARS_PER_WORK = 100_000, 4
_MOST_LINKS, _WORK_PER_LINK = 10_000, 4
_BLANK_LINE = late_pattern(r"(?<=[\r\n])[ \t]*+(?:\r\n?|\n|\Z)")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Build a parser for blocks only: inline parsing is needed for titles alone."""
    from markdown_it import MarkdownIt  # short texts are stored without it

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def has_markdown_structure(content: str) -> bool:
    """Check whether a text has headings, fences, lists, tables or front matter."""
    if _front_matter_end(content) or _HEADING_FIRST.match(content):
        return True
    if not _SIGN.search(content):
        return False
    if any(token.type in _STRUCTURE for token in _parser().parse(content[:_BEGINNING_CHARS])):
        return True
    if _HEADING_BEHIND_BLANK.search(content, _BEGINNING_CHARS - 1):
        return True
    # A fence that is never closed would put the rest of the text into one chunk.
    return len(_FENCE_MARK.findall(content, _BEGINNING_CHARS - 1)) > 1


def find_markdown_blocks(ruler: Ruler, titles: Titles) -> Iterator[Block]:
    """Divide Markdown into top-level blocks under their headings; the titles are still raw."""
    body = _front_matter_end(ruler.content)
    if body:
        yield Block(0, "front_matter", grain="lines")
    found = _Reader(ruler, titles.environment).read(ruler.line_at(body) - 1)
    yield from place_under_headings(found, opens=bool(body))


def _front_matter_end(content: str) -> int:
    """Return the end of the front matter; 0 if there is none."""
    match = _FRONT_MATTER.match(content)
    return match.end() if match else 0


class Titles:
    """Convert titles of headings to plain text, after the whole text is parsed.

    A link in a title may be defined further down. In a text with a million headings, sections
    share chunks, and most titles are never needed.
    """

    def __init__(self) -> None:
        self.environment: dict[str, Any] = {}
        self._plain: dict[str, str] = {}

    def read(self, headings: Sequence[Heading]) -> tuple[Heading, ...]:
        """Return the headings with their titles as plain text."""
        return tuple(replace(each, title=self._read(each.title)) for each in headings)

    def _read(self, source: str) -> str:
        if source not in self._plain:
            self._plain[source] = _plain_title(source, self.environment)
        return self._plain[source]


@dataclass(slots=True)
class _Reader:
    """Parse Markdown a few thousand lines at a time: tokens may take 500 times its memory.

    A top-level block does not depend on the text before it, and ends where the next block
    begins. Only the last block of a piece may continue, so it is parsed again with the next
    piece.
    """

    ruler: Ruler
    environment: dict[str, Any]
    work: int = 0

    def read(self, line: int) -> Iterator[Block]:
        """Yield the blocks from a line on; blocks that take too long to parse become paragraphs."""
        lines = _PIECE_LINES
        allowed = max(_LEAST_WORK, len(self.ruler.content) // _CHARS_PER_WORK)
        while line < len(self.ruler.line_starts):
            if self.work > allowed:
                yield from find_paragraphs(self.ruler, self.ruler.line_start(line))
                return
            outline = self._parse(line, self._piece_end(line, lines))
            piece = outline.complete()
            if piece is None and lines < _MOST_LINES and len(outline.tokens) < _MOST_TOKENS:
                lines *= 2
                continue
            blocks, line = piece or outline.everything()
            yield from blocks
            lines = _PIECE_LINES

    def _piece_end(self, line: int, lines: int) -> int:
        """Return the end line of the next piece: `lines` further, or fewer if they are long."""
        starts = self.ruler.line_starts
        limit = starts[line] + lines * _LONG_LINE_CHARS
        if limit < len(self.ruler.content):
            lines = min(lines, max(1, bisect_right(starts, limit) - 1 - line))
        return min(line + lines, len(starts))

    def _parse(self, line: int, end_line: int) -> _Outline:
        start, end = self.ruler.line_start(line), self.ruler.line_start(end_line)
        tokens = _parser().parse(self.ruler.content[start:end], self.environment)
        # Link definitions are needed for titles only, and titles hardly ever use them.
        again = self.environment.pop("duplicate_refs", ())
        links = self.environment.get("references", {})
        too_many = list(islice(links, _MOST_LINKS, None))
        for label in too_many:
            del links[label]
        definitions = len(again) + len(too_many)
        self.work += len(tokens) + end_line - line + _WORK_PER_LINK * definitions
        return _Outline(self.ruler, line, end_line, tokens)


@dataclass(frozen=True, slots=True)
class _Outline:
    """Hold the parser's tokens with the lines they were parsed from."""

    ruler: Ruler
    first_line: int
    end_line: int
    tokens: Sequence[Token]

    def everything(self) -> tuple[list[Block], int]:
        """Return all blocks, even if the last one may continue, and the line after them."""
        return self._up_to(len(self.tokens), self.end_line), self.end_line

    def complete(self) -> tuple[list[Block], int] | None:
        """Return the complete blocks and the line after them; None if no block is complete."""
        if self.end_line >= len(self.ruler.line_starts):
            return self.everything()
        tops = [index for index, _ in self._siblings(0, len(self.tokens))]
        if not tops:  # only link definitions
            return self.everything()
        last = tops[-1]
        if len(tops) > 1:
            return self._up_to(last, self._line_of(last)), self._line_of(last)
        if self.tokens[last].type == "fence":
            return self._fence(last)
        if self.tokens[last].type == "table_open":
            return self._table(last)
        if self.tokens[last].type.endswith("_list_open"):
            return self._list(last)
        # So long a paragraph is cut anyway, and reading it again to find its end takes as long.
        is_long = self.end_line - self.first_line >= _LONG_PARAGRAPH_LINES
        return self.everything() if self.tokens[last].type == "paragraph_open" and is_long else None

    def _up_to(self, last: int, end_line: int) -> list[Block]:
        return self.divide(0, last, (self.first_line, end_line), "text")

    def _fence(self, index: int) -> tuple[list[Block], int]:
        """Find the end of a fence without parsing its content."""
        mark, content = self.tokens[index].markup, self.ruler.content
        closing = re.compile(
            rf"[\r\n] {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*+(?=[\r\n]|\Z)"
        )
        begin = self._line_of(index)
        match = closing.search(content, self.ruler.line_start(begin))
        end = self.ruler.line_at(match.end() - 1) if match else len(self.ruler.line_starts)
        fence = self._block(index, index, (begin, end), "text")
        return [*self._unseen(self.first_line, begin, "text"), fence], end

    def _table(self, index: int) -> tuple[list[Block], int]:
        """Assume that a long table continues to the next blank line."""
        begin = self._line_of(index)
        match = _BLANK_LINE.search(self.ruler.content, self.ruler.line_start(self.end_line))
        end = self.ruler.line_at(match.end()) if match else len(self.ruler.line_starts)
        table = self._block(index, index, (begin, end), "text")
        return [*self._unseen(self.first_line, begin, "text"), table], end

    def _list(self, index: int) -> tuple[list[Block], int] | None:
        """Return all items of a long list but the last; the last one begins a new list."""
        items = [item for item, _ in self._siblings(index + 1, len(self.tokens) - 1)]
        if len(items) < 2:
            return None
        begin, end = self._line_of(index), self._line_of(items[-1])
        parts = partial(self.divide, index + 1, items[-1], (begin, end), "list")
        start = self.ruler.line_start(begin)
        return [
            *self._unseen(self.first_line, begin, "text"),
            Block(start, "list", parts=parts),
        ], end

    def _line_of(self, index: int) -> int:
        return (self.tokens[index].map or (0, 0))[0] + self.first_line

    def divide(self, first: int, last: int, lines: tuple[int, int], kind: str) -> list[Block]:
        """Return the blocks in a range of lines that the tokens from `first` to `last` open."""
        blocks: list[Block] = []
        line, end_line = lines
        for index, close in self._siblings(first, last):
            begin, end = (each + self.first_line for each in self.tokens[index].map or (0, 0))
            blocks += self._unseen(line, begin, kind)
            blocks.append(self._block(index, close, (begin, end), kind))
            line = max(line, end)
        return blocks + self._unseen(line, end_line, kind)

    def _unseen(self, line: int, end_line: int, kind: str) -> list[Block]:
        """Return lines without tokens as text: link definitions, nesting that is too deep."""
        line = self.ruler.skip_blank_lines(line, end_line) if line < end_line else end_line
        return [Block(self.ruler.line_start(line), kind, grain="lines")] if line < end_line else []

    def _siblings(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the index of each outermost token and of the token that closes it."""
        index = first
        while index < last:
            opener = index
            depth: int = self.tokens[index].nesting
            while depth:
                index += 1
                depth += self.tokens[index].nesting
            yield opener, index
            index += 1

    def _block(self, index: int, close: int, lines: tuple[int, int], kind: str) -> Block:
        token, start = self.tokens[index], self.ruler.line_start(lines[0])
        if token.type == "heading_open" and not token.level:
            title = self.tokens[index + 1].content[: _MAX_TITLE_CHARS + 1]
            return Block(start, "heading", (Heading(int(token.tag[1:]), title, start),))
        if token.type in ("paragraph_open", "hr", "heading_open"):
            return Block(start, kind)
        kind, grain = _KINDS.get(token.type, (kind, "sentences"))
        if token.type == "table_open":
            return Block(start, kind, grain=grain, parts=partial(self._rows, lines))
        if token.nesting:
            return Block(start, kind, parts=partial(self.divide, index + 1, close, lines, kind))
        return Block(start, kind, grain=grain)

    def _rows(self, lines: tuple[int, int]) -> Iterator[Block]:
        """Divide a table into its rows; the first keeps the header."""
        for row in range(lines[0] + 2, lines[1]):
            yield Block(self.ruler.line_start(row), "table", grain="lines")


def _plain_title(source: str, environment: dict[str, Any]) -> str:
    """Convert a heading's inline source to text: links by their text, code by its content."""
    if len(source) > _MAX_TITLE_CHARS:
        return " ".join(source[:_MAX_TITLE_CHARS].split())
    tokens: list[Token] = []
    _parser().inline.parse(source, _parser(), environment, tokens)
    return " ".join("".join(_plain(tokens)).split())


def _plain(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "image":
            yield from _plain(token.children or ())
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type != "html_inline":
            yield token.content
