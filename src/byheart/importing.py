"""Importing: from a file or folder to memories, batch by batch, and what cannot be read by name.

An export is loaded as it is; lines with the fields of `save`, Markdown files and what the files of
other programs hold (`upkeep/foreign`) are saved like anything else. Whatever stops an import,
running it again goes on without doing anything twice. The search index is left to the next search:
publishing it takes more memory than all the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from byheart.adopting import Adopter, CheckTurn, Tally
from byheart.contracts import DedupKey, EntityRecord, MemoryRecord, Record, Storage
from byheart.errors import ByheartError, Conflict, InvalidInput, NotFound, VersionConflict
from byheart.model import (
    HistoryEntry,
    Imported,
    Memory,
    SaveResult,
    Skipped,
    TransferProgress,
    to_wire,
)
from byheart.saving import Saver, SaveRequest, check_request
from byheart.settings import Settings
from byheart.upkeep import foreign, jsonl, vault
from byheart.upkeep.exporting import FORMATS
from byheart.upkeep.lines import parse_object

OnError = Literal["stop", "skip"]
ON_ERROR: tuple[OnError, ...] = ("stop", "skip")
IMPORT_FORMATS = (*FORMATS, *foreign.FOREIGN)
OnProgress = Callable[[TransferProgress], None]
# `Changer.update`: id, space, fields, the version they were compared with, who.
Update = Callable[[str, str, Mapping[str, Any], int | None, str], SaveResult]
# How much one transaction takes in: large enough to be fast, small enough to lose only seconds.
_BATCH_MEMORIES, _BATCH_CHARS = 64, 1_000_000
# What a memory takes over from where it comes from, whenever that changes.
_FOLLOWED = ("content", "title", "tags", "entities", "metadata")
_SQLITE = b"SQLite format 3\0"

# Where a line stands, and the object on it or what is wrong with it.
_Line = tuple[str, dict[str, Any] | InvalidInput]
_Item = TypeVar("_Item", bound=Record | SaveRequest)
# Turns kept in one go.
KeepTurns = Callable[[Sequence[SaveRequest]], list[SaveResult]]


@dataclass(slots=True)
class _Counts:
    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def memories(self) -> int:
        return self.imported + self.updated + self.unchanged + self.refused


class Importer:
    """Take in what was exported, here or elsewhere."""

    def __init__(
        self,
        storage: Storage,
        saver: Saver,
        update: Update,
        settings: Settings,
        *,
        check_turn: CheckTurn,
        keep_turns: KeepTurns,
        force: bool,
        on_error: OnError,
        on_progress: OnProgress | None,
        dry_run: bool = False,
    ) -> None:
        self._storage = storage
        self._saver = saver
        self._update = update
        self._settings = settings
        self._check_turn = check_turn
        self._keep_turns = keep_turns
        self._force = force
        self._on_error = on_error
        self._on_progress = on_progress
        self._dry_run = dry_run
        self._counts = _Counts()
        self._tally = Tally()
        self._met: set[DedupKey] = set()
        self._done = 0
        self._total: int | None = None
        self._files_by_id: dict[str, str] = {}

    @property
    def progress(self) -> TransferProgress:
        """Say how far it has come."""
        return TransferProgress(self._counts.memories, self._done, self._total)

    def run(self, path_or_file: str | Path | BinaryIO, format: str | None) -> Imported:
        """Take everything in and count what became of it."""
        path = Path(path_or_file).expanduser() if isinstance(path_or_file, str | Path) else None
        chosen = format or ("jsonl" if path is None else _guess(path))
        if format is None or format in foreign.FOREIGN:
            found = _find_foreign(path_or_file, format)
            if isinstance(found, foreign.Found):
                self._import_foreign(found)
                return self._result(found.format.name)
            path_or_file = found  # a stream of which the beginning was looked at
        if path is not None and chosen == "markdown":
            self._import_vault(path)
        elif chosen == "markdown":
            raise InvalidInput("Markdown is imported from a folder or file", "give its path")
        else:
            with _opened(path_or_file) as (stream, name):
                self._total = _size(stream)
                self._import_lines(stream, name)
        return self._result(chosen)

    def _result(self, format: str) -> Imported:
        counts, tally = self._counts, self._tally
        return Imported(
            counts.imported,
            counts.updated,
            counts.unchanged,
            counts.refused,
            tuple(counts.skipped),
            pending_vectors=0,
            degraded=None,
            format=format,
            dry_run=self._dry_run,
            sessions=len(tally.sessions),
            turns=tally.turns,
            memories=tally.memories,
            redacted=tally.redacted,
            shortened=tally.shortened,
            left_out=dict(tally.left_out),
        )

    # --- Files of other programs --------------------------------------------------------------

    def _import_foreign(self, found: foreign.Found) -> None:
        adopter = Adopter(found.format, self._settings, self._check_turn)
        self._tally = adopter.tally
        self._tally.left_out.update({"other file": found.others} if found.others else {})
        self._total = found.size or None
        before = 0
        for source, reading in found.readings():
            lines = self._items(reading, before)
            self._gather(lines, partial(self._take_item, adopter, source), self._adopt)
            before += source.size
            self._done = before
            self._report()

    def _items(self, reading: foreign.Reading, before: int) -> Iterator[_Line]:
        for item in reading:
            self._done = before + reading.position
            yield item.place, {"item": item}

    def _take_item(
        self, adopter: Adopter, source: foreign.Source, line: dict[str, Any]
    ) -> SaveRequest | None:
        item: foreign.Item = line["item"]
        if isinstance(item, foreign.Unreadable):
            raise item.error
        if isinstance(item, foreign.LeftOut):
            adopter.leave_out(item)
            return None
        if isinstance(item, foreign.Exported):
            assert source.folder is not None, "it stands in one"
            return self._take_file(item.path, source.folder)
        key = adopter.key_of_output(item)
        if key is not None and self._storage.known([key]):
            # It is not looked through for secrets again: that takes ten times as long.
            adopter.pass_over(key)
            self._counts.unchanged += 1
            return None
        return adopter.adopt(item)

    def _adopt(self, requests: list[SaveRequest]) -> None:
        """Keep what is new, and let what is known by its name follow what it was made from."""
        distinct: dict[DedupKey, SaveRequest] = {}
        for request in requests:
            distinct.setdefault(request.key, request)
        keys = list(distinct)
        known, erased = self._storage.known(keys), self._erased(keys)
        self._counts.unchanged += len(requests) - len(distinct)
        fresh = []
        for request in distinct.values():
            if request.key in known:
                self._follow(request, known[request.key])
            elif request.key in erased:
                self._counts.refused += 1
            else:
                fresh.append(request)
        if self._dry_run:
            new = {request.key for request in fresh} - self._met
            self._met |= new
            self._counts.imported += len(new)
            self._counts.unchanged += len(fresh) - len(new)
        else:
            self._keep_new(fresh)
        self._report()

    def _keep_new(self, requests: list[SaveRequest]) -> None:
        turns = [request for request in requests if request.role is not None]
        others = [request for request in requests if request.role is None]
        created = self._keep_new_turns(turns)
        results = self._saver.save(others) if others else []
        created += sum(result.status == "created" for result in results)
        self._counts.imported += created
        self._counts.unchanged += len(requests) - created

    def _keep_new_turns(self, turns: list[SaveRequest]) -> int:
        """Keep turns and count them, whatever others log meanwhile."""
        created = 0
        while turns:
            try:
                results = self._keep_turns(turns)
            except Conflict:
                # One of them was logged meanwhile in other words: those before it are kept.
                known = self._storage.known([turn.key for turn in turns])
                left = [turn for turn in turns if turn.key not in known]
                if len(left) == len(turns):
                    raise
                created += sum(
                    not turn.contradicts(known[turn.key]) for turn in turns if turn.key in known
                )
                turns = left
            else:
                return created + sum(result.status == "created" for result in results)
        return created

    def _follow(self, request: SaveRequest, held: SaveResult) -> None:
        """Change a memory as what it was made from has changed, unless it was changed here too."""
        who = f"import of {request.source}"
        fields = {} if request.role is not None else self._differing(request, held, who)
        try:
            if fields and not self._dry_run:
                self._update(held.memory_id, request.space, fields, held.version, who)
        except VersionConflict:  # it was changed here a moment ago
            fields = {}
        except (Conflict, InvalidInput, NotFound) as error:
            self._complain(request.client_id or held.memory_id, error)
            return
        self._counts.updated += bool(fields)
        self._counts.unchanged += not fields

    def _differing(self, request: SaveRequest, held: SaveResult, who: str) -> dict[str, Any]:
        """Give what is other where a memory comes from, unless it was changed here too."""
        with self._storage.reading() as reader:
            memory = reader.memory(held.memory_id, request.space)
            if memory is None:  # it was forgotten
                return {}
            compared = [name for name in _FOLLOWED if getattr(request, name) is not None]
            fields = {
                name: getattr(request, name)
                for name in compared
                if _differs(getattr(memory, name), getattr(request, name))
            }
            entries = reader.history(held.memory_id, request.space) if fields else []
        changes = [entry for entry in entries if entry.changes]
        is_as_imported = not changes or changes[-1].who == who or self._force
        return fields if is_as_imported else {}

    # --- Lines --------------------------------------------------------------------------------

    def _import_lines(self, stream: BinaryIO, name: str) -> None:
        lines = self._lines(stream, name)
        first = next(lines, None)
        if first is None:
            return
        place, item = first
        if isinstance(item, InvalidInput) or not jsonl.is_header(item):
            self._gather(chain([first], lines), self._check, self._save)
            return
        try:
            header = jsonl.read_header(item)
        except InvalidInput as error:
            # Without it nothing that follows can be understood.
            error.message = f"{place}: {error.message}"
            raise
        self._import_records(lines, header, name)

    def _lines(self, stream: BinaryIO, name: str) -> Iterator[_Line]:
        for number, line in enumerate(stream, start=1):
            self._done += len(line)
            if number == 1 and line.startswith(_SQLITE):
                raise InvalidInput(
                    f"{name} is a store, not an export", f"look into it with: byheart --db {name}"
                )
            if line.strip():
                place = f"{name} line {number}"
                try:
                    yield place, parse_object(line, "it")
                except InvalidInput as error:
                    yield place, error

    def _gather(
        self,
        lines: Iterable[_Line],
        read: Callable[[dict[str, Any]], _Item | None],
        keep: Callable[[list[_Item]], None],
    ) -> None:
        """Read line by line and keep batch by batch; what came before a bad line is kept first."""
        batch: list[_Item] = []
        chars = 0
        for place, line in lines:
            try:
                if isinstance(line, InvalidInput):
                    raise line
                item = read(line)
            except (InvalidInput, Conflict, NotFound) as error:
                keep(batch)
                batch, chars = [], 0
                self._complain(place, error)
                continue
            if item is not None:
                batch.append(item)
                chars += _chars(item)
            if len(batch) >= _BATCH_MEMORIES or chars >= _BATCH_CHARS:
                keep(batch)
                batch, chars = [], 0
        keep(batch)

    def _complain(self, place: str, error: ByheartError) -> None:
        if self._on_error == "skip":
            self._counts.skipped.append(Skipped(place, error.message))
            return
        count = self._counts.imported + self._counts.updated
        kept = f"what came before it is kept ({count:,} new or changed): " if count else ""
        advice = f"{kept}correct it and run this again, or leave it out with on_error='skip'"
        error.message = f"{place}: {error.message}"
        error.hint = f"{error.hint}; {advice}" if error.hint else advice
        raise error

    def _import_records(self, lines: Iterator[_Line], header: jsonl.Header, name: str) -> None:
        if header.models and not self._dry_run:
            self._storage.adopt_models(header.models, header.model)
        renamed: dict[str, str] = {}
        entities: list[EntityRecord] = []
        memories, said = 0, None

        def read(line: dict[str, Any]) -> Record | None:
            nonlocal memories, said
            memories += line.get("type") == "memory"
            record = jsonl.read_record(line, header)
            if not isinstance(record, jsonl.End):
                return record
            said = record.memories
            return None

        def keep(records: list[Record]) -> None:
            entities.extend(each for each in records if isinstance(each, EntityRecord))
            self._load(records, renamed)

        try:
            self._gather(lines, read, keep)
        finally:
            if not self._dry_run:
                self._storage.finish_loading(renamed, entities)
        if said is None:
            self._complain(name, InvalidInput("its last line is missing: the file was cut off"))
        elif said != memories:
            found = f"it should have {said:,} memories, but has {memories:,}"
            self._complain(name, InvalidInput(found))

    def _load(self, records: list[Record], renamed: dict[str, str]) -> None:
        if not records:
            return
        if self._dry_run:
            ids = [each.text.memory.memory_id for each in records if isinstance(each, MemoryRecord)]
            there = len(self._storage.taken(ids))
            self._counts.imported += len(ids) - there
            self._counts.unchanged += there
            return
        loaded = self._storage.load(records, force=self._force)
        for record, (status, memory_id, refused) in zip(records, loaded, strict=True):
            if isinstance(record, MemoryRecord):
                self._counts.imported += status == "imported"
                self._counts.unchanged += status == "unchanged"
                self._counts.refused += refused
                if memory_id != record.text.memory.memory_id:
                    renamed[record.text.memory.memory_id] = memory_id
        self._report()

    def _check(self, item: dict[str, Any]) -> SaveRequest:
        if jsonl.is_record(item):
            raise InvalidInput(
                "this looks like lines of an export without its first line", "export it again"
            )
        return _from_elsewhere(check_request(item, self._settings))

    def _save(self, requests: list[SaveRequest]) -> None:
        """Save texts, except those that were forgotten for good."""
        if not requests:
            return
        erased = self._erased([request.key for request in requests])
        wanted = [request for request in requests if request.key not in erased]
        self._counts.refused += len(requests) - len(wanted)
        if self._dry_run:
            keys = {request.key for request in wanted}
            there = self._storage.known(list(keys)).keys() | (keys & self._met)
            self._met |= keys
            self._counts.imported += len(keys) - len(there)
            self._counts.unchanged += len(wanted) - len(keys) + len(there)
            return
        for result in self._saver.save(wanted):
            self._counts.imported += result.status == "created"
            self._counts.unchanged += result.status == "unchanged"
        self._report()

    def _erased(self, keys: list[DedupKey]) -> set[DedupKey]:
        return set() if self._force else self._storage.tombstoned(keys)

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.progress)

    # --- Markdown -----------------------------------------------------------------------------

    def _import_vault(self, folder: Path) -> None:
        files = vault.list_files(folder)
        self._total = len(files)
        lines = ((vault.place_of(path, folder), {"path": path}) for path in files)
        self._gather(lines, lambda line: self._take_file(line["path"], folder), self._save)
        self._report()

    def _take_file(self, path: Path, folder: Path) -> SaveRequest | None:
        """Say what to save of a file, unless it is of a memory that is here: then see to that."""
        self._done += 1
        file = vault.read(path, folder)
        request = check_request(file.fields, self._settings)
        if file.memory_id is None:
            return _from_elsewhere(request)
        request = replace(request, role=file.role, client_id=file.client_id)
        place = vault.place_of(path, folder)
        first = self._files_by_id.setdefault(file.memory_id, place)
        if first != place:
            raise InvalidInput(
                f"it has the same id as {first}: take the id line out of one of them"
            )
        with self._storage.reading() as reader:
            memory = reader.memory(file.memory_id, request.space)
            hidden = reader.forgotten_at(file.memory_id, request.space)
        if memory is not None:
            # A name need not be UTF-8, what is stored must be.
            name = os.fsencode(path.resolve()).decode(errors="replace")
            self._revise(memory, file, request, f"import of {name}")
            return None
        if hidden is not None:
            raise Conflict(
                f"{file.memory_id} was forgotten here",
                f"bring it back with: byheart restore {file.memory_id}, or remove the file",
            )
        taken = bool(self._storage.taken([file.memory_id]))
        return replace(
            request,
            memory_id=None if taken else file.memory_id,
            created_at=file.created_at,
        )

    def _revise(
        self, memory: Memory, file: vault.VaultFile, request: SaveRequest, who: str
    ) -> None:
        """Change a memory as its file was changed, unless the memory changed elsewhere as well."""
        compared = [name for name in file.fields if name != "space"]
        differing = {
            name: file.fields[name]
            for name in compared
            if _differs(getattr(memory, name), getattr(request, name))
        }
        edited, moved_on = True, False
        if differing and not self._force:
            with self._storage.reading() as reader:
                entries = reader.history(memory.memory_id, memory.space)
            exported, moved_on = _source(memory, entries, file, who)
            edited = exported is None or any(
                _differs(exported[name], getattr(request, name)) for name in compared
            )
        if not differing or not edited:
            # Either both say the same, or the file is merely older than the memory.
            self._counts.unchanged += 1
            return
        if moved_on:
            raise Conflict(
                f"{memory.memory_id} has changed since this file was written, and so has the file",
                "export it again and make the change there, or let the file win with force=True",
            )
        if "content" in differing and request.key in self._erased([request.key]):
            self._counts.refused += 1
            return
        if not self._dry_run:
            self._update(memory.memory_id, memory.space, differing, memory.version, who)
        self._counts.updated += 1


def _from_elsewhere(request: SaveRequest) -> SaveRequest:
    """Say of a text that it was brought in, unless it says whose words it holds."""
    return replace(request, origin=request.origin or "import")


def _source(
    memory: Memory, entries: list[HistoryEntry], file: vault.VaultFile, who: str
) -> tuple[Mapping[str, Any] | None, bool]:
    """Give the fields a file was written from, and whether others than it changed them since."""
    versions = dict(_versions(memory, entries))
    alike = [version for version, fields in versions.items() if _hash(fields) == file.content_hash]
    changes = [entry for entry in entries if entry.changes]
    own = bool(changes) and changes[-1].who == who
    if not alike:
        # It was written by another store: all there is to compare are the times.
        newer = file.updated_at is not None and file.updated_at > memory.updated_at
        return None, not own and not (newer and len(versions) == 1)
    # Another store counts its versions differently.
    version = file.version if file.version in alike else max(alike)
    return versions[version], not own and version != memory.version


def _versions(
    memory: Memory, entries: list[HistoryEntry]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the fields that a memory had at each of its versions, from the last to the first."""
    fields = to_wire(memory)
    yield memory.version, dict(fields)
    for entry in reversed(entries):
        yield entry.version, dict(fields)
        fields.update({name: change["from"] for name, change in entry.changes.items()})


def _hash(fields: Mapping[str, Any]) -> str:
    return sha256((fields["content"] or "").encode()).hexdigest()


def _differs(old: Any, new: Any) -> bool:
    if isinstance(old, list | tuple):
        return set(old) != set(new or ())
    return bool(to_wire(old) != to_wire(new))


def _chars(item: Record | SaveRequest) -> int:
    if isinstance(item, SaveRequest):
        return len(item.content)
    if isinstance(item, MemoryRecord):
        return sum(len(text.memory.content) for text in (item.text, *item.earlier))
    return 0


def _guess(path: Path) -> str:
    return "markdown" if path.is_dir() or path.suffix.lower() == ".md" else "jsonl"


def _find_foreign(
    path_or_file: str | Path | BinaryIO, format: str | None
) -> foreign.Found | str | Path | BinaryIO:
    """Find files of another program's format, or give back what is of none."""
    if isinstance(path_or_file, str | Path):
        return foreign.find_sources(Path(path_or_file).expanduser(), format) or path_or_file
    return foreign.find_in_stream(path_or_file, _name_of(path_or_file), format)


def _name_of(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)
    return name.strip("<>") if isinstance(name, str) else "the file"


@contextmanager
def _opened(path_or_file: str | Path | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file, or take one that is open, and name it."""
    if not isinstance(path_or_file, str | Path):
        yield path_or_file, _name_of(path_or_file)
        return
    try:
        stream = Path(path_or_file).expanduser().open("rb")
    except OSError as error:
        raise InvalidInput(
            f"{path_or_file} cannot be read: {error.strerror}", "check the path"
        ) from error
    with stream:
        yield stream, str(path_or_file)


def _size(stream: BinaryIO) -> int | None:
    """Give the size of what is to be read, if that is known before the end."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # not a file of the operating system
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
