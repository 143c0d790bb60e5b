"""Read the graph of the reference MCP memory server: entities, observations, relations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.transfer.foreign.import_items import (
    Item,
    Omission,
    Piece,
    labels,
    name_by_text,
    relationship,
    word,
)
from byheart.transfer.foreign.json_elements import read_elements
from byheart.transfer.foreign.sources import Source

NAME = "mcp-memory"
_LISTS = ("entities", "relations")
_ENDS = ("from", "relationType", "to")


def is_record(held: Mapping[str, Any]) -> bool:
    """Check whether this is a line of a memory graph, or a whole graph in one document."""
    if held.get("type") == "entity":
        return "entityType" in held or "observations" in held
    if held.get("type") == "relation":
        return "relationType" in held
    entities, relations = (held.get(name) for name in _LISTS)
    first = entities[0] if isinstance(entities, list) and entities else {}
    is_entity = isinstance(first, dict) and "observations" in first
    return isinstance(entities, list) and (is_entity or isinstance(relations, list))


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Yield each observation as a fact about its entity, and each relation."""
    for place, record, _ in read_elements(source, stream, "element", _LISTS):
        for held in _read_record(record):
            yield Item(place, held)


def _read_record(record: object) -> Iterator[Piece | Omission | InvalidInput]:
    if isinstance(record, InvalidInput):
        yield record
    elif isinstance(record, dict) and isinstance(record.get("name"), str):
        yield from _entity(record)
    elif isinstance(record, dict) and all(isinstance(record.get(end), str) for end in _ENDS):
        yield relationship(NAME, *(record[end] for end in _ENDS))
    else:
        yield InvalidInput("it is neither an entity nor a relation")


def _entity(record: Mapping[str, Any]) -> Iterator[Piece | Omission]:
    name, kind = record["name"].strip(), word(record.get("entityType")).strip()
    observations = record.get("observations")
    about = f"{name} ({kind})" if kind else name
    texts = []
    for each in observations if isinstance(observations, list) else []:
        if isinstance(each, str) and each.strip():
            texts.append((f"{about}: {each.strip()}", "fact"))
        else:
            yield Omission("observation without text")
    for text, as_kind in texts or [(about, "entity")]:
        fields = {"content": text, "kind": as_kind, "entities": labels([name])}
        if kind:
            fields["tags"] = labels([kind])
        yield Piece(fields, name_by_text(NAME, text))
