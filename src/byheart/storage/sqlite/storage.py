"""Implement the `Storage` contract over one SQLite file and the index derived from it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from byheart.contracts import (
    Ledger,
    Note,
    Reader,
    Remove,
    Writer,
)
from byheart.errors import StoreUnreachable
from byheart.index.candidates import ArraySearch
from byheart.index.index import Index
from byheart.model import Finding, Inventory, Removal, Status
from byheart.storage.sql.bookmarks import SqliteBookmarks
from byheart.storage.sql.notes import Notes
from byheart.storage.sql.reading import SqlReader
from byheart.storage.sql.writer import SqlWriter
from byheart.storage.sqlite import copying, doctor_checks, files, repairs
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.erasing import erase
from byheart.storage.sqlite.index_lookup import SqliteIndexLookup
from byheart.storage.sqlite.index_source import SqliteIndexedDatabase, SqliteIndexSource
from byheart.storage.sqlite.ledger import SqliteLedger
from byheart.storage.sqlite.migrations import migrate

_MOST_ATTEMPTS = 50


class AheadOfSnapshot(Exception):
    """Report that the index is ahead of this transaction: begin a new transaction."""


class SqliteStorage:
    """Keep memories in one SQLite file that many processes may have open."""

    def __init__(self, path: Path, *, busy_timeout_seconds: float = 30) -> None:
        # Resolve links: otherwise the log, the index and the counts would be beside the link.
        try:
            path = path.resolve()
        except (OSError, RuntimeError) as error:  # circular links
            raise StoreUnreachable(f"{path} leads nowhere: {error}", "check the links") from error
        self._database = Database(path, busy_timeout_seconds)
        # Read the mark before opening the store, so that the store can only be newer.
        known = self._database.change_mark.read()
        try:
            self.schema_version = migrate(self._database)
            with self._database.reading() as connection:
                self._database.change_mark.check(connection, known)
        except BaseException:
            self._database.close()
            raise
        index_path = path.with_name(path.name + "-index")
        self._index = Index(index_path, SqliteIndexedDatabase(self._database))
        self.bookmarks = SqliteBookmarks(self._database)
        self._notes = Notes(self._database)
        self._ledger = SqliteLedger(path.with_name(path.name + "-stats"), path)

    @property
    def location(self) -> str:
        """Name the file."""
        return str(self._database.path)

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        return self._database.writable

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the store, if they are."""
        return self._database.change_mark.trouble()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        with self._database.reading() as connection:
            yield self._reader(connection)

    @contextmanager
    def searching(self) -> Iterator[Reader]:
        """Open a consistent view with the index at the same moment, for ranking and counting."""
        with self._attached() as reader:
            yield reader
        if self._index.unpublished():
            self._index.publish_in_background()

    def _reader(self, connection: SqliteConnection) -> SqlReader:
        def attach(now: int) -> ArraySearch:
            view = self._index.view(SqliteIndexSource(connection))
            if view is None:
                raise AheadOfSnapshot
            return ArraySearch(view, SqliteIndexLookup(connection), now)

        return SqlReader(connection, attach)

    @contextmanager
    def _attached(self) -> Iterator[SqlReader]:
        with contextlib.ExitStack() as stack:
            for attempt in itertools.count():
                connection = stack.enter_context(self._database.reading())
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
        with self._database.writing() as connection:
            yield SqlWriter(connection)

    def erase(self, memory_ids: Sequence[str], space: str, remove: Remove) -> Removal:
        """Erase memories with every trace of them, and search for remaining traces."""
        return erase(self._database, self._index, memory_ids, space, remove)

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
        sizes = files.sizes(self._database.path)
        return Status(
            store=self.location,
            space=space,
            schema_version=self.schema_version,
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
        copying.copy(self._database, path)

    def inventory(self, space: str) -> Inventory:
        """Count the contents of a space by kind, and the sizes of the store's files."""
        with self._attached() as reader:
            state = reader.index.state(space)
            kinds, vectors = reader.index.inventory(space)
        return Inventory(state, kinds, vectors, files.sizes(self._database.path))

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` if nothing can be written."""
        return self._ledger if self.writable else None

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
        return doctor_checks.inspect(self._database, self._index)

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and all derived data; with `fix`, repair what can be derived."""
        return doctor_checks.examine(self._database, self._index, self.schema_version, fix)

    def rebuild(self) -> None:
        """Rebuild all derived data from text, metadata and vectors."""
        with self._database.writing() as connection:
            repairs.rebuild_words(connection)
            repairs.drop_unused_entities(connection)
            repairs.rebuild_pending(connection)
            repairs.rebuild_indexes(connection)
        self._index.discard()
        with self._attached():
            pass
        self._publish()

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        with self._database.writing() as connection:
            connection.run("INSERT INTO chunk_words (chunk_words) VALUES ('optimize')")
            # Keep the last change: every index and index file refers to it.
            last = SqliteIndexSource(connection).last_change().number
            connection.run("DELETE FROM changes WHERE change_no < ? - 10000", (last,))
        with self._database.maintaining() as connection:
            for statement in ("VACUUM", "PRAGMA optimize", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.all(statement)
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
        self._database.close()
