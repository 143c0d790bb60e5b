"""Show answers on a terminal: with colour, ages, and lines that fit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.style import Style as RichStyle
from rich.text import Text

from byheart.interfaces.cli.screen import INDENT, MATCH, Column, Part, Style, printable, unbroken
from byheart.system import clock

STYLES: dict[Style, str] = {
    "plain": "",
    "name": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "number": "cyan",
}
MATCH_STYLE = "bold yellow"
GAP = "  "
# If the wide column of a table has less room than this, it gets its own line.
LEAST_ROOM = 24
_AGES = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (30 * 86_400, 86_400, "d"))


class TerminalScreen:
    """Show answers in colour, wrapped to the terminal's width."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False)

    def line(self, *parts: Part | str, indent: int = 0) -> None:
        """Show the parts in one line, each in its style."""
        styled = [part if isinstance(part, Part) else Part(part) for part in parts]
        shown = [part for part in styled if part.text]
        texts = [_text(part) for part in shown]
        room = self._console.width - len(INDENT) * indent - Text(GAP).join(texts).cell_len
        for part, text in zip(shown, texts, strict=True):
            if part.gives_way and room < 0:
                text.plain = _cut_middle(text.plain, max(LEAST_ROOM, text.cell_len + room))
        self._print(Text(GAP).join(texts), indent)

    def passage(self, text: str, *, marked: bool = False) -> None:
        """Show the text indented, with matches highlighted instead of marked."""
        shown = _lit(printable(text)) if marked else Text(printable(text))
        shown.expand_tabs(4)
        self._print(shown, indent=1)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Show rows in columns; the wide one is last and takes the remaining room."""
        lines = [[column.heading for column in columns], *rows]
        widths = [
            max(cell_len(unbroken(entry)) for entry in entries)
            for column, entries in zip(columns, zip(*lines, strict=True), strict=True)
            if not column.wide
        ]
        room = self._console.width - sum(width + len(GAP) for width in widths)
        for number, entries in enumerate(lines):
            texts = [
                Text(unbroken(entry), style=STYLES[column.style] if number else "dim")
                for column, entry in zip(columns, entries, strict=True)
            ]
            for column, text, width in zip(columns, texts, widths, strict=False):
                text.align("right" if column.right else "left", width)
            *fixed, last = texts
            if room >= LEAST_ROOM:
                last.truncate(room, overflow="ellipsis")
                self._print(Text(GAP).join(texts))
                continue
            self._print(Text(GAP).join(fixed))
            if number:  # a heading without values would confuse
                last.truncate(self._console.width - len(INDENT), overflow="ellipsis")
                self._print(last, indent=1)

    def moment(self, moment: datetime | None) -> str:
        """Format the age, or the date if it is more than a month ago."""
        if moment is None:
            return ""
        seconds = (clock.now() - moment).total_seconds()
        if seconds < 1:
            return "just now" if seconds > -60 else f"{moment.astimezone():%Y-%m-%d %H:%M}"
        for below, unit, name in _AGES:
            if seconds < below:
                return f"{int(seconds // unit)} {name} ago"
        return f"{moment.astimezone():%Y-%m-%d}"

    def _print(self, text: Text, indent: int = 0) -> None:
        if not text.plain:
            self._console.print()
            return
        # expand=False: no trailing spaces, which would be copied too.
        self._console.print(Padding(text, (0, 0, 0, len(INDENT) * indent), expand=False))


def _text(part: Part) -> Text:
    style = RichStyle.parse(STYLES[part.style])
    return Text(unbroken(part.text), style=style + RichStyle(link=part.link or None))


def _cut_middle(text: str, room: int) -> str:
    """Cut the middle of a text: the name at the end of a path matters most."""
    if cell_len(text) <= room:
        return text
    head = set_cell_size(text, room // 3).rstrip()
    tail = set_cell_size(text[::-1], room - 1 - cell_len(head)).rstrip()[::-1]
    return f"{head}…{tail}"


def _lit(snippet: str) -> Text:
    """Replace the marks around matches by a style."""
    text, at = Text(), 0
    for match in MATCH.finditer(snippet):
        text.append(snippet[at : match.start()])
        text.append(match[1], style=MATCH_STYLE)
        at = match.end()
    return text.append(snippet[at:])
