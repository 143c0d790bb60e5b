"""Transcripts: what those that agents write, line by line, have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.upkeep.foreign.pieces import Item, LeftOut, Unreadable
from byheart.upkeep.foreign.sources import Source
from byheart.upkeep.lines import parse_object

Record = Mapping[str, Any]
# What a call of a tool is best known by, in this order.
_TELLING = (
    "command",
    "cmd",
    "url",
    "query",
    "pattern",
    "file_path",
    "path",
    "description",
    "prompt",
)
# Far more than is kept: a secret must not be cut before it is known to be one.
_MOST_CALL_CHARS = 4000
# Outputs follow their calls at once: of older calls none is waited for.
_REMEMBERED_CALLS = 1000


class Calls:
    """The calls of tools whose outputs are still to come."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str]] = {}

    def note(self, call_id: object, tool: object, given: object) -> None:
        """Remember which tool was called, and what for."""
        if isinstance(call_id, str) and isinstance(tool, str):
            self._calls[call_id] = tool, describe_call(tool, given)
            while len(self._calls) > _REMEMBERED_CALLS:
                del self._calls[next(iter(self._calls))]

    def take(self, call_id: object) -> tuple[str, str]:
        """Give the tool whose output this is, and a title for it."""
        return self._calls.pop(str(call_id), ("tool", "tool"))


def describe_call(tool: str, given: object) -> str:
    """Tell in a line what a tool was called for: `Bash: npm test`."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return _one_line(tool, given)
    if isinstance(given, dict):
        for name in _TELLING:
            if given.get(name):
                return _one_line(tool, given[name])
    return tool


def _one_line(tool: str, said: object) -> str:
    text = " ".join(map(str, said)) if isinstance(said, list) else str(said)
    text = " ".join(text[:_MOST_CALL_CHARS].split())
    return f"{tool}: {text}" if text else tool


def text_of(content: object, *kinds: str) -> str:
    """Join the texts of a content: a string, or blocks of which those of some kinds are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (
        block if isinstance(block, str) else block.get("text")
        for block in content
        if isinstance(block, str) or (isinstance(block, dict) and block.get("type") in kinds)
    )
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())


def read_lines(
    source: Source,
    stream: BinaryIO,
    read: Callable[[str, Record], Iterator[Item]],
    *,
    may_grow: bool = False,
) -> Iterator[Item]:
    """Give what each line holds; one that cannot be read does not keep the others from it.

    Of a file that may grow, the last line may be half there.
    """
    for number, line in enumerate(stream, start=1):
        place = f"{source.name} line {number}"
        if not line.strip():
            continue
        try:
            yield from read(place, parse_object(line, "it"))
        except InvalidInput as error:
            is_half = may_grow and not line.endswith(b"\n")
            yield LeftOut(place, "unfinished line") if is_half else Unreadable(place, error)
