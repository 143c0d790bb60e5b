"""Keep an answer within a number of tokens, and name the call that reads on.

Tokens are estimated, because the tokenizer of the model that reads the answer is unknown. The
estimate tends to be too high, not too low.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from byheart.embedding import EstimatedTokens
from byheart.interfaces.mcp.tool_texts import ToolText

Wire = dict[str, Any]

# The lists of each answer that may be cut at their end, the least needed list first.
_LISTS: Mapping[str, tuple[str, ...]] = {
    "search": ("conflicts", "results"),
    "recall": ("explanations", "details", "index"),
    "sessions": ("sessions",),
    "get": ("history",),
    "quarantine": ("memories",),
    "forget": ("memory_ids",),
    "save": ("similar", "conflicts"),
    "update": ("similar", "conflicts"),
    "log": ("similar", "conflicts"),
}
_PAGED = ("search", "sessions", "quarantine")
# The main texts of answers; every other field is secondary.
_MAIN = ("content", "section_content", "chunk_content", "text")
# How long secondary fields may be if space is short: (characters of a text, entries of a list), in
# two steps. Every id, kind and time is shorter than the first step's characters.
_BESIDE = ((500, 20), (200, 3))
_ENTRIES = {name for names in _LISTS.values() for name in names}
# Objects of any size: the user's metadata, and the explanation of a hit's rank.
_OWN = ("metadata", "explanation")
# Reserved for the call that reads on.
_HANDLE_TOKENS = 200
_LONGEST_ARGUMENT = 200
_MOST_CHARS_PER_TOKEN = 16


class Bound:
    """Limit answers to a number of tokens."""

    def __init__(self, max_tokens: int) -> None:
        self._most = max_tokens - _HANDLE_TOKENS

    def keep(self, tool: ToolText, given: Mapping[str, Any], answer: Wire) -> Wire:
        """Shorten an answer until it fits, and add the call that reads on."""
        whole = answer
        # More cannot fit, and counting the tokens of megabytes takes seconds.
        answer = _clip(answer, self._most * _MOST_CHARS_PER_TOKEN)
        read_on = None
        for name in _LISTS.get(tool.verb, ()):
            if name in answer and not self._fits(answer):
                kept = self._first_that_fit(answer, name)
                read_on = read_on or _read_on(tool, given, answer[name], kept)
                answer = answer | {name: answer[name][:kept]}
        for text_chars, entries in _BESIDE:
            if not self._fits(answer):
                answer = _slim(answer, text_chars, entries)
        if not self._fits(answer):
            answer = self._cut(answer)
        if answer == whole:
            return whole
        read_on = _rest_of_text(answer, whole) or read_on
        return answer | {"truncated": True} | ({"read_on": read_on} if read_on else {})

    def _first_that_fit(self, answer: Wire, name: str) -> int:
        """Count how many entries fit, from the first on; at least one."""
        left = self._most - _count(answer | {name: []})
        for number, entry in enumerate(answer[name]):
            left -= _count(entry)
            if left < 0:
                return max(number, 1)
        return len(answer[name])

    def _cut(self, answer: Wire) -> Wire:
        """Cut the main texts of an answer until it fits."""
        low, high = 0, self._most * _MOST_CHARS_PER_TOKEN
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits(_clip(answer, middle)):
                low = middle
            else:
                high = middle - 1
        cut: Wire = _clip(answer, low)
        return cut

    def _fits(self, answer: Wire) -> bool:
        return _count(answer) <= self._most


def _count(value: Any) -> int:
    return len(EstimatedTokens().token_starts(json.dumps(value, ensure_ascii=False)))


def _clip(value: Any, longest: int, *, main: bool = False) -> Any:
    """Cut the main texts of an answer."""
    if isinstance(value, str):
        return value[:longest] if main else value
    if isinstance(value, list):
        return [_clip(each, longest) for each in value]
    if isinstance(value, dict):
        return {key: _clip(each, longest, main=key in _MAIN) for key, each in value.items()}
    return value


def _slim(value: Any, text_chars: int, entries: int, *, list_name: str = "") -> Any:
    """Cut secondary fields; remove metadata and explanations whole if they are too long."""
    if isinstance(value, str):
        return value[:text_chars]
    if isinstance(value, list):
        several = value if list_name in _ENTRIES else value[:entries]
        return [_slim(each, text_chars, entries) for each in several]
    if isinstance(value, dict):
        return {
            key: each if key in _MAIN else _slim(each, text_chars, entries, list_name=key)
            for key, each in value.items()
            if key not in _OWN or len(json.dumps(each, ensure_ascii=False)) <= text_chars
        }
    return value


def _read_on(
    tool: ToolText, given: Mapping[str, Any], entries: list[Wire], kept: int
) -> Wire | None:
    """Name the call that returns the entries left out."""
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


def _rest_of_text(answer: Wire, whole: Wire) -> Wire | None:
    """Name the call that returns the rest of a memory's text, if the text was cut."""
    for name in ("results", "details"):
        if answer.get(name):
            answer, whole = answer[name][0], whole[name][0]
    memory_id = answer.get("memory_id") or answer.get("id")
    cut = [name for name in _MAIN if name in answer and answer[name] != whole[name]]
    if memory_id is None or not cut:
        return None
    if "start_char" in answer:
        start = answer["start_char"] + len(answer["content"])
        return {"tool": "memory_get", "arguments": {"memory_id": memory_id, "start_char": start}}
    named = answer.get("chunk_id", memory_id)
    return {"tool": "memory_get", "arguments": {"memory_id": named}}
