"""Read Obsidian vaults: notes with links, tags, aliases, and daily notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from byheart.transfer.foreign.import_items import Item
from byheart.transfer.foreign.notes import links, read_note, tags, with_labels
from byheart.transfer.foreign.sources import Source

NAME, FOLDER = "obsidian", ".obsidian"


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:  # noqa: ARG001 - read by its path
    """Yield a whole note; its links become its entities."""
    return read_note(source, NAME, _refine)


def _refine(source: Source, fields: dict[str, Any], body: str) -> dict[str, Any]:
    metadata = fields["metadata"]
    aliases = metadata.get("aliases") or metadata.pop("alias", None)
    named = aliases if isinstance(aliases, list) else [aliases] if aliases else []
    if named:
        metadata["aliases"] = [str(each) for each in named]
    linked = [name.rpartition("/")[2] for name in links(body)]
    fields["source"] = NAME
    return with_labels(
        fields, tags=tags(body), entities=[source.path.stem, *map(str, named), *linked]
    )
