"""Sketch: what a JSON document is, told by its beginning; what was cut off does not matter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
# A name, the list behind it, the objects in that, their members: nothing is known by more.
_DEPTH = 4
_OPENING, _CLOSING = ("{", "["), ("}", "]")


def sketch_objects(text: str, most: int) -> list[dict[str, Any]]:
    """Give the first objects of a list, or of documents that follow one another.

    Of a list inside of them there is the first element; what lies deeper is left out.
    """
    drawing = _Drawing(text)
    return list(islice(drawing.objects(), most))


class _Drawing:
    def __init__(self, text: str) -> None:
        self._tokens = (found[0] for found in _TOKEN.finditer(text))

    def objects(self) -> Iterator[dict[str, Any]]:
        """Give each object that stands in no other one."""
        for token in self._tokens:
            if token == "{":
                yield self._members(1)

    def _members(self, depth: int) -> dict[str, Any]:
        held: dict[str, Any] = {}
        for token in self._tokens:
            if token == "}":
                break
            if token.startswith('"'):
                next(self._tokens, "")  # the colon
                held[_plain(token)] = self._value(next(self._tokens, ""), depth)
        return held

    def _value(self, token: str, depth: int) -> Any:
        if token not in _OPENING:
            return _plain(token)
        if depth == _DEPTH:
            self._pass_over()
            return {} if token == "{" else []
        if token == "{":
            return self._members(depth + 1)
        first = next(self._tokens, "")
        if first in ("", "]"):
            return []
        held = [self._value(first, depth + 1)]
        self._pass_over()
        return held

    def _pass_over(self) -> None:
        """Go to the end of what was opened."""
        depth = 1
        for token in self._tokens:
            depth += (token in _OPENING) - (token in _CLOSING)
            if not depth:
                return


def _plain(token: str) -> Any:
    try:
        return json.loads(token)
    except ValueError:  # cut off, or no JSON at all
        return token.strip('"')
