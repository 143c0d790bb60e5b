"""Keeping an answer within a number of tokens, with a handle to read on.

Tokens are estimated, and the estimate counts too many rather than too few: what reads an answer is
a model whose tokenizer nobody here knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from byheart.embedding.estimated_tokens import TOKEN
from byheart.interfaces.mcp.tools import ToolText

Wire = dict[str, Any]

# The lists of each answer that may lose their end, the least needed first.
_LISTS: Mapping[str, tuple[str, ...]] = {
    "search": ("results",),
    "recall": ("explanations", "details", "index"),
    "sessions": ("sessions",),
    "forget": ("memory_ids",),
    "save": ("similar",),
    "update": ("similar",),
    "log": ("similar",),
}
_PAGED = ("search", "sessions")
# Kept free for saying how to read on.
_HANDLE_TOKENS = 200
_LONGEST_ARGUMENT = 200
_MOST_CHARS_PER_TOKEN = 16


class Bound:
    """So many tokens at most."""

    def __init__(self, max_tokens: int) -> None:
        self._most = max_tokens - _HANDLE_TOKENS

    def keep(self, tool: ToolText, given: Mapping[str, Any], answer: Wire) -> Wire:
        """Shorten an answer until it fits, and say how to read on."""
        if self._fits(answer):
            return answer
        read_on = None
        for name in _LISTS.get(tool.verb, ()):
            if name not in answer or self._fits(answer):
                continue
            kept = self._first_that_fit(answer, name)
            read_on = read_on or _read_on(tool, given, answer[name], kept)
            answer = answer | {name: answer[name][:kept]}
        # What is left is one long entry, or a text that is long by itself.
        longest = self._longest_text(answer)
        if longest is not None:
            read_on = _rest_of_text(answer, longest) or read_on
            answer = _clipped(answer, longest)
        return answer | {"truncated": True} | ({"read_on": read_on} if read_on else {})

    def _first_that_fit(self, answer: Wire, name: str) -> int:
        """Count the entries from the first on that fit, at least one."""
        left = self._most - _count(answer | {name: []})
        for number, entry in enumerate(answer[name]):
            left -= _count(entry)
            if left < 0:
                return max(number, 1)
        return len(answer[name])

    def _longest_text(self, answer: Wire) -> int | None:
        """Find how long texts may be so that the answer fits; `None` if they may be as they are."""
        if self._fits(answer):
            return None
        low, high = 0, self._most * _MOST_CHARS_PER_TOKEN
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits(_clipped(answer, middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def _fits(self, answer: Wire) -> bool:
        return _count(answer) <= self._most


def _count(value: Any) -> int:
    return sum(1 for _ in TOKEN.finditer(json.dumps(value, ensure_ascii=False)))


def _clipped(value: Any, longest: int) -> Any:
    """Cut every text in a value; an object that is the user's own goes whole if it is too long."""
    if isinstance(value, str):
        return value[:longest]
    if isinstance(value, list):
        return [_clipped(each, longest) for each in value]
    if isinstance(value, dict):
        return {
            key: _clipped(each, longest)
            for key, each in value.items()
            if key != "metadata" or len(json.dumps(each)) <= longest
        }
    return value


def _read_on(
    tool: ToolText, given: Mapping[str, Any], entries: list[Wire], kept: int
) -> Wire | None:
    """Name the call that gives the entries left out."""
    if kept == len(entries):
        return None
    if tool.verb in _PAGED:
        if any(len(str(value)) > _LONGEST_ARGUMENT for value in given.values()):
            return None
        offset = given.get("offset", 0) + kept
        return {"tool": tool.name, "arguments": {**given, "offset": offset}}
    if tool.verb == "recall" and "content" in entries[kept]:
        return {"tool": "memory_get", "arguments": {"memory_id": entries[kept]["id"]}}
    return None


def _rest_of_text(answer: Wire, longest: int) -> Wire | None:
    """Name the call that gives the rest of a memory's text, where that was cut."""
    entry = answer
    for name in ("results", "details"):
        if answer.get(name):
            entry = answer[name][0]
    memory_id = entry.get("memory_id") or entry.get("id")
    if memory_id is None or all(len(str(value)) <= longest for value in entry.values()):
        return None
    start = entry["start_char"] + longest if "start_char" in entry else 0
    named = entry.get("chunk_id", memory_id)
    return {
        "tool": "memory_get",
        "arguments": {"memory_id": memory_id, "start_char": start}
        if start
        else {"memory_id": named},
    }
