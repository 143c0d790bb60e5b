"""Find the files that a path means, and the format of each."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from byheart.errors import Hint, InvalidInput, Option, join_hints
from byheart.startup.dataclass_types import dataclass
from byheart.transfer import jsonl
from byheart.transfer.decoding import MARK_BYTES, as_utf8
from byheart.transfer.foreign import basic_memory, databases, obsidian
from byheart.transfer.foreign.formats import (
    FOREIGN,
    FORMATS,
    LINES,
    MARKDOWN,
    NOTES,
    Format,
    first_records,
    is_empty,
    recognise,
    recognise_head,
)
from byheart.transfer.foreign.import_items import Item
from byheart.transfer.foreign.sources import (
    ARCHIVE_SUFFIX,
    DATA_SUFFIXES,
    HEAD_BYTES,
    NOTE_SUFFIX,
    Archives,
    Replayed,
    Source,
    archived_files,
    begins_archive,
    files_of,
    is_archive,
    note_files,
    single_file,
    streamed,
)

# How many notes of a folder are read to detect their format.
_NOTES_LOOKED_AT = 50
_GZIP = b"\x1f\x8b"
_SHOWN_NAMES = 6
_DATABASES = ", ".join(databases.LAYOUTS)
_KNOWN = f"formats that can be imported: {LINES}, {MARKDOWN}, {', '.join(FOREIGN)}"

Part = tuple[Format, Source]
# The name of a file that cannot be opened, and the error.
Broken = tuple[str, InvalidInput]


@dataclass(frozen=True, slots=True)
class Found:
    """Hold the files behind a path with their formats, and those left out."""

    parts: tuple[Part, ...]
    # Our own exports among the files.
    exports: tuple[Source, ...] = ()
    broken: tuple[Broken, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    # Whether the files themselves show this format, rather than only the caller's claim.
    is_certain: bool = True

    @property
    def size(self) -> int:
        """Return the total size of the files in bytes."""
        sources = (*self.exports, *(source for _, source in self.parts))
        return sum(source.size for source in sources)

    @property
    def files(self) -> dict[str, int]:
        """Count the files of each format."""
        names = [LINES] * len(self.exports) + [format_.name for format_, _ in self.parts]
        return dict(Counter(names))


class Reading:
    """Read one file, and report the position."""

    def __init__(self, format_: Format, source: Source) -> None:
        self._format = format_
        self._source = source
        self._stream: BinaryIO | None = None

    @property
    def position(self) -> int:
        """Return the number of bytes read so far."""
        return 0 if self._stream is None or self._stream.closed else self._stream.tell()

    def __iter__(self) -> Iterator[Item]:
        try:
            with self._source.open() as self._stream:
                yield from self._format.read(self._source, self._stream)
        except InvalidInput as error:
            yield Item(self._source.name, error)
        except OSError as error:
            reason = InvalidInput(f"it cannot be read: {error.strerror}")
            yield Item(self._source.name, reason)


# --- One file -------------------------------------------------------------------------------------


def find_in_stream(stream: BinaryIO, label: str, name: str | None) -> Found | BinaryIO:
    """Detect the format of a stream; if it is not foreign, return the complete stream."""
    mark = stream.read(MARK_BYTES)
    text = as_utf8(Replayed(mark, stream, label).buffered(), mark)
    head = text.read(HEAD_BYTES)
    whole = Replayed(head, text, label).buffered()
    if begins_archive(head):
        raise InvalidInput(f"{label} is an archive", "write it to a file and give its path")
    if name in NOTES:
        raise InvalidInput(f"{name} is imported from a folder or file", "give its path")
    return _alone(streamed(whole, label, head), name) or whole


def find_sources(path: Path, name: str | None) -> Found | None:
    """Find the files that a path means; `None` for our own lines or Markdown."""
    if path.is_dir():
        return _in_folder(path, name)
    if not path.is_file():  # opening the path will raise the error
        return None
    if is_archive(path):
        return _in_archive(path, name)
    return _alone(single_file(path), name)


def _alone(source: Source, name: str | None) -> Found | None:
    head = source.head()
    looks_like = recognise(source)
    chosen = name or looks_like
    if looks_like is None:
        _refuse_strangers(head, source.name)
    if chosen is None:
        raise _unknown(source.name, head)
    if looks_like not in (None, chosen) and not {looks_like, chosen} <= {*NOTES}:
        raise InvalidInput(
            f"{source.name} is not of the format {chosen}: it looks like {looks_like}",
            Hint("leave the format out, or give ", Option("format", looks_like)),
        )
    if chosen not in FORMATS:
        return None
    return Found(((FORMATS[chosen], source),), is_certain=chosen == looks_like or chosen in NOTES)


def _refuse_strangers(head: bytes, name: str) -> None:
    """Explain what to do with known files that can never be imported."""
    if head.startswith(databases.BEGINNING):
        raise InvalidInput(
            f"{name} is a store, or a database of a program that is not known",
            f"open it as a store, or import an export of it; databases of {_DATABASES} are known",
        )
    if head.startswith(_GZIP):
        raise InvalidInput(
            f"{name} is packed with gzip", "unpack it first, for example with gzip -d"
        )
    if b"\0" in head:
        raise InvalidInput(f"{name} is not text: it has bytes of zero", _KNOWN)


def _unknown(name: str, head: bytes) -> InvalidInput:
    if is_empty(head):
        return InvalidInput(f"{name} is empty: there is nothing to import", "export it again")
    names = [*next(iter(first_records(head)), ())]
    looks_like = "there is no JSON object in it"
    if names:
        more = ", …" if len(names) > _SHOWN_NAMES else ""
        shown = ", ".join(f'"{name}"' for name in names[:_SHOWN_NAMES])
        looks_like = f"it is JSON with the key{'s'[: len(names) > 1]} {shown}{more}"
    return InvalidInput(
        f"{name} is of no known format: {looks_like}",
        f"{_KNOWN}; lines of JSON need at least a content",
    )


def nothing_of(format_: Format, source: Source) -> InvalidInput:
    """Build the error for a file that contains nothing in the stated format."""
    if is_empty(source.head()):
        return InvalidInput("it is empty: there is nothing to import", "export it again")
    return InvalidInput(f"nothing in it is of the format {format_.name}", _KNOWN)


# --- Many files -----------------------------------------------------------------------------------


class _Sorted(NamedTuple):
    """Group the files of a folder or archive by format."""

    parts: list[Part]
    exports: list[Source]
    notes: list[Source]
    broken: list[Broken]
    left_out: Counter[str]

    def describe(self) -> str:
        """Describe the files that were found."""
        files = Counter(format_.name for format_, _ in self.parts)
        files.update({LINES: len(self.exports), MARKDOWN: len(self.notes)})
        told = (f"{number:,} of {name}" for name, number in files.items() if number)
        return ", ".join(told)


def _sort(sources: Iterable[Source]) -> _Sorted:
    found = _Sorted([], [], [], [], Counter())
    for source in sources:
        if source.suffix == NOTE_SUFFIX:
            found.notes.append(source)
        elif source.suffix in databases.SUFFIXES:
            _put_database(source, found)
        elif source.suffix not in (*DATA_SUFFIXES, ARCHIVE_SUFFIX):
            found.left_out[source.what] += 1
        else:
            try:
                _put(source, source.head(), found)
            except InvalidInput as error:
                found.broken.append((source.name, error))
    return found


def _put_database(source: Source, found: _Sorted) -> None:
    with contextlib.suppress(InvalidInput):  # a file with such a name need not be a database
        if name := recognise(source):
            found.parts.append((FORMATS[name], source))
            return
    found.left_out[source.what] += 1


def _put(source: Source, head: bytes, found: _Sorted) -> None:
    name = recognise_head(head)
    if name is not None and name in FORMATS:
        found.parts.append((FORMATS[name], source))
    elif any(map(jsonl.begins_export, first_records(head)[:1])):
        found.exports.append(source)
    else:
        found.left_out["empty file" if is_empty(head) else source.what] += 1


def _in_archive(path: Path, name: str | None) -> Found:
    found = _sort(archived_files(path, Archives()))
    if found.notes and not (found.parts or found.exports):
        raise InvalidInput(f"{path} is a packed folder of notes", "unpack it and import the folder")
    return _pick(found, name, path)


def _in_folder(folder: Path, name: str | None) -> Found | None:
    if name == LINES:
        raise InvalidInput(f"{folder} is a folder", "name the file in it that is to be imported")
    if name is None and (folder / obsidian.FOLDER).is_dir():
        name = obsidian.NAME
    if name in NOTES:
        return _in_vault(folder, name)
    if name is not None:
        return _pick(_sort(files_of(folder)), name, folder)
    vaults = _find_vaults(folder)
    found = _sort(files_of(folder, vaults))
    if found.notes and not (vaults or found.parts or found.exports):
        is_basic_memory = any(map(_is_basic_memory, found.notes[:_NOTES_LOOKED_AT]))
        return _in_vault(folder, basic_memory.NAME if is_basic_memory else MARKDOWN)
    for vault in vaults:
        _add_vault(found, FORMATS[obsidian.NAME], vault, folder)
    loose = _add_basic_memory(found, folder)
    is_documents = any(not format_.is_captured for format_, _ in found.parts)
    if is_documents and len(loose) > len(found.parts):
        names = dict.fromkeys(format_.name for format_, _ in found.parts)
        raise InvalidInput(
            f"{folder} holds {len(loose):,} notes, and data that looks like {', '.join(names)}",
            Hint(
                "say what to import with ",
                join_hints(" or ", (Hint(Option("format", each)) for each in (MARKDOWN, *names)))
                or "",
                ", or import its folders one by one",
            ),
        )
    return _pick(found._replace(notes=loose), None, folder)


def _pick(found: _Sorted, name: str | None, where: Path) -> Found:
    """Choose the files of one format, or all recognized files without a name."""
    chosen = [part for part in found.parts if name in (None, part[0].name)]
    exports = found.exports if name is None else []
    if not chosen and not exports:
        if found.broken:
            raise found.broken[0][1]
        if name is None:
            raise InvalidInput(f"{where} holds nothing of a known format", _KNOWN)
        held = found.describe()
        raise InvalidInput(
            f"{where} holds nothing of the format {name}", f"its files: {held}" if held else _KNOWN
        )
    left_out = found.left_out + Counter(note.what for note in found.notes)
    others = len(found.parts) - len(chosen) + len(found.exports) - len(exports)
    left_out += Counter({"file of another format": others})
    return Found(tuple(chosen), tuple(exports), tuple(found.broken), left_out)


# --- Notes ----------------------------------------------------------------------------------------


def _in_vault(folder: Path, name: str) -> Found | None:
    notes = list(note_files(folder))
    if not notes:
        raise InvalidInput(f"{folder} holds no Markdown files", "check the path")
    if name not in FORMATS:
        return None
    others = (each for each in files_of(folder, unpack=False) if each.suffix != NOTE_SUFFIX)
    parts = tuple((FORMATS[name], note) for note in notes)
    return Found(parts, left_out=Counter(each.what for each in others))


def _find_vaults(folder: Path) -> list[Path]:
    """Find the Obsidian vaults in a folder, without nested ones."""
    vaults: list[Path] = []
    for marker in sorted(folder.rglob(obsidian.FOLDER)):
        hidden = any(part.startswith(".") for part in marker.parent.relative_to(folder).parts)
        nested = any(parent in vaults for parent in marker.parents)
        if marker.is_dir() and not hidden and not nested:
            vaults.append(marker.parent)
    return vaults


def _add_vault(found: _Sorted, format_: Format, vault: Path, folder: Path) -> None:
    """Add the notes of a vault; their ids use the vault's path, their names the folder's."""
    for source in files_of(vault, unpack=False):
        if source.suffix != NOTE_SUFFIX:
            found.left_out[source.what] += 1
    for note in note_files(vault):
        name = (vault.relative_to(folder) / note.path).as_posix()
        found.parts.append((format_, replace(note, name=name)))


def _add_basic_memory(found: _Sorted, folder: Path) -> list[Source]:
    """Add the notes of folders that basic-memory wrote; return the other notes."""
    by_folder: dict[str, list[Source]] = {}
    for note in found.notes:
        by_folder.setdefault(note.path.parts[0] if note.path.parent.name else "", []).append(note)
    loose = []
    for name, notes in by_folder.items():
        if not any(map(_is_basic_memory, notes[:_NOTES_LOOKED_AT])):
            loose += notes
            continue
        for note in notes:
            path, root = note.path.relative_to(name), folder / name
            found.parts.append((FORMATS[basic_memory.NAME], replace(note, path=path, folder=root)))
    return loose


def _is_basic_memory(source: Source) -> bool:
    try:
        return basic_memory.begins_note(source.head())
    except InvalidInput:  # the error is reported when the file is read
        return False
