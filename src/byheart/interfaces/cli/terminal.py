"""The screen on a terminal: colour, ages, and lines that fit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from byheart.interfaces.cli.screen import INDENT, MATCH, Column, Part, Style, printable

STYLES: dict[Style, str] = {
    "plain": "",
    "name": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "number": "cyan",
}
MATCH_STYLE = "bold yellow"
_AGES = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (30 * 86_400, 86_400, "d"))


class TerminalScreen:
    """Show answers in colour, wrapped to the terminal's width."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False)

    def line(self, *parts: Part | str, indent: int = 0) -> None:
        """Show the parts in one line, each in its style."""
        styled = [part if isinstance(part, Part) else Part(part) for part in parts]
        text = Text("  ").join(_text(part) for part in styled if part.text)
        self._console.print(Padding(text, (0, 0, 0, len(INDENT) * indent)))

    def passage(self, text: str, *, marked: bool = False) -> None:
        """Show the text indented, with its matches lit instead of marked."""
        shown = _lit(printable(text)) if marked else Text(printable(text))
        shown.expand_tabs(4)
        self._console.print(Padding(shown, (0, 0, 0, len(INDENT))))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Show rows in columns; the wide ones are cut to what the terminal has room for."""
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
        for column in columns:
            table.add_column(
                column.heading,
                style=STYLES[column.style],
                justify="right" if column.right else "left",
                no_wrap=True,
                overflow="ellipsis",
                ratio=1 if column.wide else None,
                min_width=None if column.wide else _widest(column, columns, rows),
            )
        for row in rows:
            table.add_row(*(Text(printable(entry)) for entry in row))
        self._console.print(table)

    def moment(self, moment: datetime | None) -> str:
        """Give the age, or the date of what is older than a month."""
        if moment is None:
            return ""
        seconds = (datetime.now(UTC) - moment).total_seconds()
        if seconds < 1:
            return "just now" if seconds > -60 else f"{moment.astimezone():%Y-%m-%d %H:%M}"
        for below, unit, name in _AGES:
            if seconds < below:
                return f"{int(seconds // unit)} {name} ago"
        return f"{moment.astimezone():%Y-%m-%d}"


def _text(part: Part) -> Text:
    return Text(printable(part.text), style=STYLES[part.style])


def _widest(column: Column, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    place = columns.index(column)
    return max([len(column.heading), *(len(row[place]) for row in rows)])


def _lit(snippet: str) -> Text:
    """Turn marks around matches into light."""
    text, at = Text(), 0
    for match in MATCH.finditer(snippet):
        text.append(snippet[at : match.start()])
        text.append(match[1], style=MATCH_STYLE)
        at = match.end()
    return text.append(snippet[at:])
