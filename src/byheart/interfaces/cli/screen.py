"""Format answers: JSON for programs, plain lines in a pipe, colour on a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import click

from byheart.interfaces.cli.hints import for_terminal
from byheart.interfaces.cli.verb import Invocation
from byheart.interfaces.commands import spell_command
from byheart.model import to_wire
from byheart.system import clock

Style = Literal["plain", "name", "dim", "good", "bad", "number"]
INDENT = "   "
# The first and last position of each match in a text.
Marks = Sequence[tuple[int, int]]


class Part(NamedTuple):
    """Hold a piece of a line, its style, and the file that a click opens.

    A part that `gives_way` is cut in its middle if the terminal is too narrow for the line.
    """

    text: str
    style: Style = "plain"
    link: str = ""
    gives_way: bool = False


class Column(NamedTuple):
    """Describe a table column; the last one is `wide`, and shrinks on a narrow terminal."""

    heading: str
    wide: bool = False
    right: bool = False
    style: Style = "plain"


class Screen(Protocol):
    """Show an answer."""

    def line(self, *parts: Part | str, indent: int = 0) -> None:
        """Show the parts in one line, with gaps between them."""
        ...

    def whole(self, part: Part, indent: int = 0) -> None:
        """Show a line that people copy: it is never wrapped."""
        ...

    def passage(self, text: str, marks: Marks = ()) -> None:
        """Show text of a memory, indented; `marks` are the matches in it."""
        ...

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Show rows under headings."""
        ...

    def moment(self, moment: datetime | None) -> str:
        """Format a time."""
        ...


class PlainScreen:
    """Show plain lines: no colour, no drawing, nothing cut off."""

    def line(self, *parts: Part | str, indent: int = 0) -> None:
        """Show the parts in one line."""
        texts = [unbroken(part.text if isinstance(part, Part) else part) for part in parts]
        click.echo(INDENT * indent + "  ".join(text for text in texts if text))

    def whole(self, part: Part, indent: int = 0) -> None:
        """Show the line."""
        self.line(part, indent=indent)

    def passage(self, text: str, marks: Marks = ()) -> None:  # noqa: ARG002 - text to copy
        """Show the text with each line indented."""
        for each in text.splitlines():
            click.echo((INDENT + each).rstrip())

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Show rows in columns as wide as their widest entry."""
        shown = [[unbroken(entry) for entry in row] for row in rows]
        lines = [[column.heading for column in columns], *shown]
        widths = [max(map(len, entries)) for entries in zip(*lines, strict=True)]
        for entries in lines:
            cells = [
                entry.rjust(width) if column.right else entry.ljust(width)
                for column, entry, width in zip(columns, entries, widths, strict=True)
            ]
            click.echo("  ".join(cells).rstrip())

    def moment(self, moment: datetime | None) -> str:
        """Format the time in UTC, so that the output does not depend on the current date."""
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def open_screen() -> Screen:
    """Choose the screen by the type of stdout."""
    if not sys.stdout.isatty():
        return PlainScreen()
    # rich takes longer to import than the rest of a command, so pipes do not load it.
    from byheart.interfaces.cli.terminal import TerminalScreen

    return TerminalScreen()


def print_json(answer: object) -> None:
    """Print the same JSON as REST; indented on a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(to_wire(answer, spell_command), ensure_ascii=False, indent=indent))


def print_text(text: str) -> None:
    """Print a text byte for byte; on a terminal, without dangerous control characters."""
    if sys.stdout.isatty():
        click.echo(printable(text), nl=not text.endswith("\n"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def printable(text: str) -> str:
    """Spell hints as commands, and escape control characters: a text may come from anywhere."""
    shown = for_terminal(text)
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda each: f"\\x{ord(each[0]):02x}", shown)


def unbroken(text: str) -> str:
    """Escape line breaks, so that a name is one line: a file name may contain them."""
    return printable(text).replace("\n", "\\n")


def warn(invocation: Invocation, message: str | None) -> None:
    """Warn on stderr about a degraded answer; in JSON the answer contains the warning."""
    if message and not invocation.json:
        click.echo(f"{click.style('warning:', fg='yellow')} {printable(message)}", err=True)


def remark(invocation: Invocation, message: str) -> None:
    """Print a remark on stderr that is not part of the answer."""
    if not invocation.json:
        click.echo(click.style(printable(message), dim=True), err=True)


def point_on(invocation: Invocation, seen: int, total: int, command: str) -> None:
    """Say on stderr how much of a list was shown, and which command shows the rest."""
    remark(invocation, f"{seen:,} of {total:,}; more: {command} --offset {seen}")


def qualify(invocation: Invocation, degraded: str | None, told: str | None) -> None:
    """Print the warning and the remark that belong to an answer."""
    warn(invocation, degraded)
    if told:
        remark(invocation, told)


def validity(valid_from: datetime | None, valid_until: datetime | None) -> str:
    """Say when a memory is true, if it has a beginning or an end."""
    now = clock.now()
    parts = []
    if valid_from is not None:
        begins = "not valid before" if valid_from > now else "valid from"
        parts.append(f"{begins} {valid_from:%Y-%m-%d}")
    if valid_until is not None:
        ends = "ended on" if valid_until <= now else "valid until"
        parts.append(f"{ends} {valid_until:%Y-%m-%d}")
    return ", ".join(parts)


def one_line(text: str) -> str:
    """Put a text on one line."""
    return " ".join(text.split())


def seen_from_here(path: str) -> str:
    """Shorten the path of a file below the working folder."""
    with suppress(ValueError, OSError):
        return Path(path).relative_to(Path.cwd()).as_posix()
    return path


def link_to(path: str) -> str:
    """Return the address that a terminal opens when the path is clicked."""
    with suppress(ValueError):
        return Path(path).as_uri()
    return ""


def count(number: int, noun: str) -> str:
    """Format a number with its noun: `1 chunk`, `2,000 chunks`, `3 memories`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def size(number_of_bytes: int) -> str:
    """Format a size with its unit."""
    amount = float(number_of_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
