"""Edit JSON with comments and trailing commas in place, and leave the rest untouched.

A parser that drops comments could only rewrite the file without them. So this module finds members
by their position in the text, and inserts or removes only their own characters.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from byheart.startup.late_patterns import late_pattern

_TOKEN = late_pattern(
    r"""(?P<space>[\s\ufeff]+)
    |   (?P<comment>//[^\r\n]*|/\*.*?\*/)
    |   (?P<string>"(?:[^"\\]|\\.)*")
    |   (?P<mark>[][{}:,])
    |   (?P<literal>[^][{}:,"\s/]+)""",
    re.VERBOSE | re.DOTALL,
)
# The tokens needed to skip a value: brackets, and the strings and comments that may contain some.
_BRACKET = late_pattern(r"""[][{}]|"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/""", re.DOTALL)
_INDENT = "  "


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class _Member(NamedTuple):
    """Locate a name and its value: from `start` to `end`.

    `value` is where the value begins, `gap` where the white space before the name begins, and
    `comma` where the comma after the value is, if there is one.
    """

    name: str
    gap: int
    start: int
    value: int
    end: int
    comma: int | None


class _Object(NamedTuple):
    """Locate an object by its two braces; `tail` is where its last inner token ends."""

    start: int
    end: int
    tail: int
    members: Sequence[_Member]

    def find(self, name: str) -> _Member | None:
        """Find a member; of two with the same name, the later one counts, as in every parser."""
        return next((each for each in reversed(self.members) if each.name == name), None)


def parse(text: str) -> Any:
    """Parse a text; raise `ValueError` if it is not JSON even without its comments."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)  # faster: most files have no comments, and some have megabytes
    plain, comma, last = list(text), None, ""
    for token in _tokens(text):
        if token.kind in ("space", "comment"):
            # The length stays the same, so that an error is reported at its real position.
            plain[token.start : token.end] = re.sub(r"[^\n]", " ", token.text)
            continue
        if token.text in ("}", "]") and comma is not None:
            plain[comma] = " "
        comma = token.start if token.text == "," and last not in ("{", "[", ",", "") else None
        last = token.text
    try:
        return json.loads("".join(plain))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set the member at a path; create the objects that are missing on the way."""
    if not text.strip("\ufeff \t\r\n"):
        text += "{}\n"
    *names, last = path
    at, missing = _descend(text, names)
    if missing:
        last, *inner = [*missing, last]
        for name in reversed(inner):
            value = {name: value}
    found = at.find(last)
    if found is None:
        return _insert(text, at, last, value)
    return (
        text[: found.value] + _render(text, value, _margin(text, found.start)) + text[found.end :]
    )


def remove(text: str, path: Sequence[str]) -> str:
    """Remove the member at a path, with the comma that it no longer needs."""
    *names, last = path
    at, missing = _descend(text, names)
    found = None if missing else at.find(last)
    if found is None:
        return text
    others = [each for each in at.members if each is not found]
    if not others and (at.start + 1, at.tail) == (found.gap, found.end):
        return text[: at.start + 1] + text[at.end :]
    comma = found.comma
    if comma is None and others:
        comma = others[-1].comma
    cuts = [(found.gap, found.end)] + ([] if comma is None else [(comma, comma + 1)])
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _insert(text: str, at: _Object, name: str, value: Any) -> str:
    key = f"{json.dumps(name, ensure_ascii=False)}: "
    last = at.members[-1] if at.members else None
    if _on_one_line(text, at):
        piece = f"{' ' if last else ''}{key}{_render(text, value, None)}"
        closing = ""
    else:
        newline = _newline(text)
        margin = _margin(text, last.start) if last else _margin(text, at.start) + _unit(text)
        piece = f"{newline}{margin}{key}{_render(text, value, margin)}"
        room = "\n" in text[at.tail : at.end]
        closing = "" if last or room else newline + _margin(text, at.start)
    if last is None or last.comma is not None:
        trailing = "," if last else ""
        return f"{text[: at.tail]}{piece}{trailing}{closing}{text[at.tail :]}"
    # The comma goes directly after the last value, not after a comment on it.
    return f"{text[: last.end]},{text[last.end : at.tail]}{piece}{text[at.tail :]}"


def _on_one_line(text: str, at: _Object) -> bool:
    if at.members:
        return "\n" not in text[at.start : at.members[0].start]
    return "\n" not in text.strip() and text.strip() != "{}"


def _render(text: str, value: Any, margin: str | None) -> str:
    if margin is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return f"{_newline(text)}{margin}".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _margin(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return the white space of one indentation step in this text."""
    opening, first = itertools.islice(_significant(text), 2)
    between = text[opening.end : first.start]
    return _margin(text, first.start) if "\n" in between and first.text != "}" else _INDENT


# --- Positions in the text --------------------------------------------------------------------


def _tokens(text: str, start: int = 0) -> Iterator[_Token]:
    while match := _TOKEN.match(text, start):
        start = match.end()
        yield _Token(match.lastgroup or "", match.group(), match.start(), match.end())


def _descend(text: str, names: Sequence[str]) -> tuple[_Object, Sequence[str]]:
    """Follow names into objects; return the last object found, and the names left over."""
    at = _root(text)
    for depth, name in enumerate(names):
        found = at.find(name)
        if found is None:
            return at, names[depth:]
        if text[found.value] != "{":
            raise ValueError(f"{name} is not an object")
        at = _read_object(text, found.value)
    return at, ()


def _significant(text: str) -> Iterator[_Token]:
    return (each for each in _tokens(text) if each.kind not in ("space", "comment"))


def _root(text: str) -> _Object:
    first = next(_significant(text), None)
    if first is None or first.text != "{":
        raise ValueError("it is not an object")
    return _read_object(text, first.start)


def _read_object(text: str, start: int) -> _Object:
    members: list[_Member] = []
    key: tuple[_Token, int] | None = None
    tail = end = start + 1
    while token := next(_tokens(text, end), None):
        end = token.end
        if token.kind == "space":
            continue
        if token.text == "}":
            return _Object(start, token.start, tail, members)
        if token.text == "," and members:
            members[-1] = members[-1]._replace(comma=token.start)
        elif key is None and token.kind == "string":
            key = (token, tail)
        elif key is not None and token.text != ":" and token.kind != "comment":
            name, gap = key
            end = _end_of_value(text, token)
            members.append(_Member(json.loads(name.text), gap, name.start, token.start, end, None))
            key = None
        tail = end
    raise ValueError("an object does not end")


def _end_of_value(text: str, token: _Token) -> int:
    if token.text not in ("{", "["):
        return token.end
    depth = 0
    for match in _BRACKET.finditer(text, token.start):
        depth += (match[0] in ("{", "[")) - (match[0] in ("}", "]"))
        if not depth:
            return match.end()
    raise ValueError("a value does not end")
