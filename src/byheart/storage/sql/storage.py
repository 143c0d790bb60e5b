"""Implement the `Storage` contract over any SQL database and the index derived from it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from byheart.contracts import (
    CopyMark,
    Expecting,
    Ledger,
    Note,
    PendingChunk,
    Reader,
    Remove,
    Writer,
)
from byheart.errors import (
    Hint,
    Placeholder,
    Private,
    StoreError,
    StoreReadOnly,
    name_store,
    spell_shell,
)
from byheart.index.array_search import ArraySearch
from byheart.index.index import Index
from byheart.index.pool import IndexPool
from byheart.model import Finding, Inventory, Removal, Status
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.bookmarks import SqlBookmarks
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.index_source import SqlIndexedDatabase, SqlIndexSource
from byheart.storage.sql.model_rows import SqlModelRows
from byheart.storage.sql.notes import Notes
from byheart.storage.sql.reading import SqlReader
from byheart.storage.sql.writer import SqlWriter

_MOST_ATTEMPTS = 50
INDEX_MEMORY_BYTES = 1 << 30


class AheadOfSnapshot(Exception):
    """Report that the index is ahead of this transaction: begin a new transaction."""


class PostingsMissing(AheadOfSnapshot):
    """Report that this transaction does not see all stored postings that the index relies on."""

    def __init__(self, last_chunk_no: int) -> None:
        super().__init__()
        self.last_chunk_no = last_chunk_no


class SqlStorage:
    """Keep memories in a database that many processes may have open."""

    def __init__(
        self,
        backend: Backend,
        index_memory_bytes: int = INDEX_MEMORY_BYTES,
        *,
        for_copy: bool = False,
    ) -> None:
        self._backend = backend
        # A process that copies to this store may write to it, others only when the copy is done.
        self._unfinished = None if for_copy else _unfinished(backend)
        if self._unfinished is not None:
            backend.refuse_writes(self._unfinished)
        self._indexes = IndexPool(self._make_index, index_memory_bytes)
        self.bookmarks = SqlBookmarks(backend)
        # The scopes that this process has written to since it last searched there.
        self._written: set[str | None] = set()
        self._notes = Notes(backend)

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        return self._backend.location

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        return self._backend.writable

    @property
    def is_remote(self) -> bool:
        """Say whether every question to the store is a round trip over a network."""
        return self._backend.is_remote

    def trouble(self) -> str | None:
        """Report that memories are missing from the store, if they are."""
        if self._unfinished is not None:
            return Hint(self._unfinished.message, ": ", self._unfinished.hint)
        return self._backend.trouble()

    @contextmanager
    def reading(self, space: str | None = None) -> Iterator[Reader]:
        """Open a consistent view of a space, or of the whole store, by any process."""
        self._notes.settle_counts()
        with self._backend.reading(space) as connection:
            yield self._reader(connection, space)

    @contextmanager
    def searching(self, space: str, expecting: Expecting | None = None) -> Iterator[Reader]:
        """Open a consistent view with the index at the same moment, for ranking and counting."""
        self._notes.settle_counts()
        with self._attached(space, expecting) as reader:
            yield reader
        index = self._index(space)
        if index.unpublished():
            index.publish_in_background()

    def _index(self, space: str | None) -> Index:
        return self._indexes.of(self._backend.index_scope(space))

    def _make_index(self, scope: str | None) -> Index:
        backend = self._backend
        database = SqlIndexedDatabase(backend, scope)
        copy, postings = backend.index_copy(scope), backend.posting_store(scope)
        return Index(backend.index_path(scope), database, copy, postings)

    def _reader(self, connection: Connection, space: str | None) -> SqlReader:
        def attach(now: int) -> ArraySearch:
            index, lookup = self._index(space), self._backend.lookup(connection)
            view = index.view(SqlIndexSource(connection))
            if view is None:
                raise AheadOfSnapshot
            if view.stored is not None:
                stored = lookup.stored_postings()
                if stored is None or stored.covered_to() < view.stored.last_chunk_no:
                    raise PostingsMissing(view.stored.last_chunk_no)
                view = view.bound_to(stored)
            return ArraySearch(view, lookup, now)

        return SqlReader(connection, attach, is_remote=self.is_remote)

    @contextmanager
    def _attached(
        self, space: str | None, expecting: Expecting | None = None
    ) -> Iterator[SqlReader]:
        missing_no = 0
        with contextlib.ExitStack() as stack:
            for attempt in itertools.count():
                connection = stack.enter_context(self._backend.reading(space))
                reader = self._reader(connection, space)
                self._prefetch(connection, reader, space)
                if expecting is not None:
                    expecting(reader)
                try:
                    _ = reader.index
                    break
                except AheadOfSnapshot as error:
                    # Another thread updated the index meanwhile: begin a newer transaction.
                    stack.close()
                    last_no = error.last_chunk_no if isinstance(error, PostingsMissing) else 0
                    if 0 < last_no <= missing_no:
                        # Postings may have been stored after the first transaction began. A later
                        # one does not see them either: they were removed since the file was
                        # written, so read all texts again. Runs of other servers stay.
                        self._index(space).discard_files()
                    missing_no = last_no
                    if attempt == _MOST_ATTEMPTS:
                        # Perhaps an older file replaced the store: discard the index.
                        self._index(space).start_anew()
            yield reader

    def _prefetch(self, connection: Connection, reader: SqlReader, space: str | None) -> None:
        """Ask at once for everything that a search asks for anyway."""
        source, scope = SqlIndexSource(connection), self._backend.index_scope(space)
        connection.prefetch(source.last_change, reader.models.read)
        if self._index(space).is_stored:
            stored = self._backend.lookup(connection).stored_postings()
            connection.prefetch(*([] if stored is None else [stored.covered_to]))
        if scope in self._written:
            self._written.discard(scope)
            self._index(space).prefetch(source)

    @contextmanager
    def writing(self, space: str | None) -> Iterator[Writer]:
        """Open one transaction that reads and writes a space: all of it is done, or nothing."""
        self._notes.settle_counts()
        with self._backend.writing(space) as connection:
            yield SqlWriter(connection)
        self._written.add(self._backend.index_scope(space))

    def claim(self, limit: int, seconds: float, without: Sequence[int] = ()) -> list[PendingChunk]:
        """Claim chunks of all spaces that wait for vectors, oldest first, for some seconds."""
        numbers = self._backend.claim(limit, seconds, without)
        if not numbers:
            return []
        with self._backend.reading(None) as connection:
            return SqlModelRows(connection).waiting(numbers)

    def hold(self, chunk_nos: Sequence[int], seconds: float) -> None:
        """Have claims of this process end so many seconds from now; 0 releases the chunks."""
        self._backend.hold(chunk_nos, seconds)

    def erase(self, memory_ids: Sequence[str], space: str, remove: Remove) -> Removal:
        """Erase memories with every trace of them, and search for remaining traces."""
        return self._backend.erase(self._index(space), memory_ids, space, remove)

    def note(self, notes: Sequence[Note]) -> None:
        """Record minor events, now or a little later; never wait, and never fail."""
        self._notes.add(notes)

    def settle(self) -> None:
        """Make recorded notes visible to readers, unless another process is writing now."""
        self._notes.settle()

    def status(self, space: str) -> Status:
        """Describe the store."""
        with self._attached(space) as reader:
            state = reader.index.state(space)
            _, vectors = reader.index.inventory(space)
            sessions = reader.count_sessions(space)
        with self._backend.reading(None) as connection:
            spaces = self._reader(connection, None).count_spaces()
        sizes = self._backend.sizes()
        return Status(
            store=self.location,
            space=space,
            schema_version=self._backend.schema_version,
            index=state,
            vectors=vectors,
            spaces=spaces,
            sessions=sessions,
            size_bytes=sizes.store_bytes + sizes.log_bytes,
            index_bytes=sizes.index_bytes,
            writable=self.writable,
            degraded=None,
        )

    def back_up(self, path: Path) -> bool:
        """Copy the store to a file as it is at this moment; other processes can keep using it."""
        return self._backend.back_up(path)

    def inventory(self, space: str) -> Inventory:
        """Count the contents of a space by kind, and the sizes of the store's files."""
        with self._attached(space) as reader:
            state = reader.index.state(space)
            kinds, vectors = reader.index.inventory(space)
        return Inventory(state, kinds, vectors, self._backend.sizes())

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` if nothing can be written."""
        return self._backend.ledger

    def report_work(self, to: Callable[[str, float], None]) -> None:
        """Report work on the index to a callback when it is done."""
        self._indexes.on_work = to

    def refresh(self, *spaces: str) -> None:
        """Update the indexes of spaces, or all loaded ones; write each file that is far behind."""
        # Spaces may share an index.
        scopes = dict.fromkeys(map(self._backend.index_scope, spaces))
        for scope in scopes or self._loaded():
            with self._attached(scope):
                pass
            if self._index(scope).unpublished():
                self._publish(scope)

    def _loaded(self) -> list[str | None]:
        return self._indexes.keys() or self._backend.index_scopes()

    def inspect(self) -> list[Finding]:
        """Check the data that searches use, in little time; change nothing."""
        return self._backend.examine(self._index, quick=True, fix=False)

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and all derived data; with `fix`, repair what can be derived."""
        findings = self._backend.examine(self._index, quick=False, fix=fix)
        if self._unfinished is None:
            return findings
        message, hint = self._unfinished.message, self._unfinished.hint
        return [Finding("copy", False, message, hint), *findings]

    def rebuild(self) -> None:
        """Rebuild all derived data from text, metadata and vectors."""
        self._backend.rebuild()
        for scope in self._backend.index_scopes():
            self._index(scope).discard()
            self._update_index(scope)

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        self._backend.compact()
        for scope in self._backend.index_scopes():
            self._update_index(scope)

    def _update_index(self, scope: str | None) -> None:
        with self._attached(scope):
            pass
        self._publish(scope, compact=True)

    def _publish(self, scope: str | None, *, compact: bool = False) -> None:
        # The files only save time: a full disk must not make the caller fail.
        with contextlib.suppress(OSError):
            self._index(scope).publish(compact=compact)

    def close(self) -> None:
        """Release files, connections and memory; leave an index file for the next process."""
        self._notes.flush()
        with contextlib.suppress(OSError, StoreError):
            self._indexes.publish(only_unpublished=True)
        self._backend.close()


def _unfinished(backend: Backend) -> StoreReadOnly | None:
    """Make the error for a store that is an unfinished copy of another one."""
    mark = CopyMark.from_text(backend.copy_mark)
    if mark is None or mark.finished_at is not None:
        return None
    source = Private(mark.source or "another store", "another store")
    command = spell_shell("copy", (mark.source or Placeholder("FROM"), backend.location), {})
    return StoreReadOnly(
        Hint(name_store(backend.location), " is an unfinished copy of ", source),
        Hint("finish it with: ", Private(command, "the command that began it")),
    )
