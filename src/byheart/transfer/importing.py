"""Import a file or folder as memories, batch by batch, and report unreadable parts by name.

An export is loaded unchanged. Lines with the fields of `save`, Markdown files and the files of
other programs (`transfer/foreign`) go through the normal save path. An interrupted import can be
run again and continues without repeating work. The import leaves the search index to the next
search, because publishing the index takes more memory than all the rest.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from byheart.contracts import DedupKey, MemoryRecord, Record, Storage
from byheart.conversation.capture import capture_title
from byheart.errors import (
    ByheartError,
    Conflict,
    Hint,
    InvalidInput,
    NotFound,
    Option,
    StoreBusy,
    StoreFull,
    TooManyChunks,
)
from byheart.memory import transactions, versions
from byheart.memory.save_requests import SaveRequest, check_request, look_for_secrets
from byheart.memory.saving import Saver
from byheart.model import Imported, Remark, SaveResult, Skipped, TransferProgress
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.system.file_opening import open_to_read
from byheart.transfer import foreign, jsonl, vault
from byheart.transfer.decoding import MARK_BYTES, as_utf8
from byheart.transfer.exporting import FORMATS
from byheart.transfer.file_sync import Outcome, SourceSync, Update, from_elsewhere
from byheart.transfer.foreign_import import CheckTurn, ItemConverter, Tally
from byheart.transfer.json_lines import number_lines, parse_object
from byheart.transfer.loading import Loader

OnError = Literal["stop", "skip"]
ON_ERROR: tuple[OnError, ...] = ("stop", "skip")
_SKIP = Option("on_error", "skip")
IMPORT_FORMATS = (*FORMATS, *foreign.FOREIGN)
# Formats that are read from the position of the last read.
GROWING = tuple(foreign.GROWING)
OnProgress = Callable[[TransferProgress], None]
# The size of one transaction: large enough to be fast, small enough to lose only seconds.
_BATCH_MEMORIES, _BATCH_CHARS = 64, 1_000_000

# The place of a line, and the object on it or the error in it.
_Line = tuple[str, dict[str, Any] | InvalidInput]
_Given = TypeVar("_Given")
_Item = TypeVar("_Item", bound=Record | SaveRequest)
# Stores several turns at once.
KeepTurns = Callable[[Sequence[SaveRequest]], list[SaveResult]]


@dataclass(slots=True)
class _Counts:
    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    @property
    def memories(self) -> int:
        return self.imported + self.updated + self.unchanged + self.refused

    def add(self, outcome: Outcome) -> None:
        setattr(self, outcome, getattr(self, outcome) + 1)


class Importer:
    """Import exports of this and other programs."""

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
        self._source_sync = SourceSync(storage, update, settings, force=force, dry_run=dry_run)
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
        # The places of a batch's texts, by their hashes.
        self._places: dict[str, str] = {}
        self._done = 0
        self._total: int | None = None

    @property
    def progress(self) -> TransferProgress:
        """Return the progress so far."""
        return TransferProgress(self._counts.memories, self._done, self._total)

    def run(self, path_or_file: str | Path | BinaryIO, format: str | None) -> Imported:
        """Import everything and count the outcomes."""
        path = Path(path_or_file).expanduser() if isinstance(path_or_file, str | Path) else None
        if path is not None and path.is_fifo():
            with _readable(path) as stream:
                return self.run(stream, format)
        chosen = format or ("jsonl" if path is None else _guess(path))
        found = _find_foreign(path_or_file, format)
        try:
            if isinstance(found, foreign.Found):
                self._import_found(found)
                return self._result(found.files)
            if path is not None and chosen == "markdown":
                return self._result({chosen: self._import_vault(path)})
            # `found` yields the complete stream again, though its beginning was read.
            with _opened(found) as (stream, name):
                self._total = _size(stream)
                self._import_lines(stream, name)
        except (StoreBusy, StoreFull) as error:
            if self._kept_so_far:
                error.hint = Hint(self._kept_so_far, error.hint, "; it goes on from there")
            raise
        return self._result({chosen: 1})

    @property
    def _kept_so_far(self) -> str:
        """Describe what is stored so far, as the start of a hint."""
        count = 0 if self._dry_run else self._counts.imported + self._counts.updated
        return f"what came before it is kept ({count:,} new or changed): " if count else ""

    def _result(self, files: Mapping[str, int]) -> Imported:
        counts, tally = self._counts, self._tally
        return Imported(
            counts.imported,
            counts.updated,
            counts.unchanged,
            counts.refused,
            tuple(counts.skipped),
            pending_vectors=0,
            degraded=None,
            format=next(iter(files)) if len(files) == 1 else "mixed",
            files=dict(files),
            dry_run=self._dry_run,
            sessions=len(tally.sessions),
            turns=tally.turns,
            memories=tally.memories,
            redacted=tally.redacted,
            shortened=tally.shortened,
            left_out=dict(tally.left_out),
            remarks=tuple(counts.remarks),
        )

    # --- Files of other programs --------------------------------------------------------------

    def _import_found(self, found: foreign.Found) -> None:
        self._tally.left_out.update(found.left_out)
        self._total = found.size or None
        for place, error in found.broken:
            self._complain(place, error)
        for source in found.exports:
            before = self._done
            with source.open() as stream:
                self._import_lines(stream, source.name, is_alone=False)
            self._done = before + source.size
        for format_, source in found.parts:
            self._import_source(format_, source, is_certain=found.is_certain)

    def _import_source(
        self, format_: foreign.Format, source: foreign.Source, *, is_certain: bool
    ) -> None:
        converter = ItemConverter(format_, self._settings, self._check_turn, self._tally)
        before, held = self._done, self._held
        items = self._items(foreign.Reading(format_, source), before)
        self._gather(items, partial(self._take_item, converter, source), self._save_items)
        if self._held == held and not is_certain:
            self._complain(source.name, foreign.nothing_of(format_, source))
        self._done = before + source.size
        self._report()

    def go_on(self, path: Path, name: str) -> Imported:
        """Import what was added to a transcript since the last read.

        A bookmark is moved only after the items before it are stored. If the process stops in
        between, the same items are read again and recognized.
        """
        place = os.fsencode(path).decode(errors="replace")
        space, bookmarks = self._settings.space, self._storage.bookmarks
        growing = foreign.Growing(path, name, bookmarks.find(place, space))
        converter = ItemConverter(
            growing.format,
            self._settings,
            self._check_turn,
            self._tally,
            growing.said,
            growing.latest,
        )
        clean = partial(capture_title, settings=self._settings)
        for items in growing.parts():
            self._gather(
                items, partial(self._take_item, converter, growing.source), self._save_items
            )
            bookmarks.put(place, space, growing.bookmark(converter.said, converter.latest, clean))
        return self._result({name: 1})

    @property
    def _held(self) -> int:
        """Count the items of other programs' files so far."""
        return self._tally.turns + self._tally.memories + self._counts.memories

    def _items(self, reading: foreign.Reading, before: int) -> Iterator[foreign.Item]:
        for item in reading:
            self._done = before + reading.position
            yield item

    def _take_item(
        self,
        converter: ItemConverter,
        source: foreign.Source,
        item: foreign.Piece | foreign.OwnFile | foreign.Omission,
    ) -> SaveRequest | None:
        if isinstance(item, foreign.Omission):
            converter.leave_out(item.what)
            return None
        if isinstance(item, foreign.OwnFile):
            assert source.folder is not None, "the file is in a folder"
            return self._take_own(item.path, source.folder)
        key = converter.key_of_output(item)
        if key is not None and transactions.known(self._storage, [key]):
            # The secret scan takes ten times as long, so it is not repeated for a known output.
            converter.pass_over(key)
            self._counts.unchanged += 1
            return None
        request = converter.convert(item)
        self._remark(source.name, item.flaws)
        return request

    def _remark(self, place: str, flaws: Iterable[vault.Flaw]) -> None:
        self._counts.remarks += (Remark(place, flaw.what, flaw.reason) for flaw in flaws)

    def _save_items(self, requests: list[SaveRequest]) -> None:
        """Save new items, and update known ones from their source."""
        requests = self._without_secrets(requests)
        distinct: dict[DedupKey, SaveRequest] = {}
        for request in requests:
            distinct.setdefault(request.key, request)
        keys = list(distinct)
        known, erased = transactions.known(self._storage, keys), self._erased(keys)
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
            new = {request.key for request in fresh}
            self._keep_new(fresh)
        self._tally.count_captured(new)
        self._tally.captured.clear()
        self._report()

    def _keep_new(self, requests: list[SaveRequest]) -> None:
        turns = [request for request in requests if request.role is not None]
        others = [request for request in requests if request.role is None]
        self._count_kept(turns, self._keep_new_turns)
        self._count_kept(others, self._save_new)

    def _save_new(self, requests: list[SaveRequest]) -> int:
        return sum(result.status == "created" for result in self._saver.save(requests))

    def _count_kept(
        self, requests: list[SaveRequest], keep: Callable[[list[SaveRequest]], int]
    ) -> None:
        """Save texts and count the new ones; skip a text with too many chunks."""
        while requests:
            at = len(requests)
            try:
                created = keep(requests)
            except TooManyChunks as error:
                at = [each.content_hash for each in requests].index(error.content_hash)
                created = keep(requests[:at]) if at else 0
                failure: TooManyChunks | None = error
            else:
                failure = None
            self._counts.imported += created
            self._counts.unchanged += at - created
            if failure is not None:
                self._complain(self._places.get(failure.content_hash, "a text"), failure)
            requests = requests[at + 1 :]

    def _keep_new_turns(self, turns: list[SaveRequest]) -> int:
        """Save turns and count them, even if others log turns meanwhile."""
        created = 0
        while turns:
            try:
                results = self._keep_turns(turns)
            except Conflict:
                # One turn was logged meanwhile with another text; the turns before it are stored.
                known = transactions.known(self._storage, [turn.key for turn in turns])
                left = [turn for turn in turns if turn.key not in known]
                if len(left) == len(turns):
                    raise
                created += sum(
                    not versions.names_other_text(turn.key, known[turn.key])
                    for turn in turns
                    if turn.key in known
                )
                turns = left
            else:
                return created + sum(result.status == "created" for result in results)
        return created

    def _follow(self, request: SaveRequest, held: SaveResult) -> None:
        try:
            outcome = self._source_sync.follow(request, held)
            self._counts.add(outcome)
            self._tally.count_captured([request.key] if outcome == "updated" else [])
        except (Conflict, InvalidInput, NotFound) as error:
            self._complain(request.client_id or held.memory_id, error)

    # --- Lines --------------------------------------------------------------------------------

    def _import_lines(self, stream: BinaryIO, name: str, *, is_alone: bool = True) -> None:
        lines = self._lines(stream, name)
        first = next(lines, None)
        if first is None:
            self._complain(name, InvalidInput("it is empty: there is nothing to import"))
            return
        place, item = first
        if isinstance(item, InvalidInput) or not jsonl.is_header(item):
            self._gather(chain([first], lines), self._check, self._save)
            return
        try:
            header = jsonl.read_header(item)
        except InvalidInput as error:
            # The rest cannot be understood without the header.
            if is_alone:
                error.message = Hint(f"{place}: ", error.message)
                raise
            self._complain(place, error)
            return
        self._import_records(lines, header, name)

    def _lines(self, stream: BinaryIO, name: str) -> Iterator[_Line]:
        try:
            for number, line in number_lines(stream):
                self._done += len(line)
                place = f"{name} line {number}"
                try:
                    yield place, parse_object(line, "it")
                except InvalidInput as error:
                    yield place, error
        except InvalidInput as error:  # the whole file is damaged or is not text
            yield name, error

    def _gather(
        self,
        lines: Iterable[tuple[str, _Given | InvalidInput]],
        read: Callable[[_Given], _Item | None],
        keep: Callable[[list[_Item]], None],
    ) -> None:
        """Read line by line and store in batches; store earlier lines before reporting an error."""
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
            if not batch:
                self._places.clear()
            if isinstance(item, SaveRequest):
                self._places[item.content_hash] = place
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
        again = Hint("correct it and run this again, or leave it out with ", _SKIP)
        advice = self._kept_so_far + again
        error.message = Hint(f"{place}: ", error.message)
        error.hint = Hint(error.hint, "; ", advice) if error.hint else advice
        raise error

    def _import_records(self, lines: Iterator[_Line], header: jsonl.Header, name: str) -> None:
        loader = Loader(self._storage, force=self._force)
        if header.models and not self._dry_run:
            loader.adopt_models(header.models, header.model)
        memories, said = 0, None

        def read(line: dict[str, Any]) -> Record | None:
            nonlocal memories, said
            memories += line.get("type") == "memory"
            record = jsonl.read_record(line, header)
            if not isinstance(record, jsonl.End):
                return record
            said = record.memories
            return None

        try:
            self._gather(lines, read, partial(self._load, loader))
        finally:
            if not self._dry_run:
                loader.finish()
        if said is None:
            self._complain(
                name,
                InvalidInput(
                    "its last line is missing: the file was cut off",
                    "export or copy it again, and import the whole file",
                ),
            )
        elif said != memories:
            found = f"it should have {said:,} memories, but has {memories:,}"
            self._complain(name, InvalidInput(found, "export or copy the file again"))

    def _load(self, loader: Loader, records: list[Record]) -> None:
        if not records:
            return
        if self._dry_run:
            ids = [each.text.memory.memory_id for each in records if isinstance(each, MemoryRecord)]
            with self._storage.reading() as reader:
                there = len(reader.taken(ids))
            self._counts.imported += len(ids) - there
            self._counts.unchanged += there
            return
        loaded = loader.load(records)
        for record, (status, _, refused) in zip(records, loaded, strict=True):
            if isinstance(record, MemoryRecord):
                self._counts.imported += status == "imported"
                self._counts.unchanged += status == "unchanged"
                self._counts.refused += refused
        self._report()

    def _check(self, item: dict[str, Any]) -> SaveRequest:
        if jsonl.is_record(item):
            raise InvalidInput(
                "this looks like lines of an export without its first line", "export it again"
            )
        return from_elsewhere(check_request(item, self._settings))

    def _save(self, requests: list[SaveRequest]) -> None:
        """Save texts, except those that were erased permanently."""
        if not requests:
            return
        requests = self._without_secrets(requests)
        erased = self._erased([request.key for request in requests])
        wanted = [request for request in requests if request.key not in erased]
        self._counts.refused += len(requests) - len(wanted)
        if self._dry_run:
            keys = {request.key for request in wanted}
            there = transactions.known(self._storage, list(keys)).keys() | (keys & self._met)
            self._met |= keys
            self._counts.imported += len(keys) - len(there)
            self._counts.unchanged += len(wanted) - len(keys) + len(there)
            return
        self._count_kept(wanted, self._save_new)
        self._report()

    def _without_secrets(self, requests: list[SaveRequest]) -> list[SaveRequest]:
        """Redact secrets in deliberate imports, if the settings ask for it."""
        if self._settings.redact_secrets != "all":
            return requests
        return [look_for_secrets(request, self._settings) for request in requests]

    def _erased(self, keys: list[DedupKey]) -> set[DedupKey]:
        if self._force:
            return set()
        with self._storage.reading(transactions.one_space(key.space for key in keys)) as reader:
            erased = reader.tombstoned({key.text for key in keys})
        return {key for key in keys if key.text in erased}

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.progress)

    # --- Markdown -----------------------------------------------------------------------------

    def _import_vault(self, folder: Path) -> int:
        """Import the files of a folder, and count them."""
        files = vault.list_files(folder)
        self._total = len(files)
        lines = ((vault.place_of(path, folder), path) for path in files)
        self._gather(lines, partial(self._take_file, folder), self._save)
        self._report()
        return len(files)

    def _take_file(self, folder: Path, path: Path) -> SaveRequest | None:
        self._done += 1
        return self._take_own(path, folder)

    def _take_own(self, path: Path, folder: Path) -> SaveRequest | None:
        """Return the request to save for a file, or update the memory that the file belongs to."""
        file = vault.read(path, folder)
        if file.memory_id is None and path != folder and not file.fields["content"].strip():
            self._tally.left_out["empty note"] += 1
            return None
        taken = self._source_sync.take(file, path, folder)
        self._remark(vault.place_of(path, folder), file.flaws)
        if isinstance(taken, SaveRequest):
            return taken
        self._counts.add(taken)
        return None


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
    """Find files in other programs' formats; otherwise return the argument."""
    if isinstance(path_or_file, str | Path):
        return foreign.find_sources(Path(path_or_file).expanduser(), format) or path_or_file
    return foreign.find_in_stream(path_or_file, _name_of(path_or_file), format)


def _name_of(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)
    return name.strip("<>") if isinstance(name, str) else "the file"


@contextmanager
def _opened(path_or_file: str | Path | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file, or use an open stream, and name it."""
    if not isinstance(path_or_file, str | Path):
        yield path_or_file, _name_of(path_or_file)
        return
    with _readable(Path(path_or_file).expanduser()) as stream:
        yield as_utf8(stream, stream.peek(MARK_BYTES)), str(path_or_file)


def _readable(path: Path) -> io.BufferedReader:
    try:
        return open_to_read(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", "check the path") from error


def _size(stream: BinaryIO) -> int | None:
    """Return the size of the input, if it is known in advance."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # the stream is not a file of the operating system
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
