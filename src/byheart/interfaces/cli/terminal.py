"""Show answers on a terminal: with colour, ages, and lines that fit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.style import Style as RichStyle
from rich.text import Text

from byheart.interfaces.cli.screen import INDENT, Column, Marks, Part, Style, printable, unbroken
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
        """Show the parts in one line, each in its style.

        If the line is too long, its rest is indented. A first part that is padded with spaces is
        the name of a value: the rest of the value is shown below its beginning.
        """
        styled = [part if isinstance(part, Part) else Part(part) for part in parts]
        shown = [part for part in styled if part.text]
        texts = [_text(part) for part in shown]
        room = self._console.width - len(INDENT) * indent - Text(GAP).join(texts).cell_len
        for part, text in zip(shown, texts, strict=True):
            if part.gives_way and room < 0:
                text.plain = _cut_middle(text.plain, max(LEAST_ROOM, text.cell_len + room))
        is_value = len(texts) > 1 and texts[0].plain.endswith(" ")
        hang = texts[0].cell_len + len(GAP) if is_value else len(INDENT)
        self._print(Text(GAP).join(texts), indent, hang)

    def whole(self, part: Part, indent: int = 0) -> None:
        """Show the line; the terminal may break it, which copying does not see."""
        self._console.print(Text(INDENT * indent).append_text(_text(part)), soft_wrap=True)

    def passage(self, text: str, marks: Marks = ()) -> None:
        """Show the text indented, with its matches highlighted."""
        shown = _lit(text, marks)
        shown.expand_tabs(4)
        self._print(shown, indent=1)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Show rows in columns; the last one takes the remaining room, or has a line of its own."""
        lines = [[column.heading for column in columns], *rows]
        entries = zip(*lines, strict=True)
        *widths, last = (max(cell_len(unbroken(each)) for each in column) for column in entries)
        room = self._console.width - sum(width + len(GAP) for width in widths)
        beside = room >= min(last, LEAST_ROOM)
        if not beside:
            _narrow(columns, widths, self._console.width)
        for number, line in enumerate(lines):
            *fixed, text = (
                Text(unbroken(entry), style=STYLES[column.style] if number else "dim")
                for column, entry in zip(columns, line, strict=True)
            )
            for column, each, width in zip(columns, fixed, widths, strict=False):
                each.truncate(width, overflow="ellipsis")
                each.align("right" if column.right else "left", width)
            if beside:
                text.truncate(room, overflow="ellipsis")
                if columns[-1].right:
                    text.align("right", min(room, last))
                self._print(Text(GAP).join([*fixed, text]))
                continue
            self._print(Text(GAP).join(fixed))
            if number and text.plain:  # a heading without values would confuse
                text.truncate(self._console.width - len(INDENT), overflow="ellipsis")
                self._print(text, indent=1)

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

    def _print(self, text: Text, indent: int = 0, hang: int = 0) -> None:
        """Print a text; the lines of a longer one begin `hang` cells further to the right."""
        if not text.plain:
            self._console.print()
            return
        before = len(INDENT) * indent
        [*lines] = text.wrap(self._console, max(LEAST_ROOM, self._console.width - before))
        if hang and len(lines) > 1:
            begun, width = lines[0], self._console.width - before - hang
            rest = text[len(begun.plain) :]
            rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
            lines = [begun, *rest.wrap(self._console, max(LEAST_ROOM, width))]
        for number, line in enumerate(lines):
            line.rstrip()  # trailing spaces would be copied too
            if line.plain:
                line.pad_left(before + (hang if number else 0))
            self._console.print(line, soft_wrap=True)


def _narrow(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Take from the widest column with text what the columns have too much."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    texts = [number for number in range(len(widths)) if not columns[number].right]
    if excess > 0 and texts:
        widest = max(texts, key=widths.__getitem__)
        widths[widest] = max(1, widths[widest] - excess)


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


def _lit(text: str, marks: Marks) -> Text:
    """Highlight the matches of a text."""
    shown, at = Text(), 0
    for start, end in marks:
        shown.append(printable(text[at:start]))
        shown.append(printable(text[start:end]), style=MATCH_STYLE)
        at = end
    return shown.append(printable(text[at:]))
