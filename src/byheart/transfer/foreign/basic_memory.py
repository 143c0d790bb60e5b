"""Read basic-memory vaults: notes with observations and relations as list items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, BinaryIO

from byheart.startup.late_patterns import late_pattern
from byheart.transfer.foreign.import_items import Item
from byheart.transfer.foreign.notes import read_note, tags, with_labels
from byheart.transfer.foreign.sources import Source

NAME = "basic-memory"
_BOM, _FENCE, _PERMALINK = b"\xef\xbb\xbf", b"---", b"permalink:"
_MATTER_BYTES = 4000
_OBSERVATION = late_pattern(
    r"^[ \t]*[-*][ \t]+\[(?![ xX]\])([^\[\]\n]{1,60})\][ \t]+(.+)$", re.MULTILINE
)
_RELATION = late_pattern(
    r"^[ \t]*[-*][ \t]+([^\[\]\n]{0,100}?)[ \t]*\[\[([^\[\]\n]{1,300})\]\]", re.MULTILINE
)
_OF_A_RELATION_WITHOUT_NAME = "relates_to"


def begins_note(head: bytes) -> bool:
    """Check whether a file begins like a note of basic-memory."""
    first, *lines = head[:_MATTER_BYTES].removeprefix(_BOM).splitlines() or [b""]
    if first.rstrip() != _FENCE:
        return False
    matter = takewhile(lambda line: not line.startswith(_FENCE), lines)
    return any(line.removeprefix(_PERMALINK).strip() for line in matter if _PERMALINK in line[:10])


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:  # noqa: ARG001 - read by its path
    """Yield a whole note; its list items become tags, entities and metadata."""
    return read_note(source, NAME, _refine)


def _refine(source: Source, fields: dict[str, Any], body: str) -> dict[str, Any]:  # noqa: ARG001
    observed = _OBSERVATION.findall(body)
    related = [
        (how.strip().strip('"') or _OF_A_RELATION_WITHOUT_NAME, to.partition("|")[0].strip())
        for how, to in _RELATION.findall(body)
    ]
    metadata = fields["metadata"]
    if related:
        metadata["relations"] = [{"relation": how, "to": to} for how, to in related]
    if observed:
        metadata["categories"] = list(dict.fromkeys(category for category, _ in observed))
    fields["source"] = NAME
    return with_labels(
        fields,
        tags=[tag for _, text in observed for tag in tags(text)],
        entities=[fields["title"], *(to for _, to in related)],
    )
