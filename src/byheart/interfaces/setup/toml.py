"""Insert or remove one table of a TOML text, and leave every other byte unchanged."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple


class _Statement(NamedTuple):
    """Locate one header or assignment: lines `start` to `end`, in the table `table`."""

    start: int
    end: int
    table: tuple[str, ...]
    content: Mapping[str, Any]


def put_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Set values in a table; add a missing table at the end."""
    newline, lines = _newline(text), _lines(text)
    own = [each for each in _statements(text) if each.table == tuple(path)]
    if not own:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += newline
        gap = [newline] if text.strip("\ufeff \t\r\n") else []
        header = f"[{'.'.join(path)}]{newline}"
        return "".join([*lines, *gap, header, *assignments(values, newline)])
    for name, value in values.items():  # each change keeps the line numbers valid
        [assignment] = assignments({name: value}, newline)
        held = next((each for each in own if name in each.content), None)
        header_line = own[0].end - 1
        if held is None:
            lines[header_line] = _ended(lines[header_line], newline) + assignment
        elif held.content[name] != value:
            lines[held.start : held.end] = [assignment] + [""] * (held.end - held.start - 1)
    return "".join(lines)


def remove_table(text: str, path: Sequence[str]) -> str:
    """Remove a table with its subtables; comments around them stay."""
    lines = _lines(text)
    for start, end in reversed(list(_spans(text, tuple(path)))):
        # Also remove the blank line between this table and the previous one.
        if start and not lines[start - 1].strip() and not "".join(lines[end : end + 1]).strip():
            start -= 1
        del lines[start:end]
    return "".join(lines)


def find_line(text: str, path: Sequence[str]) -> int | None:
    """Return the number of the first line whose assignment sets a value at a path."""
    for statement in _statements(text):
        held: Any = statement.content
        for name in reversed(statement.table):
            held = {name: held}
        for name in path:
            held = held.get(name) if isinstance(held, dict) else None
        if statement.content and held is not None:
            return statement.start + 1
    return None


def _spans(text: str, path: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield where tables at or below a path begin, and where their last assignment ends."""
    for ours, statements in groupby(
        _statements(text), lambda each: each.table[: len(path)] == path
    ):
        if ours:
            own = list(statements)
            yield own[0].start, own[-1].end


def assignments(values: Mapping[str, Any], newline: str) -> list[str]:
    """Write strings and lists of strings, each with its name on its own line."""
    # JSON and TOML write strings and lists of strings in the same way.
    return [
        f"{name} = {json.dumps(each, ensure_ascii=False)}{newline}" for name, each in values.items()
    ]


def _ended(line: str, newline: str) -> str:
    return line if line.endswith("\n") else line + newline


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _lines(text: str) -> list[str]:
    # splitlines() would be wrong: TOML ends a line at "\n" only, and a comment may contain U+2028.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _statements(text: str) -> Iterator[_Statement]:
    """Split a valid text into statements: each is the smallest number of lines that parses."""
    lines, start = _lines(text.removeprefix("\ufeff")), 0
    table: tuple[str, ...] = ()
    while start < len(lines):
        end = start + 1
        while (content := _parse(lines[start:end])) is None and end < len(lines):
            end += 1
        if lines[start].lstrip().startswith("["):
            table = tuple(_names(content))
            yield _Statement(start, end, table, {})
        elif content:
            yield _Statement(start, end, table, content)
        start = end


def _parse(lines: Sequence[str]) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _names(header: Any) -> Iterator[str]:
    """Yield the names in a table's header, from the outermost table on."""
    while isinstance(header, dict) and header:
        [(name, header)] = header.items()
        yield name
