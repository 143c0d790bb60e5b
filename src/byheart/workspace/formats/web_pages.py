"""Convert web pages to Markdown, without tags, scripts and styles.

If no heading shares its line with other text, every line of the result has the line number it
has in the file, so that a hit leads there. Otherwise, as in a generated page on one line, the
result has its own lines.

On some inputs, Python's own parser takes quadratic time in versions that are still in use; this
parser passes over the text once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import field
from itertools import groupby
from operator import itemgetter

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern
from byheart.workspace.formats.documents import Document, escape_line, shorten_title

_LINE_ENDING = late_pattern(r"\r\n?")
# Possessive quantifiers guarantee one pass, even for unclosed tags. A quote counts only after an
# equals sign: `<p title="a > b">`, but `<p don't>`.
_TAG = late_pattern(
    r"<(?:(/?)([a-zA-Z][^\s/>]*+)(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+>?"
    r"|!--(?:(?s:.*?)-->|(?s:.*+))|[!?/][^>]*+>?)"
)
_SPACE = late_pattern(r"\s+")
# Longer references are not characters, and Python refuses to parse thousands of digits.
_ENDLESS_REFERENCE = late_pattern(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    **{name: name for name in _HEADINGS},
    "pre": "code",
    "li": "item",
    "td": "cell",
    "th": "cell",
}
_BLOCK_NAMES = """
address article aside blockquote body br caption center dd details dialog dir div dl dt
fieldset  figcaption figure footer form header hgroup hr html legend li main menu nav ol
optgroup option  p pre search section select summary table tbody td tfoot th thead title tr ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split()).union(_HEADINGS)
_SKIPPED_NAMES = """
script style template svg noscript iframe noembed noframes textarea title
"""
_SKIPPED = {
    name: late_pattern(rf"</{name}[\s/>]", re.IGNORECASE) for name in _SKIPPED_NAMES.split()
}
_LONG_LINE_CHARS = 2_000


@dataclass(slots=True)
class _Page:
    """Collect a page's pieces of text with the line and block of each."""

    source: str
    title: str | None = None
    line: int = 0
    kind: str = "text"
    block: int = 0
    pieces: list[tuple[int, int, str]] = field(default_factory=list)
    kinds: dict[int, str] = field(default_factory=dict)

    def read(self) -> None:
        """Parse the source in one pass, from tag to tag."""
        source, at = self.source, 0
        while match := _TAG.search(source, at):
            tag = match.start()
            if tag > at:
                self._add_text(source[at:tag])
            at = match.end()
            if match[2]:
                at = self._open_or_close(match[2].lower(), bool(match[1]), at)
            self.line += source.count("\n", tag, at)
        self._add_text(source[at:])

    def blocks(self) -> Iterator[tuple[str, list[tuple[int, str]]]]:
        """Yield the kind and the lines of each block with text."""
        for block, pieces in groupby(self.pieces, key=itemgetter(1)):
            rows = groupby(pieces, key=itemgetter(0))
            yield (
                self.kinds[block],
                [(line, "".join(each[2] for each in row)) for line, row in rows],
            )

    def _open_or_close(self, name: str, closes: bool, end: int) -> int:
        """Process a tag, and skip hidden content; return where the text continues."""
        if name in _SKIPPED and not closes and not self.source.endswith("/>", 0, end):
            close = _SKIPPED[name].search(self.source, end)
            after = close.start() if close else len(self.source)
            if name == "title" and self.title is None:
                self.title = shorten_title(_unescape(self.source[end : min(after, end + 2_000)]))
            return after
        if name not in _BLOCKS or (self.kind == "code" and name != "pre"):
            return end
        # A paragraph that opens a list item is part of the item.
        if not (self.kind == "item" and name == "p" and not closes):
            self.block += 1
            self.kind = "text" if closes else _KINDS.get(name, "text")
        return end

    def _add_text(self, text: str) -> None:
        for number, line in enumerate(text.split("\n")):
            if number:
                self.line += 1
            if self.kind == "code":
                self._add_piece(_unescape(line))
            elif line and not line.isspace():
                self._add_piece(_SPACE.sub(" ", _unescape(line)))
            elif line and self.pieces and self.pieces[-1][1] == self.block:
                self._add_piece(" ")

    def _add_piece(self, text: str) -> None:
        self.pieces.append((self.line, self.block, text))
        self.kinds[self.block] = self.kind


def read_web_page(text: str, _name: str) -> Document:
    """Convert a page to Markdown, with its original line numbers if possible."""
    page = _Page(_LINE_ENDING.sub("\n", text))
    page.read()
    in_place = _write_in_place(page)
    if in_place is not None:
        return Document("\n".join(in_place), "markdown", page.title)
    written = _write_blocks(page)
    return Document(written, "markdown", page.title, lines_match=False)


def _write_in_place(page: _Page) -> list[str] | None:
    """Put every piece on its own line; None if a heading or a long line shares a line."""
    lines = [""] * (page.source.count("\n") + 1)
    blocks_on_line = [0] * len(lines)
    headings: set[int] = set()
    for kind, rows in page.blocks():
        if kind in _HEADINGS:
            title = _title_of(rows)
            line = next((line for line, text in rows if text.strip()), 0)
            if title and lines[line]:
                return None
            if title:
                lines[line] = f"{'#' * _HEADINGS[kind]} {title}"
                headings.add(line)
            continue
        for number, (line, row) in enumerate(rows):
            text = row.rstrip() if kind == "code" else row.strip()
            if not text:
                continue
            blocks_on_line[line] += 1
            too_long = len(lines[line]) > _LONG_LINE_CHARS and blocks_on_line[line] > 2
            if line in headings or too_long:
                return None
            lines[line] = _append(lines[line], kind, text, is_first=number == 0)
    return lines


def _append(line: str, kind: str, text: str, *, is_first: bool) -> str:
    if line:
        return f"{line} | {text}" if kind == "cell" else f"{line} {text}"
    if kind == "code":
        return "    " + text
    return ("- " if kind == "item" and is_first else "") + escape_line(text)


def _write_blocks(page: _Page) -> str:
    """Put every block on its own lines; keep table cells and list items together."""
    written: list[str] = []
    before = ""
    for kind, rows in page.blocks():
        if kind == "code":
            text = "\n".join("    " + row.rstrip() for _, row in rows).rstrip()
        else:
            text = _SPACE.sub(" ", " ".join(row for _, row in rows)).strip()
        if not text:
            continue
        if kind in _HEADINGS:
            text = f"{'#' * _HEADINGS[kind]} {_title_of(rows)}"
        elif kind == "item":
            text = f"- {escape_line(text)}"
        elif kind in ("text", "cell"):
            text = escape_line(text)
        if written:
            written.append(
                {"cell": " | ", "item": "\n"}.get(kind, "") if kind == before else "\n\n"
            )
        written.append(text)
        before = kind if kind in ("cell", "item") else ""
    return "".join([*written, "\n"])


def _title_of(rows: list[tuple[int, str]]) -> str:
    """Return a heading's text without the `¶` link that documentation appends."""
    return _SPACE.sub(" ", " ".join(row for _, row in rows)).strip().removesuffix("¶").strip()


def _unescape(text: str) -> str:
    if "&" not in text:
        return text
    plain = html.unescape(_ENDLESS_REFERENCE.sub("\ufffd", text))
    return plain.replace("\r", " ").replace("\n", " ")
