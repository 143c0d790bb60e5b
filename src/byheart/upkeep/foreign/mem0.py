"""Memories of mem0: what `get_all` answers, or an export of the same shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.upkeep.foreign.elements import elements
from byheart.upkeep.foreign.pieces import Item, Piece, Unreadable, label, labels, without_nothing
from byheart.upkeep.foreign.sources import Source

_LISTS = ("results", "memories", "items")
_TEXTS = ("memory", "content", "text", "data")
_KNOWN = (*_TEXTS, "id", "hash", "score", "metadata", "categories", "created_at", "run_id")


def is_record(line: Mapping[str, Any]) -> bool:
    """Say whether a line is such a memory."""
    return isinstance(line.get("memory"), str) and "id" in line


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Give each memory as a fact."""
    number = 0
    for _, element in elements(stream):
        lists = [element[name] for name in _LISTS if _holds_list(element, name)]
        for each in lists[0] if lists else [element]:
            number += 1
            yield _memory(f"{source.name} memory {number}", each)


def _holds_list(element: object, name: str) -> bool:
    return isinstance(element, dict) and isinstance(element.get(name), list)


def _memory(place: str, held: object) -> Item:
    text = _text(held) if isinstance(held, dict) else None
    if not isinstance(held, dict) or text is None:
        return Unreadable(place, InvalidInput("it is no memory: it has no text"))
    extra = held.get("metadata")
    others = {name: each for name, each in held.items() if name not in _KNOWN and each}
    fields = without_nothing(
        content=text,
        kind="fact",
        agent_id=label(held.get("agent_id")),
        session_id=label(held.get("run_id")),
        tags=labels(_listed(held.get("categories"))),
        expires_at=held.get("expiration_date"),
        metadata={**(extra if isinstance(extra, dict) else {}), **_plain(others)},
    )
    name = label(held.get("id"))
    return Piece(place, fields, name and f"mem0:{name}"[:200], held.get("created_at"))


def _text(held: Mapping[str, Any]) -> str | None:
    texts = (held.get(name) for name in _TEXTS)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _plain(others: Mapping[str, Any]) -> dict[str, Any]:
    dropped = ("expiration_date", "agent_id", "updated_at", "embedding", "vector")
    return {name: each for name, each in others.items() if name not in dropped}
