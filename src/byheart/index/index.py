"""Keep the index of one process: columns, postings and vectors, derived from a database.

The database is the only source of truth. Before every search, the index is updated to exactly the
change that the transaction of the search sees, so an answer is never stale and never ahead of its
transaction. The index follows the log of changes; if the log does not reach back far enough, the
index reads the whole database.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from byheart.contracts import IndexCopy, IndexedDatabase, IndexSource
from byheart.errors import StoreError
from byheart.index import file
from byheart.index.array_search import View
from byheart.index.columns import CHUNK_TYPES, MEMORY_TYPES
from byheart.index.contents import Contents
from byheart.index.copy_exchange import CopyExchange
from byheart.index.file_coverage import FileCoverage, least_unpublished
from byheart.index.memory_use import UNLOADED, MemoryUse
from byheart.model.damage import only_sound_rows

_MOST_ATTEMPTS = 50
# A file that lacks fewer changes is updated faster than the database answers about its copy.
_FAR_BEHIND = 50
# The pause after the file could not be written; it doubles with each failure.
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 60.0, 3600.0
# The threads of this process that publish beside searches.
_publishers = threading.BoundedSemaphore(2)
_ARRAYS = {f"memory.{name}" for name in MEMORY_TYPES} | {f"chunk.{name}" for name in CHUNK_TYPES}


class Index:
    """Keep a view of the store up to date, and write it to its file on disk."""

    def __init__(
        self, path: Path, database: IndexedDatabase, copy: IndexCopy | None = None
    ) -> None:
        self.path = path
        self._database = database
        self._exchange = None if copy is None else CopyExchange(path, copy)
        # The last change in a copy that was ahead of the transaction it was loaded for.
        self._ahead: int | None = None
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._contents: Contents | None = None
        self._view: View | None = None
        self._pause_seconds = 0.0
        self._pause_until = 0.0
        self.on_work: Callable[[str, float], None] = lambda _work, _seconds: None
        # Called when the memory that the index takes may have changed, without any lock held.
        self.on_resize: Callable[[], None] = lambda: None

    def view(self, source: IndexSource) -> View | None:
        """Give the view at the moment of the transaction; `None` if the index is ahead of it."""
        change = source.last_change()
        view = self._view
        if view is not None and view.change == change:
            return view
        view = self._update(source, change)
        self.on_resize()
        return view

    def prefetch(self, source: IndexSource) -> None:
        """Ask ahead for what an update reads, if the index is probably behind."""
        contents = self._contents
        if contents is not None:
            contents.prefetch(source)

    def _update(self, source: IndexSource, change: tuple[int, int]) -> View | None:
        change_no = change[0]
        with self._lock:
            contents = self._contents
            if contents is not None and contents.change_no > change_no:
                return None
            started = time.perf_counter()
            if contents is not None:
                contents.prefetch(source)
            if contents is None or not contents.can_follow(source):
                contents = self._load(source)
                if contents.change_no > change_no:
                    # The copy fits a later transaction, unless it is of a history that is gone.
                    self._ahead = contents.change_no
                    self._contents, self._view = contents, None
                    return None
            work = "catch_up" if contents.change_no else "rebuild"
            # An update that was interrupted leaves mixed contents: begin again from the file.
            self._contents = self._view = None
            with only_sound_rows():
                contents.catch_up(source, change)
            self._contents = contents
            self._view = contents.view()
            self.on_work(work, time.perf_counter() - started)
            return self._view

    def _load(self, source: IndexSource) -> Contents:
        local = self._read_file()
        # A file ahead of this transaction was written after it began: a later transaction uses it.
        if local is not None and local[0].change_no > source.last_change().number:
            local = None
        if local is not None and not local[0].can_follow(source):
            self._remove_file()
            local = None
        fetched = self._fetch(source, local and local[1])
        if fetched is not None:
            return fetched
        return local[0] if local else Contents.empty(source)

    def _fetch(self, source: IndexSource, local: FileCoverage | None) -> Contents | None:
        """Load the copy of the database, if there is no file here that is nearly as new."""
        if self._exchange is None or not self._database.writable:
            return None
        found: list[Contents] = []
        last_change_no = source.last_change().number
        if local is not None and last_change_no - local.change_no < _FAR_BEHIND:
            return None

        def accept(received: file.IndexFile) -> bool:
            if received.arrays.keys() >= _ARRAYS:
                contents = Contents.from_file(received)
                fits = contents.can_follow(source)
                if contents.change_no > last_change_no and contents.change_no != self._ahead:
                    fits = contents.store_id == source.store_id()
                if fits:
                    found.append(contents)
            return bool(found)

        started = time.perf_counter()
        if not self._exchange.fetch(local, self._database.prepare_publishing, accept):
            return None
        self.on_work("fetch", time.perf_counter() - started)
        return found[0]

    @property
    def memory_use(self) -> MemoryUse:
        """Measure the memory that the index takes."""
        contents = self._contents
        return UNLOADED if contents is None else contents.memory_use()

    @property
    def is_working(self) -> bool:
        """Say whether a thread loads, updates or replaces the contents now."""
        return self._lock.locked()

    def unpublished(self) -> bool:
        """Say whether enough is missing from the file to make writing it again worth the time."""
        contents = self._contents
        if contents is None or not self._database.writable:
            return False
        if time.monotonic() < self._pause_until:
            return False
        return contents.unpublished >= least_unpublished(contents.published)

    def publish(self) -> None:
        """Write the index to its file without removed rows, and continue from that file.

        Searches continue meanwhile: they wait only while the new file is mapped. If the copy in the
        database is far enough behind, replace it too.
        """
        self._publish_file()
        if self._exchange is not None:
            self._exchange.offer()
        self.on_resize()

    def _publish_file(self) -> None:
        with self._publishing:
            try:
                self._publish()
            except (OSError, StoreError):
                self._pause()
                raise
            self._pause_seconds = self._pause_until = 0.0

    def _pause(self) -> None:
        # Each attempt lays out the whole index, and a full disk usually stays full for a while.
        longer = max(_SHORTEST_PAUSE_SECONDS, 2 * self._pause_seconds)
        self._pause_seconds = min(longer, _LONGEST_PAUSE_SECONDS)
        self._pause_until = time.monotonic() + self._pause_seconds

    def _publish(self) -> None:
        with self._lock:
            contents = None if self._contents is None else self._contents.frozen()
        if contents is None:
            return
        before = file.read_header(self.path)
        published = self._read_file() if self._is_as_new(before, contents) else None
        if published is None:
            started = time.perf_counter()
            laid_out = contents.compacted().to_file()

            def is_superseded() -> bool:
                header = file.read_header(self.path)
                return header != before and self._is_as_new(header, contents)

            mode = self._database.prepare_publishing()
            # Rows that a newer file has removed must not come back with this file.
            file.write(self.path, laid_out, mode, is_superseded)
            published = self._read_file()
            self.on_work("publish", time.perf_counter() - started)
        with self._lock:
            if published is not None:
                self._contents = published[0]

    def _read_file(self) -> tuple[Contents, FileCoverage] | None:
        written = file.read(self.path)
        # A file without one of the arrays is of an earlier version: everything is read again.
        if written is None or not written.arrays.keys() >= _ARRAYS:
            return None
        return Contents.from_file(written), FileCoverage.of_file(written.header, written.arrays)

    def _is_as_new(self, header: dict[str, Any] | None, contents: Contents) -> bool:
        """Say whether a file, perhaps written by another process, already has these contents."""
        if header is None or not contents.is_behind(header["state"]):
            return False
        change_no, stamp = header["state"]["change_no"], header["state"]["stamp"]
        with self._database.snapshot() as source:
            return bool(source.stamp_of(change_no) == stamp)

    def publish_in_background(self) -> None:
        """Publish in a thread beside searches, unless enough threads are publishing already.

        A thread keeps its index in memory, so there are few of them. An index that was not
        published now is published after one of its next searches.
        """
        if not self._publishing.locked() and _publishers.acquire(blocking=False):
            threading.Thread(
                target=self._publish_quietly, name="byheart-index", daemon=True
            ).start()

    def _publish_quietly(self) -> None:
        # The file only saves time: a full disk must not make any call fail.
        try:
            with contextlib.suppress(OSError, StoreError):
                self.publish()
        finally:
            _publishers.release()

    def rewrite(self) -> bool:
        """Write the file again now, without removed rows; say whether that succeeded."""
        for _ in range(_MOST_ATTEMPTS):
            with self._database.snapshot() as source:
                if self.view(source) is not None:
                    break  # otherwise another thread is ahead: begin a newer transaction
        else:
            self.discard()
        with contextlib.suppress(OSError):
            self.publish()
            return self._exchange is None or self._exchange.offer(thorough=True)
        return False

    def start_anew(self) -> None:
        """Discard the contents in memory; keep the file, which is still used if it fits."""
        with self._lock:
            self._contents = self._view = None
        self.on_resize()

    def discard(self) -> None:
        """Discard the index in memory, its file, and the copy of the file."""
        with self._publishing, self._lock:
            self._contents = self._view = None
            self._remove_file()
        if self._exchange is not None:
            self._exchange.clear()
        self.on_resize()

    def _remove_file(self) -> None:
        if self._database.writable:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
