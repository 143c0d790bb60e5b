"""The graph of the reference MCP memory server: entities with observations, and relations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import chain
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.upkeep.foreign.elements import elements
from byheart.upkeep.foreign.pieces import Item, Piece, Unreadable, labels
from byheart.upkeep.foreign.sources import Source
from byheart.upkeep.foreign.transcripts import Record, read_lines

# A line with a whole object; the first line of a document that is laid out for people has none.
_LINE = re.compile(rb"\s*\{[^\n]*\}\s*(?:\n|\Z)")


def is_record(line: Record) -> bool:
    """Say whether a line is of such a graph."""
    if line.get("type") == "entity":
        return "entityType" in line or "observations" in line
    return line.get("type") == "relation" and "relationType" in line


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Give each observation as a fact about its entity, and each relation."""
    if _LINE.match(source.head()):
        yield from read_lines(source, stream, _line)
        return
    for _, element in elements(stream):
        yield from _line(source.name, element if isinstance(element, dict) else {})


def _line(place: str, line: Record) -> Iterator[Item]:
    if isinstance(line.get("entities"), list):  # a graph in one document
        relations = line.get("relations")
        for each in chain(line["entities"], relations if isinstance(relations, list) else ()):
            yield from _record(place, each)
    else:
        yield from _record(place, line)


def _record(place: str, record: object) -> Iterator[Item]:
    if isinstance(record, dict) and isinstance(record.get("name"), str):
        yield from _entity(place, record)
    elif isinstance(record, dict) and {"from", "to", "relationType"} <= record.keys():
        yield _relation(place, record)
    else:
        yield Unreadable(place, InvalidInput("it is neither an entity nor a relation"))


def _entity(place: str, record: Mapping[str, Any]) -> Iterator[Item]:
    name, kind = record["name"].strip(), str(record.get("entityType") or "").strip()
    observations = record.get("observations")
    about = f"{name} ({kind})" if kind else name
    texts = [
        (f"{about}: {each.strip()}", "fact")
        for each in (observations if isinstance(observations, list) else [])
        if isinstance(each, str) and each.strip()
    ]
    for text, as_kind in texts or [(about, "entity")]:
        fields = {"content": text, "kind": as_kind, "entities": labels([name])}
        if kind:
            fields["tags"] = labels([kind])
        yield Piece(place, fields, _name(text))


def _relation(place: str, record: Mapping[str, Any]) -> Item:
    first, last = str(record["from"]), str(record["to"])
    how = str(record["relationType"]).replace("_", " ")
    text = f"{first} {how} {last}"
    fields = {"content": text, "kind": "relationship", "entities": labels([first, last])}
    return Piece(place, fields, _name(text))


def _name(text: str) -> str:
    # Nothing in the file has a name that stays: what it says is all that it is known by.
    return f"mcp-memory:{sha256(text.encode(errors='replace')).hexdigest()}"
