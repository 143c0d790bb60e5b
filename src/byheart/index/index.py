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
from contextlib import AbstractContextManager
from pathlib import Path

from byheart.contracts import IndexCopy, IndexedDatabase, IndexSource, PostingStore
from byheart.errors import StoreError
from byheart.index import parts
from byheart.index.contents import Contents
from byheart.index.copy_exchange import CopyExchange
from byheart.index.file_coverage import least_unpublished
from byheart.index.memory_use import UNLOADED, MemoryUse
from byheart.index.posting_runs import fold, purge
from byheart.index.view import View
from byheart.model.damage import only_sound_rows
from byheart.system.file_locks import file_lock
from byheart.system.freed_memory import return_freed_memory

_MOST_ATTEMPTS = 50
# A file that lacks fewer changes is updated faster than the database answers about its copy.
_FAR_BEHIND = 50
# The pause after the file could not be written; it doubles with each failure.
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 60.0, 3600.0
# The threads of this process that publish beside searches.
_publishers = threading.BoundedSemaphore(2)
# How long to wait for a process that is writing the files: before removed rows are written out, and
# before a copy is loaded. To merge a gigabyte takes some ten seconds.
_LONGEST_WAIT_SECONDS, _LONGEST_FETCH_SECONDS = 60.0, 10.0
# In a large space, so many fresh chunks stay in memory, or this share of the least large space.
_MOST_FRESH, _FRESH_SHARE = 1 << 14, 50
# Files of another process are taken over if they have this share of the chunks that are known here.
_NEAR = 0.75


class Index:
    """Keep a view of the store up to date, and write it to its file on disk."""

    def __init__(
        self,
        path: Path,
        database: IndexedDatabase,
        copy: IndexCopy | None = None,
        postings: PostingStore | None = None,
    ) -> None:
        self.path = path
        self._database = database
        # Where the postings of the space are as soon as it is large.
        self._postings = postings
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
        local = self._read_files()
        # A file ahead of this transaction was written after it began: a later transaction uses it.
        if local is not None and local.change_no > source.last_change().number:
            local = None
        if local is not None and not local.can_follow(source):
            self._remove_files()
            local = None
        return self._fetch(source, local) or local or Contents.empty(source)

    def _fetch(self, source: IndexSource, local: Contents | None) -> Contents | None:
        """Load the copy of the database, if there is no file here that is nearly as new."""
        if self._exchange is None or not self._database.writable:
            return None
        found: list[Contents] = []
        last_change_no = source.last_change().number
        if local is not None and last_change_no - local.change_no < _FAR_BEHIND:
            return None

        def accept(received: parts.Loaded) -> bool:
            contents = Contents.from_files(received)
            fits = contents.can_follow(source)
            if contents.change_no > last_change_no and contents.change_no != self._ahead:
                fits = contents.store_id == source.store_id()
            if fits:
                found.append(contents)
            return fits

        started = time.perf_counter()
        with contextlib.suppress(OSError), self._writing_files(_LONGEST_FETCH_SECONDS) as held:
            there = parts.read_head(self.path)
            if local is None and there is not None:
                local = self._read_files()  # another process has loaded the copy meanwhile
                if local is not None and local.can_follow(source):
                    return local if local.change_no <= last_change_no else None
            coverage = None if local is None else local.coverage
            mode = self._database.prepare_publishing()
            if not held or not self._exchange.fetch(coverage, mode, accept):
                return None
            self.on_work("fetch", time.perf_counter() - started)
            return found[0]
        return None

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
        if self._postings is None:
            return contents.unpublished >= least_unpublished(contents.published.end.chunks)
        if self._is_large(contents) != contents.is_stored:
            return True
        least = least_unpublished(contents.published.end.chunks)
        if contents.is_stored:
            least = max(1, min(_MOST_FRESH, self._postings.local_chunks // _FRESH_SHARE))
        return contents.unpublished >= least

    def _is_large(self, contents: Contents) -> bool:
        return self._postings is not None and contents.is_large(self._postings.local_chunks)

    @property
    def is_stored(self) -> bool:
        """Say whether the database has the postings, except for the latest ones."""
        contents = self._contents
        return contents is not None and contents.is_stored

    def publish(self, *, compact: bool = False) -> bool:
        """Write the rows that the files lack; say whether the files have all rows now.

        With `compact`, write all files again without removed rows. Searches continue meanwhile. If
        the copy in the database is far enough behind, replace it too. If another process is writing
        the files, leave it to that process, or wait for it if they have to be compacted.
        """
        done = self._publish_files(compact)
        if self._exchange is not None:
            self._exchange.offer()
        return_freed_memory()
        self.on_resize()
        return done

    def _publish_files(self, compact: bool) -> bool:
        with self._publishing:
            try:
                self._database.prepare_publishing()
                wait_seconds = _LONGEST_WAIT_SECONDS if compact else 0.0
                with self._writing_files(wait_seconds) as held:
                    done = held and self._publish(compact)
            except (OSError, StoreError):
                self._pause()
                raise
            self._pause_seconds = self._pause_until = 0.0
            return done

    def _writing_files(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Keep other processes from writing the files, and say whether none is writing them."""
        mode = self._database.prepare_publishing()
        return file_lock(self.path.with_name(f"{self.path.name}-lock"), mode, wait_seconds)

    def _pause(self) -> None:
        # Each attempt lays out many rows, and a full disk usually stays full for a while.
        longer = max(_SHORTEST_PAUSE_SECONDS, 2 * self._pause_seconds)
        self._pause_seconds = min(longer, _LONGEST_PAUSE_SECONDS)
        self._pause_until = time.monotonic() + self._pause_seconds

    def _publish(self, compact: bool) -> bool:
        if compact and self._contents is not None:
            self._catch_up()  # with what other processes wrote to the files before it was our turn
        with self._lock:
            contents = self._contents
            frozen = None if contents is None else contents.frozen()
        if contents is None or frozen is None:
            return False
        head = parts.read_head(self.path)
        if frozen.is_stored or self._is_large(frozen):
            return self._publish_large(frozen, head, compact)
        if not compact and head is not None:
            if self._is_ours(head, frozen):
                if frozen.change_no == head.state["change_no"]:
                    if parts.read(self.path) is not None:
                        return True
                elif not frozen.is_wasteful:
                    self._append(contents, frozen)
                    return True
            elif self._is_near(head, frozen) and (others := self._read_files()) is not None:
                with self._lock:
                    self._contents = others
                return True
        self._rewrite(frozen)
        return True

    def _publish_large(self, frozen: Contents, head: parts.Head | None, compact: bool) -> bool:
        """Move the postings of a large space to the database, or those of a smaller one back.

        Then write the rest as one part. Leave it to another process that is moving postings now.
        """
        assert self._postings is not None, "the space has a place for postings"
        is_large = self._is_large(frozen)
        if not compact and head is not None and bool(head.state.get("stored")) == is_large:
            is_newer = head.state["change_no"] >= frozen.change_no
            if is_newer and self._is_near(head, frozen) and (others := self._read_files()):
                self._replace(others)
                return True
        if is_large != frozen.is_stored and self._exchange is not None:
            self._exchange.clear()  # the copy is of the other kind
        if not is_large:
            # Read everything again: the postings are not here.
            with self._database.snapshot() as source, only_sound_rows():
                frozen = Contents.empty(source)
                frozen.catch_up(source, source.last_change())
        started, stored_to = time.perf_counter(), None
        with self._postings.changing(wait=compact) as changes:
            if changes is None:
                return False
            changes.retire(not is_large)
            if compact:
                purge(changes)
            if is_large:
                stored_to = fold(changes, frozen.fresh_postings)
        written = self._write(frozen.compacted(stored_to), 0)
        self.on_work("publish", time.perf_counter() - started)
        if written is not None:
            self._replace(_of_one_part(written))
        return True

    def _replace(self, contents: Contents) -> None:
        """Continue from the files, and show them at once unless the view is of another change."""
        with self._lock:
            self._contents = contents
            if self._view is not None and self._view.change == contents.change:
                self._view = contents.view()

    def _is_ours(self, head: parts.Head, contents: Contents) -> bool:
        """Say whether the files are those that the contents continue from."""
        published = contents.published
        is_known = head.head_id == published.head_id and not published.vectors_dropped
        return is_known and parts.has_parts(self.path, head)

    def _is_near(self, head: parts.Head, contents: Contents) -> bool:
        """Say whether files that another process wrote have most of these contents."""
        state = head.state
        if state["store_id"] != contents.store_id:
            return False
        if state["change_no"] < contents.change_no:
            most = _NEAR * contents.coverage.chunks
            if head.coverage.get("chunks", 0) < most or state["model_no"] != contents.model_no:
                return False
        with self._database.snapshot() as source:
            return bool(source.stamp_of(state["change_no"]) == state["stamp"])

    def _append(self, contents: Contents, frozen: Contents) -> None:
        """Write the rows that the files lack, and continue from the files."""
        started = time.perf_counter()
        kept = frozen.published.count_kept(frozen.rows)
        written = self._write(frozen, kept)
        self.on_work("publish", time.perf_counter() - started)
        with self._lock:
            if written is None or self._contents is not contents:
                return
            view = self._view
            is_shown = view is not None and view.change == contents.change
            if contents.settle(frozen, kept, written) and is_shown:
                self._view = contents.view()

    def _rewrite(self, frozen: Contents) -> None:
        """Write all rows but the removed ones as one part, and continue from it."""
        started = time.perf_counter()
        written = self._write(frozen.compacted(), 0)
        self.on_work("publish", time.perf_counter() - started)
        with self._lock:
            if written is not None:
                self._contents = _of_one_part(written)

    def _write(self, contents: Contents, kept: int) -> parts.Written | None:
        about = {"state": contents.state, "coverage": contents.coverage.as_dict}
        published = contents.published
        return parts.write(
            self.path,
            published.parts[:kept],
            published.lay_out(contents.rows, kept),
            about,
            self._database.prepare_publishing(),
        )

    def _read_files(self) -> Contents | None:
        # Files that lack one of the arrays are of an earlier version: everything is read again.
        loaded = parts.read(self.path)
        return None if loaded is None else Contents.from_files(loaded)

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
        """Write the files again now, without removed rows; say whether that succeeded."""
        if not self._catch_up():
            self.discard()
        with contextlib.suppress(OSError):
            done = self.publish(compact=True)
            return done and (self._exchange is None or self._exchange.offer(thorough=True))
        return False

    def _catch_up(self) -> bool:
        for _ in range(_MOST_ATTEMPTS):
            with self._database.snapshot() as source:
                if self.view(source) is not None:
                    return True
            # Otherwise another thread is ahead: begin a newer transaction.
        return False

    def start_anew(self) -> None:
        """Discard the contents in memory; keep the file, which is still used if it fits."""
        with self._lock:
            self._contents = self._view = None
        self.on_resize()

    def discard(self) -> None:
        """Discard the index in memory, its file, the copy of the file, and stored postings."""
        self.discard_files()
        if self._postings is not None and self._database.writable:
            with self._postings.changing(wait=True) as changes:
                if changes is not None:
                    changes.remove([run.run_no for run in changes.runs()])

    def discard_files(self) -> None:
        """Discard the index in memory, its file, and the copy of the file."""
        with self._publishing, self._lock:
            self._contents = self._view = None
            self._remove_files()
        if self._exchange is not None and self._database.writable:
            self._exchange.clear()
        self.on_resize()

    def _remove_files(self) -> None:
        if self._database.writable:
            parts.remove(self.path)


def _of_one_part(written: parts.Written) -> Contents:
    """Continue from files that were written as one part."""
    return Contents.from_files(parts.Loaded(written.head, [(written.part, written.content)]))
