"""Index a folder: keep memories that mirror its files.

walk → compare with the known state → read, hash and chunk ahead → write, in the walk's order

Keyword search finds a file as soon as the file is written; the vectors are computed afterwards.
The next run continues an interrupted one, because each batch leaves a consistent state.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from threading import Lock

from byheart.contracts import FileChange, FileStamp, KnownFile, Model, Storage
from byheart.embedding.vectorizer import Made, Vectorizer, passages
from byheart.errors import Do, Hint, InvalidInput, NotFound, Option, TooManyChunks
from byheart.memory.deriving import Derived
from byheart.memory.helper_pool import HelperPool
from byheart.memory.save_requests import SaveRequest
from byheart.memory.saving import Saver
from byheart.model import FileError, Indexed, IndexProgress, RedactedFile, Workspace, client_id_of
from byheart.model.workspaces import FILE_KIND, WORKSPACE_AUTHOR
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.system import clock
from byheart.workspace import (
    FileText,
    IgnoreRules,
    NotText,
    SeenFile,
    Unreadable,
    Unseen,
    check_root,
    check_same,
    escape,
    explain,
    identify,
    is_writable,
    lies_within,
    read_file,
    read_path,
    see,
    transactions,
    walk,
)

OnProgress = Callable[[IndexProgress], None]
# The size of one transaction: large enough to be fast, small enough that a search in another
# process, or a Ctrl-C, never waits long.
_BATCH_FILES, _BATCH_CHARS = 64, 500_000
# Reading waits for the disk and chunking for the tokenizer; both release the GIL.
_READERS = min(4, (os.cpu_count() or 1) + 1)
_READ_AHEAD = 4 * _READERS
# Helper processes take half a second to start. So much text takes two seconds to derive.
_LEAST_BYTES_FOR_HELPERS = 2_000_000
# A file that was changed this shortly before it was read may change again within the same clock
# tick: coarse file systems store whole seconds. The next run reads such a file again.
_RACY_NS = 2_000_000_000
_UNSURE = -1
# Replaces the hash of a file that is not text.
_NOT_TEXT = b"-"
_PURGED_PER_RUN = 1_000


@dataclass(frozen=True, slots=True)
class Place:
    """Name a workspace and a file or folder in it; `below=""` means the whole workspace."""

    workspace_no: int
    space: str
    root: Path
    below: str = ""


@dataclass(slots=True)
class Tally:
    """Count the outcomes of the files that a run looked at."""

    indexed: int = 0
    moved: int = 0
    skipped: int = 0
    empty: int = 0
    removed: int = 0
    restored: int = 0
    forgotten: int = 0
    chunks: int = 0
    errors: list[FileError] = field(default_factory=list)
    redacted: list[RedactedFile] = field(default_factory=list)
    emptied: str | None = None
    """Why nothing was removed though all files are gone, and what to do if that is meant."""

    @property
    def changed(self) -> int:
        """Count the files whose memories changed."""
        return self.indexed + self.moved + self.removed + self.restored

    @property
    def looked_at(self) -> int:
        """Count the files with any reported outcome."""
        return self.changed + self.skipped + self.empty + self.forgotten + len(self.errors)


@dataclass(frozen=True, slots=True)
class _Look:
    """Hold the files found on disk together with the known state of the workspace."""

    known: dict[str, KnownFile]
    seen: list[SeenFile]
    unseen: list[Unseen]

    def missing(self) -> dict[str, KnownFile]:
        """Return the known files that are gone, except those in unreadable paths."""
        present = {each.path for each in self.seen}
        hidden = {each.path for each in self.unseen}
        return {
            path: known
            for path, known in self.known.items()
            if path not in present and not known.gone and not lies_within(path, hidden)
        }


class Indexer:
    """Keep the memories of workspaces in sync with their files."""

    def __init__(
        self, storage: Storage, saver: Saver, vectorizer: Vectorizer, settings: Settings
    ) -> None:
        self._storage = storage
        self._saver = saver
        self._vectorizer = vectorizer
        self._settings = settings
        self._kept = timedelta(days=settings.prune_after_days)

    def find(self, path: str | Path, space: str, *, add: bool = True) -> Place:
        """Find the workspace of a path; with `add`, register the folder if there is none."""
        given = read_path(path)
        target = whole_path(given)
        found = innermost(transactions.roots(self._storage, space), target)
        if found is not None:
            root = Path(found.root)
            below = "" if target == root else target.relative_to(root).as_posix()
            return Place(found.workspace_no, space, root, below)
        if not add:
            raise NotFound(
                f"{given} is in no workspace", Hint("make it one with: ", Do("index", str(given)))
            )
        if not os.path.isdir(target):  # noqa: PTH112 - Path's raises if access is denied
            is_file = os.path.isfile(target)  # noqa: PTH113
            what = "is a file, not a folder" if is_file else "is not there"
            raise InvalidInput(f"{given} {what}", "name a folder to index")
        if not is_writable(target.as_posix()):
            raise InvalidInput(
                f"the name of {escape(target.as_posix())} is not UTF-8",
                "rename the folder: the paths of its files are kept as text",
            )
        check_root(target)
        number = transactions.add(self._storage, space, target.as_posix())
        return Place(number, space, target)

    def drop(self, place: Place) -> int:
        """Remove a workspace; hide and count its memories."""
        return transactions.drop(self._storage, place.space, place.workspace_no)

    def rules(self, place: Place) -> IgnoreRules:
        """Return the rules that choose the indexed files; they always exclude the store itself."""
        return IgnoreRules(place.root, store=Path(self._storage.location))

    def index(self, place: Place, prune: bool, on_progress: OnProgress | None) -> Indexed:
        """Update the memories of a workspace, or of one file or folder in it."""
        rules = self.rules(place)
        tally = self.refresh(place, rules, [place.below], prune=prune, on_progress=on_progress)
        if place.below and not tally.looked_at:
            decision = explain(place.root, place.root / place.below, rules=rules)
            if decision.ignored:  # the user named this path, so report why nothing was indexed
                where = f" ({decision.where})" if decision.where else ""
                reason = f"is left out by a rule: {decision.rule}{where}"
                tally.errors.append(FileError(place.below, reason))
        return report(place, tally)

    def refresh(
        self,
        place: Place,
        rules: IgnoreRules,
        below: Iterable[str],
        *,
        prune: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Tally:
        """Update the memories of some files and folders."""
        chosen = _outermost(below)
        tally = Tally()
        look = self._look(place, rules, chosen, prune)
        tally.errors += (FileError(each.path, each.reason) for each in look.unseen)
        self._note_unseen(place, look)
        failed = list(_known_errors(look))
        tally.errors += failed
        missing = look.missing()
        if not prune and not look.seen and self._is_emptied(place, rules, missing):
            tally.emptied = Hint(
                "is empty: nothing was removed (remove with ", Option("prune", True), ")"
            )
            tally.errors.append(FileError(str(place.root), tally.emptied))
            missing = {}
        changed = [each for each in look.seen if not _is_unchanged(each, look.known)]
        tally.skipped = len(look.seen) - len(changed) - len(failed)
        parts = (self._storage, self._saver, self._vectorizer, self._settings)
        run = _Run(*parts, place, look.known, missing, tally)
        run.read(changed, on_progress)
        gone = {path: known.stamp for path, known in run.missing.items()}
        if gone:
            tally.removed += transactions.hide(self._storage, place.space, place.workspace_no, gone)
        if "" in chosen:
            transactions.finish(self._storage, place.space, place.workspace_no, clock.now())
            transactions.purge(self._storage, self._kept, _PURGED_PER_RUN)
        return tally

    def _note_unseen(self, place: Place, look: _Look) -> None:
        """Record unreadable paths, so that they are counted until they are readable or gone."""
        at = clock.now()
        taken = {each.path for each in look.seen}  # an escaped name may equal another name
        changes = []
        for path, reason in {each.path: each.reason for each in look.unseen}.items():
            known = look.known.get(path)
            is_news = known is None or (known.trouble != reason and not known.gone)
            if is_news and path not in taken:
                stamp = FileStamp(0, _UNSURE, 0)
                changes.append(FileChange(path, stamp, at, trouble=reason, may_pass=True))
        if changes:
            transactions.apply(self._storage, place.space, place.workspace_no, changes, None)

    def _is_emptied(self, place: Place, rules: IgnoreRules, missing: dict[str, KnownFile]) -> bool:
        """Check whether a workspace lost its last file, as when its disk is unmounted.

        Files that still exist were excluded by a new rule; the user intended that.
        """
        if not any(known.memory_id for known in missing.values()):
            return False
        if any(os.path.lexists(place.root / path) for path in missing):
            return False
        elsewhere = self._other_roots(place)
        files = walk(place.root, rules, lambda _: None)
        return all(each.path.startswith(elsewhere) for each in files)

    def _look(self, place: Place, rules: IgnoreRules, chosen: Sequence[str], prune: bool) -> _Look:
        known: dict[str, KnownFile] = {}
        seen: list[SeenFile] = []
        unseen: list[Unseen] = []
        elsewhere = self._other_roots(place)
        for below in chosen:
            # Read the known state first: a file that appears in between is then seen, not missed.
            with self._storage.reading(place.space) as reader:
                known |= reader.workspaces.files(place.workspace_no, below)
            if prune and not os.path.lexists(place.root):
                continue  # the user asked for pruning, and the whole root is gone
            seen += (
                each
                for each in _see_all(place.root, rules, below, unseen.append)
                if not each.path.startswith(elsewhere)
            )
        return _Look(known, seen, unseen)

    def _other_roots(self, place: Place) -> tuple[str, ...]:
        """Name the folders of this workspace that are separate workspaces."""
        return tuple(
            Path(each.root).relative_to(place.root).as_posix() + "/"
            for each in transactions.roots(self._storage, place.space)
            if place.root in Path(each.root).parents
        )


class _Run:
    """Read changed files in threads, ahead of the single writer."""

    def __init__(
        self,
        storage: Storage,
        saver: Saver,
        vectorizer: Vectorizer,
        settings: Settings,
        place: Place,
        known: dict[str, KnownFile],
        missing: dict[str, KnownFile],
        tally: Tally,
    ) -> None:
        self._storage = storage
        self._saver = saver
        self._vectorizer = vectorizer
        self._settings = settings
        self._place = place
        self._known = known
        self.missing = missing
        self._tally = tally
        self._claiming = Lock()
        self._claimed: set[str] = set()
        self._helpers: HelperPool | None = None

    def read(self, files: Sequence[SeenFile], on_progress: OnProgress | None) -> None:
        """Read the files and write their memories, batch by batch."""
        if not files:
            return
        root = identify(self._place.root)
        batch: list[_Prepared] = []
        vanished: list[str] = []
        chars = 0
        for done, prepared in enumerate(self._ahead(files), start=1):
            if prepared.vanished:
                vanished.append(prepared.change.path)
            else:
                batch.append(prepared)
            chars += prepared.chars
            if len(batch) >= _BATCH_FILES or chars >= _BATCH_CHARS or done == len(files):
                self._write(batch)
                batch, chars = [], 0
                if on_progress is not None:
                    on_progress(IndexProgress(done, len(files), self._tally.chunks, 0, 0))
        if vanished:
            check_same(self._place.root, root)  # otherwise the root itself vanished
            self.missing |= {path: self._known[path] for path in vanished if path in self._known}

    def _ahead(self, files: Sequence[SeenFile]) -> Iterator[_Prepared]:
        """Prepare files in several threads, a few ahead of the writer, and keep their order."""
        if len(files) == 1:  # a thread does not pay off for one file
            yield self._prepare(files[0])
            return
        with (
            self._starting_helpers(files) as self._helpers,
            ThreadPoolExecutor(_READERS, "byheart-read") as pool,
        ):
            waiting: deque[Future[_Prepared]] = deque()
            try:
                for each in files:
                    waiting.append(pool.submit(self._prepare, each))
                    if len(waiting) > _READ_AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _starting_helpers(
        self, files: Sequence[SeenFile]
    ) -> AbstractContextManager[HelperPool | None]:
        if sum(each.size for each in files) < _LEAST_BYTES_FOR_HELPERS:
            return nullcontext()
        return self._saver.helpers()

    def _prepare(self, seen: SeenFile) -> _Prepared:
        at = clock.now()
        look = FileChange(seen.path, _stamp(seen), at)
        try:
            file = read_file(self._place.root, seen.path)
        except NotText:
            # Record the stamp, so that the file is not opened again before it changes.
            return _Prepared(replace(look, file_hash=_NOT_TEXT, no_text=True))
        except Unreadable as error:
            if error.for_now and not os.path.lexists(self._place.root / seen.path):
                return _Prepared(look, vanished=True)
            return _Prepared(replace(look, trouble=str(error), may_pass=error.for_now))
        look = FileChange(seen.path, _stamp(file.seen, time.time_ns()), at, file.file_hash)
        known = self._known.get(seen.path)
        if not file.text.strip():
            return _Prepared(replace(look, no_text=True))
        if known is not None and known.file_hash == file.file_hash:
            return _Prepared(look)
        source, reuse = None, True  # most passages of a changed file stay the same
        if known is None or known.memory_id is None:
            source, reuse = self._find_alike(file.file_hash)
        if source is not None:
            return _Prepared(replace(look, moved_from=source))
        try:
            return self._cut(file, look, reuse=reuse)
        except TooManyChunks as error:
            # The next run tries again, since max_chunks may have been raised by then.
            hint = "divide the file, leave it out, or raise max_chunks"
            return _Prepared(
                replace(look, trouble=Hint(error.message, f" ({hint})"), may_pass=True)
            )

    def _find_alike(self, file_hash: bytes) -> tuple[str | None, bool]:
        """Return the old path of a moved file, and whether its text was known."""
        with self._storage.reading(self._place.space) as reader:
            alike = reader.workspaces.alike(self._place.space, file_hash)
        with self._claiming:
            for each in alike:
                if (
                    each.workspace_no == self._place.workspace_no
                    and each.path not in self._claimed
                    and (each.gone or each.path in self.missing)
                ):
                    self._claimed.add(each.path)
                    self.missing.pop(each.path, None)
                    return each.path, True
        return None, bool(alike)

    def _cut(self, file: FileText, look: FileChange, *, reuse: bool) -> _Prepared:
        derived = self._derive(file)
        request, chunks = derived.request, derived.chunks
        made = Made([() for _ in chunks], None, None)
        if reuse:
            made = self._vectorizer.known_windows(passages(chunks, request.title), request.space)
        draft = self._saver.draft(derived, made.windows)
        change, chars = replace(look, draft=draft), len(file.text)
        return _Prepared(change, chars, len(chunks), made.model, secrets=derived.secrets)

    def _derive(self, file: FileText) -> Derived:
        """Derive a file's text without its secrets, which the user did not ask to keep.

        Every line keeps its number, so that a passage still points to its line in the file. The
        name of a file is no secret.
        """
        request = self._request(file)
        redacted = ("content", "title") if file.title else ("content",)
        derived = None if self._helpers is None else self._helpers.derive(request, redacted)
        return derived or self._saver.derive(request, redacted)

    def _request(self, file: FileText) -> SaveRequest:
        path = (self._place.root / file.seen.path).as_posix()
        at = clock.now()
        modified = datetime.fromtimestamp(file.seen.mtime_ns / 1e9, UTC)
        return SaveRequest(
            content=file.text,
            content_hash=sha256(file.text.encode()).hexdigest(),
            kind=FILE_KIND,
            title=file.title or path.rpartition("/")[2],
            source=WORKSPACE_AUTHOR,
            path=path,
            metadata={
                "modified_at": modified.isoformat(timespec="seconds"),
                "encoding": file.encoding,
                "lines_match": file.lines_match,
            },
            space=self._place.space,
            at=at,
            client_id=client_id_of(path),
            format=file.format,
        )

    def _write(self, batch: Sequence[_Prepared]) -> None:
        model = next((each.model for each in reversed(batch) if each.model is not None), None)
        changes = [each.of_model(model) for each in batch]
        place = self._place
        statuses = transactions.apply(
            self._storage, place.space, place.workspace_no, changes, model
        )
        tally = self._tally
        for prepared, status in zip(batch, statuses, strict=True):
            change = prepared.change
            if status == "indexed":
                tally.indexed += 1
                tally.chunks += prepared.chunks
                if prepared.secrets:
                    tally.redacted.append(RedactedFile(change.path, prepared.secrets))
            elif status == "moved":
                tally.moved += 1
            elif status == "removed":
                tally.removed += 1
            elif status == "restored":
                tally.restored += 1
            elif status == "forgotten":
                tally.forgotten += 1
            elif status == "unchanged" and self._held_nothing(change):
                tally.empty += 1
            elif status == "unchanged":
                tally.skipped += 1
            else:
                reason = change.trouble or "was changed by another process meanwhile"
                tally.errors.append(FileError(change.path, reason))

    def _held_nothing(self, change: FileChange) -> bool:
        known = self._known.get(change.path)
        return change.draft is None and (known is None or known.memory_id is None)


@dataclass(frozen=True, slots=True)
class _Prepared:
    change: FileChange
    chars: int = 0
    chunks: int = 0
    model: Model | None = None
    vanished: bool = False
    """The file was deleted after it was listed, which is no error."""
    secrets: Mapping[str, int] = field(default_factory=dict)
    """How many secrets of each kind were taken out."""

    def of_model(self, model: Model | None) -> FileChange:
        """Drop vectors of another model: the store switched models while the batch was read."""
        draft = self.change.draft
        if draft is None or self.model == model:
            return self.change
        return replace(self.change, draft=replace(draft, windows=tuple(() for _ in draft.windows)))


def report(
    place: Place, tally: Tally, elapsed_ms: float = 0.0, pending_vectors: int = 0
) -> Indexed:
    """Build the result of an index run."""
    return Indexed(
        root=str(place.root),
        files_indexed=tally.indexed,
        files_moved=tally.moved,
        files_skipped=tally.skipped,
        files_empty=tally.empty,
        files_removed=tally.removed,
        files_restored=tally.restored,
        files_forgotten=tally.forgotten,
        errors=tuple(tally.errors),
        chunks=tally.chunks,
        pending_vectors=pending_vectors,
        degraded=None,
        elapsed_ms=elapsed_ms,
        secrets_redacted=sum(each.count for each in tally.redacted),
        redacted_files=tuple(tally.redacted),
    )


def _see_all(
    root: Path, rules: IgnoreRules, below: str, on_error: Callable[[Unseen], None]
) -> Iterator[SeenFile]:
    """Yield one file, or all files of a folder."""
    if below == "" or os.path.isdir(root / below):  # noqa: PTH112 - Path's may raise
        yield from walk(root, rules, on_error, below=below)
        return
    try:
        found = see(root, rules, below)
    except Unreadable as error:
        on_error(Unseen(below, str(error)))
        return
    if found is not None:
        yield found


def _outermost(paths: Iterable[str]) -> list[str]:
    """Leave out paths below a folder that is also in the list."""
    chosen: list[str] = []
    for path in sorted(set(paths), key=lambda each: each.split("/") if each else []):
        if not chosen or not (chosen[-1] == "" or path.startswith(f"{chosen[-1]}/")):
            chosen.append(path)
    return chosen


def _is_unchanged(seen: SeenFile, known: dict[str, KnownFile]) -> bool:
    found = known.get(seen.path)
    return (
        found is not None
        and not found.gone
        and not found.may_pass  # retry files that were temporarily unreadable
        and found.stamp == _stamp(seen)
    )


def _known_errors(look: _Look) -> Iterator[FileError]:
    """Yield the known errors of files that have not changed since."""
    for seen in look.seen:
        known = look.known.get(seen.path)
        if known is not None and known.trouble is not None and _is_unchanged(seen, look.known):
            yield FileError(seen.path, known.trouble)


def whole_path(given: Path) -> Path:
    """Return an absolute path; links are resolved if the path exists."""
    try:
        return given.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        pass
    try:
        return Path(os.path.abspath(given))  # noqa: PTH100 - resolve() asks the disk
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{given} is not there: the working folder was deleted", "change to another folder"
        ) from error


def innermost(workspaces: Iterable[Workspace], path: Path) -> Workspace | None:
    """Find the workspace that contains a path; for nested workspaces, the inner one."""
    around = [each for each in workspaces if path.is_relative_to(each.root)]
    return max(around, key=lambda each: len(each.root), default=None)


def _stamp(seen: SeenFile, read_at_ns: int | None = None) -> FileStamp:
    racy = read_at_ns is not None and read_at_ns - seen.mtime_ns < _RACY_NS
    return FileStamp(seen.size, _UNSURE if racy else seen.mtime_ns, seen.inode)
