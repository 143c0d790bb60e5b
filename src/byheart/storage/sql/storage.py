"""Implement the `Storage` contract over any SQL database and the index derived from it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from byheart.contracts import Ledger, Note, Reader, Remove, Writer
from byheart.index.candidates import ArraySearch
from byheart.index.index import Index
from byheart.model import Finding, Inventory, Removal, Status
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.bookmarks import SqlBookmarks
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.index_source import SqlIndexedDatabase, SqlIndexSource
from byheart.storage.sql.notes import Notes
from byheart.storage.sql.reading import SqlReader
from byheart.storage.sql.writer import SqlWriter

_MOST_ATTEMPTS = 50


class AheadOfSnapshot(Exception):
    """Report that the index is ahead of this transaction: begin a new transaction."""


class SqlStorage:
    """Keep memories in a database that many processes may have open."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._index = Index(backend.index_path, SqlIndexedDatabase(backend))
        self.bookmarks = SqlBookmarks(backend)
        self._notes = Notes(backend)

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        return self._backend.location

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        return self._backend.writable

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the store, if they are."""
        return self._backend.trouble()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        with self._backend.reading() as connection:
            yield self._reader(connection)

    @contextmanager
    def searching(self) -> Iterator[Reader]:
        """Open a consistent view with the index at the same moment, for ranking and counting."""
        with self._attached() as reader:
            yield reader
        if self._index.unpublished():
            self._index.publish_in_background()

    def _reader(self, connection: Connection) -> SqlReader:
        def attach(now: int) -> ArraySearch:
            view = self._index.view(SqlIndexSource(connection))
            if view is None:
                raise AheadOfSnapshot
            return ArraySearch(view, self._backend.lookup(connection), now)

        return SqlReader(connection, attach)

    @contextmanager
    def _attached(self) -> Iterator[SqlReader]:
        with contextlib.ExitStack() as stack:
            for attempt in itertools.count():
                connection = stack.enter_context(self._backend.reading())
                reader = self._reader(connection)
                try:
                    _ = reader.index
                    break
                except AheadOfSnapshot:
                    # Another thread updated the index meanwhile: begin a newer transaction.
                    stack.close()
                    if attempt == _MOST_ATTEMPTS:
                        # Perhaps an older file replaced the store: discard the index.
                        self._index.start_anew()
            yield reader

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Open one transaction that reads and writes: all of it is done, or nothing."""
        with self._backend.writing() as connection:
            yield SqlWriter(connection)

    def erase(self, memory_ids: Sequence[str], space: str, remove: Remove) -> Removal:
        """Erase memories with every trace of them, and search for remaining traces."""
        return self._backend.erase(self._index, memory_ids, space, remove)

    def note(self, notes: Sequence[Note]) -> None:
        """Record minor events, now or a little later; never wait, and never fail."""
        self._notes.add(notes)

    def settle(self) -> None:
        """Make recorded notes visible to readers, unless another process is writing now."""
        self._notes.add(())

    def status(self, space: str) -> Status:
        """Describe the store."""
        with self._attached() as reader:
            state = reader.index.state(space)
            _, vectors = reader.index.inventory(space)
            spaces, sessions = reader.count_scopes(space)
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

    def back_up(self, path: Path) -> None:
        """Copy the store to a file as it is at this moment; other processes can keep using it."""
        self._backend.back_up(path)

    def inventory(self, space: str) -> Inventory:
        """Count the contents of a space by kind, and the sizes of the store's files."""
        with self._attached() as reader:
            state = reader.index.state(space)
            kinds, vectors = reader.index.inventory(space)
        return Inventory(state, kinds, vectors, self._backend.sizes())

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` if nothing can be written."""
        return self._backend.ledger

    def report_work(self, to: Callable[[str, float], None]) -> None:
        """Report work on the index to a callback when it is done."""
        self._index.on_work = to

    def refresh(self) -> None:
        """Update the index, and write its file if the file has fallen behind far enough."""
        with self._attached():
            pass
        if self._index.unpublished():
            self._publish()

    def inspect(self) -> list[Finding]:
        """Check the data that searches use, in little time; change nothing."""
        return self._backend.examine(self._index, quick=True, fix=False)

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and all derived data; with `fix`, repair what can be derived."""
        return self._backend.examine(self._index, quick=False, fix=fix)

    def rebuild(self) -> None:
        """Rebuild all derived data from text, metadata and vectors."""
        self._backend.rebuild()
        self._index.discard()
        self._update_index()

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        self._backend.compact()
        self._update_index()

    def _update_index(self) -> None:
        with self._attached():
            pass
        self._publish()

    def _publish(self) -> None:
        # The file only saves time: a full disk must not make the caller fail.
        with contextlib.suppress(OSError):
            self._index.publish()

    def close(self) -> None:
        """Release files, connections and memory; leave an index file for the next process."""
        self._notes.flush()
        if self._index.unpublished():
            self._publish()
        self._backend.close()
