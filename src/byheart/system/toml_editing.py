"""Set and remove values in a TOML text, and leave every other byte unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable, AoT, InlineTable, Null, Table, Whitespace

_REMOVED = "\0"
"""Marks the place of a removed table. TOML allows no such character."""


class Uneditable(ValueError):
    """Report that a text cannot be edited without changing more than intended."""


def put_values(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Set values in the table at a path; add a missing table at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text.strip("\ufeff \t\r\n") and not text.endswith("\n"):
        text += newline
    document = _parse(text)
    table: Any = document
    for name in path:
        if name not in table and not isinstance(table, InlineTable):
            return text + _new_table(text, path, values, newline)
        # An inline table has no headers below it, so a missing table becomes inline as well.
        table = table.setdefault(name, tomlkit.inline_table())
        if not isinstance(table, Mapping):
            raise Uneditable(f"{name} is not a table")
    changed = {name: value for name, value in values.items() if table.get(name) != value}
    try:
        _set(table, changed, newline)
    except TOMLKitError as error:
        raise Uneditable(str(error)) from error
    return _byte_order_mark(text) + document.as_string()


def remove_value(text: str, path: Sequence[str]) -> str:
    """Remove the value or table at a path; comments after a table stay."""
    document = _parse(text)
    _remove(document, path)
    rendered = _byte_order_mark(text) + document.as_string()
    # Also remove the blank line between a removed table and the previous one.
    rendered = re.sub(rf"(^|\n)[ \t]*\r?\n{_REMOVED}(?=[ \t]*\r?(\n|$))", r"\1", rendered)
    return rendered.replace(_REMOVED, "")


def literal(value: object) -> str:
    """Write a value as TOML."""
    return tomlkit.item(value).as_string()


def _parse(text: str) -> tomlkit.TOMLDocument:
    body = text.removeprefix("\ufeff")
    try:
        document = tomlkit.parse(body)
        if document.as_string() == body:
            return document
    except TOMLKitError as error:
        raise Uneditable(str(error)) from error
    raise Uneditable("tomlkit does not reproduce this text")


def _byte_order_mark(text: str) -> str:
    return text[: text.startswith("\ufeff")]


def _new_table(text: str, path: Sequence[str], values: Mapping[str, Any], newline: str) -> str:
    content: Mapping[str, Any] = values
    for name in reversed(path):
        content = {name: content}
    gap = newline if text.strip("\ufeff \t\r\n") else ""
    return gap + tomlkit.dumps(content).replace("\n", newline)


def _set(table: Any, values: Mapping[str, Any], newline: str) -> None:
    # Comments at the end of a table are usually about the next one, so new values go before them.
    body = table.value.body if isinstance(table, Table) else []
    end = next((at for at in range(len(body), 0, -1) if body[at - 1][0] is not None), 0)
    comments = body[end:]
    del body[end:]
    for name, value in values.items():
        item = tomlkit.item(value)
        if name not in table and not isinstance(table, InlineTable):
            item.trivia.trail = newline
        table[name] = item
    body.extend(comments)


def _remove(container: Container, path: Sequence[str]) -> None:
    # Search the parts in the order of the text: the parts of one table may be far from each other.
    name, *below = path
    for at, (key, item) in enumerate(container.body):
        if key is None or key.key != name:
            continue
        if below:
            if isinstance(item, InlineTable) and len(below) == 1:
                item.pop(below[0], None)
            elif isinstance(item, AbstractTable):
                _remove(item.value, below)
        elif isinstance(item, Table):
            container.body[at] = (None, Whitespace(_REMOVED + _trailing_comments(item)))
        else:
            container.body[at] = (None, Null())


def _trailing_comments(table: Table) -> str:
    """Return the comments and blank lines after the last value of a table."""
    trailing = ""
    for key, item in reversed(table.value.body):
        if isinstance(item, AoT):
            return _trailing_comments(item.body[-1]) + trailing
        if isinstance(item, Table):
            return _trailing_comments(item) + trailing
        if key is not None:
            break
        trailing = item.as_string() + trailing
    return trailing
