"""Parse the beginning of a JSON document, even if the rest is cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from byheart.startup.late_patterns import late_pattern

_TOKEN = late_pattern(r'"(?:[^"\\]|\\.)*+"?|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
# A name, its list, the objects in the list, their members: no format needs a deeper look.
_DEPTH = 4
_OPENING, _CLOSING = ("{", "["), ("}", "]")


def sketch_objects(text: str, most: int) -> list[dict[str, Any]]:
    """Return the first objects of a list, or of consecutive documents.

    A list inside an object is reduced to its first element; deeper levels are left out.
    """
    drawing = _Drawing(text)
    return list(islice(drawing.objects(), most))


class _Drawing:
    def __init__(self, text: str) -> None:
        self._tokens = (found[0] for found in _TOKEN.finditer(text))

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield each top-level object."""
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
        """Skip to the end of the opened value."""
        depth = 1
        for token in self._tokens:
            depth += (token in _OPENING) - (token in _CLOSING)
            if not depth:
                return


def _plain(token: str) -> Any:
    try:
        return json.loads(token)
    except ValueError:  # cut off, or not JSON
        return token.strip('"')
