"""List the readable formats of other programs, and detect the format of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from byheart.startup.dataclass_types import dataclass
from byheart.transfer import jsonl
from byheart.transfer.foreign import (
    basic_memory,
    chatgpt,
    claude_code,
    claude_export,
    codex,
    databases,
    letta,
    mem0,
    memory_graph,
    obsidian,
)
from byheart.transfer.foreign.import_items import Item
from byheart.transfer.foreign.partial_json import sketch_objects
from byheart.transfer.foreign.sources import NOTE_SUFFIX, Source

Record = Mapping[str, Any]
Read = Callable[[Source, BinaryIO], Iterator[Item]]
# How many lines or elements are read to detect the format.
_LOOKED_AT = 25
_BLANK = "\ufeff \t\r\n"


@dataclass(frozen=True, slots=True)
class Format:
    """Describe how one program's files are read."""

    name: str
    read: Read
    # Checks whether a (possibly incomplete) line, element or document is of this format.
    is_record: Callable[[Record], bool] | None = None
    # Captured agent output may contain secrets that nobody would have written down.
    is_captured: bool = False


FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format("claude-code", claude_code.read, claude_code.is_record, is_captured=True),
        Format("codex", codex.read, codex.is_record, is_captured=True),
        Format("chatgpt", chatgpt.read, chatgpt.is_record),
        Format("claude", claude_export.read, claude_export.is_record),
        Format("mem0", mem0.read, mem0.is_record),
        Format("mcp-memory", memory_graph.read, memory_graph.is_record),
        Format("letta", letta.read, letta.is_record),
        *(Format(name, databases.read) for name in databases.LAYOUTS),
        Format(basic_memory.NAME, basic_memory.read),
        Format(obsidian.NAME, obsidian.read),
    )
}
FOREIGN = tuple(FORMATS)
LINES, MARKDOWN = "jsonl", "markdown"
NOTES = (MARKDOWN, basic_memory.NAME, obsidian.NAME)


def recognise(source: Source) -> str | None:
    """Detect the format of a file by its beginning."""
    head = source.head()
    if head.startswith(databases.BEGINNING) and source.file is not None:
        layout = databases.find_layout(source.file)
        return None if layout is None else layout.name
    if source.suffix == NOTE_SUFFIX:
        return basic_memory.NAME if basic_memory.begins_note(head) else MARKDOWN
    return recognise_head(head)


def recognise_head(head: bytes) -> str | None:
    """Detect the format by the first bytes of a file."""
    records = first_records(head)
    for format_ in FORMATS.values():
        if format_.is_record and any(map(format_.is_record, records)):
            return format_.name
    is_lines = head.decode(errors="replace").lstrip(_BLANK).startswith("{")
    return LINES if is_lines and any(map(_is_own, records)) else None


def _is_own(record: Record) -> bool:
    return "content" in record or jsonl.is_header(record) or jsonl.is_record(record)


def first_records(head: bytes) -> list[Record]:
    """Parse the first objects of a file: lines, list elements or one document."""
    text = head.decode(errors="replace").lstrip(_BLANK)
    if not text.startswith(("{", "[")):
        return []
    return (_whole_lines(text) if text.startswith("{") else []) or [
        *sketch_objects(text, _LOOKED_AT)
    ]


def _whole_lines(text: str) -> list[Record]:
    """Parse the first lines that are objects; a multi-line document has none."""
    records: list[Record] = []
    for line in text.splitlines()[:_LOOKED_AT]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def is_empty(head: bytes) -> bool:
    """Check whether a file is empty: no text, or an empty document."""
    text = head.decode(errors="replace").strip(_BLANK)
    return not text or (text[0] + text[-1] in ("[]", "{}") and not text[1:-1].strip())
