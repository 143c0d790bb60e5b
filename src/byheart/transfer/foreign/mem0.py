"""Read memories of mem0: the answer of `get_all`, or an export of the same shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.transfer.foreign.import_items import (
    Item,
    Piece,
    label,
    labels,
    relationship,
    without_nothing,
)
from byheart.transfer.foreign.json_elements import read_elements
from byheart.transfer.foreign.sources import Source

_LISTS, _RELATIONS = ("results", "memories", "items"), "relations"
_TEXTS = ("memory", "content", "text", "data")
# The names that become fields, and those that are useless elsewhere.
_KNOWN = (*_TEXTS, "id", "metadata", "categories", "created_at", "run_id", "agent_id")
_DROPPED = ("hash", "score", "expiration_date", "updated_at", "embedding", "vector")


def is_record(held: Mapping[str, Any]) -> bool:
    """Check whether this is a mem0 memory, or a document that contains some."""
    listed = (held.get(name) for name in _LISTS)
    firsts = (each[0] for each in listed if isinstance(each, list) and each)
    return (isinstance(held.get("memory"), str) and "id" in held) or any(
        isinstance(first, dict) and isinstance(first.get("memory"), str) for first in firsts
    )


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Yield each memory as a fact, and each relation of the graph."""
    for place, held, within in read_elements(source, stream, "memory", (*_LISTS, _RELATIONS)):
        if isinstance(held, InvalidInput):
            yield Item(place, held)
        elif within == _RELATIONS:
            yield Item(place, _relation(held))
        else:
            yield Item(place, _memory(held))


def _memory(held: object) -> Piece | InvalidInput:
    text = _text(held) if isinstance(held, dict) else None
    if not isinstance(held, dict) or text is None:
        return InvalidInput("it is no memory: it has no text")
    extra = held.get("metadata")
    others = {
        name: each for name, each in held.items() if name not in (*_KNOWN, *_DROPPED) and each
    }
    fields = without_nothing(
        content=text,
        kind="fact",
        agent_id=label(held.get("agent_id")),
        session_id=label(held.get("run_id")),
        tags=labels(_listed(held.get("categories"))),
        expires_at=held.get("expiration_date"),
        metadata={**(extra if isinstance(extra, dict) else {}), **others},
    )
    name = label(held.get("id"))
    return Piece(fields, name and label(f"mem0:{name}"), held.get("created_at"))


def _relation(held: object) -> Piece | InvalidInput:
    """Parse an edge of the graph: mem0 has used several names for its ends."""
    known = held if isinstance(held, dict) else {}
    first, last = known.get("source"), known.get("target") or known.get("destination")
    how = known.get("relationship") or known.get("relation")
    if not (isinstance(first, str) and isinstance(how, str) and isinstance(last, str)):
        return InvalidInput("it is no relation: it has no source, relationship and target")
    return relationship("mem0", first, how, last)


def _text(held: Mapping[str, Any]) -> str | None:
    texts = (held.get(name) for name in _TEXTS)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]
