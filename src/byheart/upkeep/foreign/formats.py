"""Formats: those of other programs that can be read, and which one a file is of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from byheart.errors import InvalidInput
from byheart.upkeep.foreign import (
    basic_memory,
    chatgpt,
    claude_code,
    claude_export,
    codex,
    mem0,
    memory_graph,
    obsidian,
)
from byheart.upkeep.foreign.pieces import Item, Unreadable
from byheart.upkeep.foreign.sources import (
    ARCHIVE_SUFFIX,
    HEAD_BYTES,
    Replayed,
    Source,
    archived_files,
    data_files,
    note_files,
    single_file,
    streamed,
)
from byheart.upkeep.foreign.transcripts import Record

Read = Callable[[Source, BinaryIO], Iterator[Item]]
# How many lines of a file, and files of a folder, are looked at to tell what they are.
_LINES, _FILES = 25, 50


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of one program are read."""

    name: str
    read: Read
    # A line, if it is a file of lines; names that a document has, if it is one.
    is_record: Callable[[Record], bool] | None = None
    members: tuple[tuple[str, ...], ...] = ()
    is_vault: bool = False
    # What an agent did by itself may hold secrets that nobody would have written down.
    is_captured: bool = False


FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format("claude-code", claude_code.read, claude_code.is_record, is_captured=True),
        Format("codex", codex.read, codex.is_record, is_captured=True),
        Format(
            "chatgpt",
            chatgpt.read,
            members=(("mapping", "current_node"), ("mapping", "create_time")),
        ),
        Format(
            "claude",
            claude_export.read,
            members=(("chat_messages",), ("conversations_memory",), ("prompt_template", "docs")),
        ),
        Format(
            "mem0", mem0.read, mem0.is_record, members=(("memory", "id"), ("results", "memory"))
        ),
        Format(
            "mcp-memory",
            memory_graph.read,
            memory_graph.is_record,
            members=(("entities", "observations"), ("entities", "relations")),
        ),
        Format("basic-memory", basic_memory.read, is_vault=True),
        Format("obsidian", obsidian.read, is_vault=True),
    )
}
FOREIGN = tuple(FORMATS)


@dataclass(frozen=True, slots=True)
class Found:
    """What is behind a path: the format, its files, and how many others were left aside."""

    format: Format
    sources: tuple[Source, ...]
    others: int = 0

    @property
    def size(self) -> int:
        """Give the bytes of all its files."""
        return sum(source.size for source in self.sources)

    def readings(self) -> Iterator[tuple[Source, Reading]]:
        """Give the files one after another, each ready to be read."""
        for source in self.sources:
            yield source, Reading(self.format, source)


class Reading:
    """One file while it is read: what it holds, and how far it has come."""

    def __init__(self, format_: Format, source: Source) -> None:
        self._format = format_
        self._source = source
        self._stream: BinaryIO | None = None

    @property
    def position(self) -> int:
        """Give the bytes that were read so far."""
        return 0 if self._stream is None or self._stream.closed else self._stream.tell()

    def __iter__(self) -> Iterator[Item]:
        try:
            with self._source.open() as self._stream:
                yield from self._format.read(self._source, self._stream)
        except InvalidInput as error:
            yield Unreadable(self._source.name, error)
        except OSError as error:
            reason = InvalidInput(f"it cannot be read: {error.strerror}")
            yield Unreadable(self._source.name, reason)


def find_in_stream(stream: BinaryIO, label: str, name: str | None) -> Found | BinaryIO:
    """Look at how a stream begins; if it is of no other program's format, give it back whole."""
    head = stream.read(HEAD_BYTES)
    whole = Replayed(head, stream, label).buffered()
    chosen = name or recognise_head(head)
    if chosen is None:
        return whole
    if FORMATS[chosen].is_vault:
        raise InvalidInput(f"{chosen} is imported from a folder", "give its path")
    return Found(FORMATS[chosen], (streamed(whole, label, head),))


def find_sources(path: Path, name: str | None) -> Found | None:
    """Find the files that a path means; `None` if they are of no other program's format."""
    if path.is_dir():
        return _in_folder(path, name)
    if path.suffix.lower() == ARCHIVE_SUFFIX:
        return _among(list(archived_files(path)), name, str(path))
    if not path.is_file():  # none at all, or a pipe, which can be read only once
        return None
    source = single_file(path)
    chosen = name or recognise(source)
    return None if chosen is None else Found(FORMATS[chosen], (source,))


def _in_folder(folder: Path, name: str | None) -> Found | None:
    if name is None and (folder / obsidian.FOLDER).is_dir():
        name = obsidian.NAME
    if name is None or not FORMATS[name].is_vault:
        found = _among(list(data_files(folder)), name, str(folder), must=name is not None)
        if found is not None:
            notes = sum(1 for _ in note_files(folder))
            if name is None and found.format.members and notes > len(found.sources):
                raise InvalidInput(
                    f"{folder} holds {notes:,} notes, and data that looks like {found.format.name}",
                    f"say what to import with --format markdown or --format {found.format.name}",
                )
            return replace(found, others=found.others + notes)
    if name is None and any(map(_is_basic_memory, islice(note_files(folder), _FILES))):
        name = basic_memory.NAME
    return None if name is None else Found(FORMATS[name], tuple(note_files(folder)))


def _among(
    sources: list[Source], name: str | None, where: str, *, must: bool = True
) -> Found | None:
    """Pick the files of one format; without a name, of the first that any is of."""
    known: dict[str, str | None] = {}
    broken: dict[str, InvalidInput] = {}
    for source in sources:
        try:
            known[source.name] = recognise(source)
        except InvalidInput as error:
            broken[source.name] = error
    chosen = name or next(filter(None, known.values()), None)
    own = tuple(source for source in sources if known.get(source.name) == chosen)
    if chosen is None or not own:
        if not must:
            return None
        if broken:
            raise next(iter(broken.values()))
        raise InvalidInput(
            f"{where} holds nothing of the format {name}"
            if name
            else f"{where} is of no known format",
            f"formats that can be imported: jsonl, markdown, {', '.join(FOREIGN)}",
        )
    # What is broken may have been of it: reading it says so.
    own += tuple(source for source in sources if source.name in broken)
    return Found(FORMATS[chosen], own, len(sources) - len(own))


def _is_basic_memory(source: Source) -> bool:
    return basic_memory.begins_note(source.head())


def recognise(source: Source) -> str | None:
    """Tell the format of a file by how it begins."""
    head = source.head()
    if source.path.suffix.lower() == ".md":
        return basic_memory.NAME if basic_memory.begins_note(head) else None
    return recognise_head(head)


def recognise_head(head: bytes) -> str | None:
    """Tell a format by the first bytes of a file."""
    text = head.decode(errors="replace").lstrip("\ufeff \t\r\n")
    if not text.startswith(("{", "[")):
        return None
    records = _records(text) if text.startswith("{") else []
    for format_ in FORMATS.values():
        if format_.is_record and any(map(format_.is_record, records)):
            return format_.name
    is_list_of_lines = len(records) > 1
    for format_ in FORMATS.values():
        if not is_list_of_lines and any(_has(text, each) for each in format_.members):
            return format_.name
    return None


def _records(text: str) -> list[Record]:
    """Read the first lines that are objects; a document of many lines has none."""
    records: list[Record] = []
    for line in text.splitlines()[:_LINES]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def _has(text: str, names: tuple[str, ...]) -> bool:
    """Say whether all these names stand before values; one inside a text has its quotes escaped."""
    return all(re.search(rf'(?<!\\)"{name}"\s*:', text) for name in names)
