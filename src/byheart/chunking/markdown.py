"""Markdown: the blocks and sections that a CommonMark parser sees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from byheart.chunking.block import Block, Grain
from byheart.chunking.headings import place_under_headings
from byheart.chunking.ruler import Ruler

_KINDS: dict[str, tuple[str, Grain]] = {
    "heading_open": ("heading", "sentences"),
    "fence": ("code_block", "whole"),
    "code_block": ("code_block", "lines"),
    "table_open": ("table", "lines"),
    "bullet_list_open": ("list", "sentences"),
    "ordered_list_open": ("list", "sentences"),
    "html_block": ("text", "lines"),
}
_STRUCTURE = {*_KINDS} - {"code_block", "html_block"}

# A title goes into the path of every chunk below it: without a bound, a heading of a megabyte
# would be stored a thousand times. Inline parsing also takes 45 µs for each `![` of a long run.
_MAX_TITLE_CHARS = 500

# `---` and at once a key or a comment, up to `---` or `...`: two thematic breaks are not that.
_FRONT_MATTER = re.compile(
    r"\ufeff?(?:---[ \t]*+(?:\r\n?|\n)(?=#|[\w\"'][^\r\n]*:)(?s:.*?)(?<=[\r\n])(?:---|\.\.\.)"
    r"|\+\+\+[ \t]*+(?:\r\n?|\n)(?s:.*?)(?<=[\r\n])\+\+\+)"
    r"[ \t]*+(?:\r\n?|\n|\Z)(?:[ \t]*(?:\r\n?|\n))*+"
)

# Most texts show without a parser what they are: by a heading in the first line that is not blank,
# or by having no line that begins like a heading, a fence or a list, or underlines a heading or the
# head of a table.
_HEADING_FIRST = re.compile(r"(?:[ \t]*(?:\r\n?|\n))*+ {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_SIGN = re.compile(
    r"(?:\A|[\r\n])[ \t>]*+"
    r"(?:(?:#{1,6}|[-+*]|\d{1,9}[.)])(?:[ \t\r\n]|\Z)|```|~~~"
    r"|(?:=++|[-:|][-:| \t]*+)[ \t]*+(?:[\r\n]|\Z))"
)
# Most of the others have it near their beginning, and all of a megabyte may take 20 s to parse.
# Behind it only what cannot be chance counts: in a log, any line may look like a list or a fence.
_BEGINNING_CHARS = 20_000
_HEADING_BEHIND_BLANK = re.compile(r"\n[ \t]*+\r?\n {0,3}#{1,6}[ \t]++\S")
_FENCE_MARK = re.compile(r"\n {0,3}(?:```|~~~)")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Build a parser of blocks only: inline parsing is needed for titles alone."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def has_markdown_structure(content: str) -> bool:
    """Say whether a text has headings, fences, lists, tables or front matter."""
    if _front_matter_end(content) or _HEADING_FIRST.match(content):
        return True
    if not _SIGN.search(content):
        return False
    if any(token.type in _STRUCTURE for token in _parser().parse(content[:_BEGINNING_CHARS])):
        return True
    if _HEADING_BEHIND_BLANK.search(content, _BEGINNING_CHARS - 1):
        return True
    # One that was never closed would take all that follows into one chunk.
    return len(_FENCE_MARK.findall(content, _BEGINNING_CHARS - 1)) > 1


def find_markdown_blocks(ruler: Ruler) -> list[Block]:
    """Divide Markdown into its top-level blocks, each under its headings."""
    body = _front_matter_end(ruler.content)
    blocks = [Block(0, "front_matter", grain="lines")] if body else []
    environment: dict[str, Any] = {}
    tokens = _parser().parse(ruler.content[body:], environment)
    first_line = ruler.line_at(body) - 1
    outline = _Outline(ruler, first_line, tokens)
    found = outline.divide(0, len(tokens), (first_line, len(ruler.line_starts)), "text")
    titles = outline.titles(environment)
    return blocks + place_under_headings(found, titles, opens=bool(body))


def _front_matter_end(content: str) -> int:
    """Give where the front matter ends: 0 when there is none."""
    match = _FRONT_MATTER.match(content)
    return match.end() if match else 0


@dataclass(frozen=True, slots=True)
class _Outline:
    """The parser's tokens over the text they were read from."""

    ruler: Ruler
    first_line: int
    tokens: Sequence[Token]

    def divide(self, first: int, last: int, lines: tuple[int, int], kind: str) -> list[Block]:
        """Give the blocks in a range of lines that the tokens from `first` to `last` open."""
        blocks: list[Block] = []
        line, end_line = lines
        for index, close in self._siblings(first, last):
            begin, end = (each + self.first_line for each in self.tokens[index].map or (0, 0))
            blocks += self._unseen(line, begin, kind)
            blocks.append(self._block(index, close, (begin, end), kind))
            line = max(line, end)
        return blocks + self._unseen(line, end_line, kind)

    def _unseen(self, line: int, end_line: int, kind: str) -> list[Block]:
        """Give as text what makes no token: link definitions, nesting too deep."""
        line = self.ruler.skip_blank_lines(line, end_line) if line < end_line else end_line
        return [Block(self.ruler.line_start(line), kind, grain="lines")] if line < end_line else []

    def titles(self, environment: dict[str, Any]) -> Iterator[tuple[int, str]]:
        """Give the level and the plain title of each section heading."""
        for index, token in enumerate(self.tokens):
            if token.type == "heading_open" and token.level == 0:
                source = self.tokens[index + 1].content
                yield int(token.tag[1:]), _plain_title(source, environment)

    def _siblings(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Give the index of each outermost token and of the token that closes it."""
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
        if token.type in ("paragraph_open", "hr") or (token.type == "heading_open" and token.level):
            return Block(start, kind)
        kind, grain = _KINDS.get(token.type, (kind, "sentences"))
        if token.type == "table_open":
            return Block(start, kind, grain=grain, parts=partial(self._rows, lines))
        if token.nesting and token.type != "heading_open":
            return Block(start, kind, parts=partial(self.divide, index + 1, close, lines, kind))
        return Block(start, kind, grain=grain)

    def _rows(self, lines: tuple[int, int]) -> list[Block]:
        """Divide a table into its rows; the first keeps the header."""
        first_row, end = lines[0] + 2, lines[1]
        starts = map(self.ruler.line_start, range(first_row, end))
        return [Block(start, "table", grain="lines") for start in starts]


def _plain_title(source: str, environment: dict[str, Any]) -> str:
    """Read a heading's inline source as text: links by their text, code by its content."""
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
