"""Implement the interface of a database over one SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from byheart.contracts import Ledger, Remove
from byheart.errors import StoreUnreachable
from byheart.index.index import Index
from byheart.model import Finding, Removal, Sizes
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.index_source import SqlIndexSource
from byheart.storage.sql.storage import SqlStorage
from byheart.storage.sqlite import copying, doctor_checks, erasing, files, repairs
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.index_lookup import SqliteIndexLookup
from byheart.storage.sqlite.ledger import SqliteLedger
from byheart.storage.sqlite.migrations import migrate

# The log of changes keeps this many of the latest changes.
_CHANGES_KEPT = 10_000


class SqliteStorage(SqlStorage):
    """Keep memories in one SQLite file."""

    def __init__(self, path: Path, *, busy_timeout_seconds: float = 30) -> None:
        super().__init__(SqliteBackend(path, busy_timeout_seconds))


class SqliteBackend:
    """Open transactions on one SQLite file, and look after it."""

    def __init__(self, path: Path, busy_timeout_seconds: float) -> None:
        # Resolve links: otherwise the log, the index and the counts would be beside the link.
        try:
            path = path.resolve()
        except (OSError, RuntimeError) as error:  # circular links
            raise StoreUnreachable(f"{path} leads nowhere: {error}", "check the links") from error
        if not path.name:
            raise StoreUnreachable(f"{path} is a folder, not a store", "name a file in it")
        self.database = Database(path, busy_timeout_seconds)
        try:
            self.schema_version = migrate(self.database)
        except BaseException:
            self.database.close()
            raise
        self.index_path = path.with_name(path.name + "-index")
        self._ledger = SqliteLedger(path.with_name(path.name + "-stats"), path)

    @property
    def location(self) -> str:
        """Name the file."""
        return str(self.database.path)

    @property
    def writable(self) -> bool:
        """Say whether the file can be written."""
        return self.database.writable

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` if nothing can be written."""
        return self._ledger if self.writable else None

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the file, if they are."""
        return self.database.change_mark.trouble()

    def reading(self) -> AbstractContextManager[SqliteConnection]:
        """Hold one snapshot of everything committed before; later writes do not change it."""
        return self.database.reading()

    def writing(self) -> AbstractContextManager[SqliteConnection]:
        """Hold the write lock for one transaction: commit all of it, or nothing."""
        return self.database.writing()

    def noting(self, wait_ms: int) -> AbstractContextManager[SqliteConnection]:
        """Hold the write lock for a minor write that does not wait for the disk."""
        return self.database.noting(wait_ms)

    def lookup(self, connection: Connection) -> SqliteIndexLookup:
        """Answer the queries of an array index in the snapshot of a connection."""
        assert isinstance(connection, SqliteConnection)
        return SqliteIndexLookup(connection)

    def prepare_publishing(self) -> int:
        """Remove half-written index files, and give the mode of the database file."""
        files.remove_leftovers(self.database.path)
        return self.database.path.stat().st_mode & 0o777

    def sizes(self) -> Sizes:
        """Give the sizes of the files."""
        return files.sizes(self.database.path)

    def back_up(self, path: Path) -> None:
        """Copy the store to a file as it is at this moment; other processes can keep using it."""
        copying.copy(self.database, path)

    def examine(self, index: Index, *, quick: bool, fix: bool) -> list[Finding]:
        """Check the file and all derived data; with `fix`, repair what can be derived."""
        if quick:
            return doctor_checks.inspect(self.database, index)
        return doctor_checks.examine(self.database, index, self.schema_version, fix)

    def rebuild(self) -> None:
        """Rebuild the data that SQLite derives from texts, metadata and vectors."""
        with self.database.writing() as connection:
            repairs.rebuild_words(connection)
            repairs.drop_unused_entities(connection)
            repairs.rebuild_pending(connection)
            repairs.rebuild_indexes(connection)

    def compact(self) -> None:
        """Compact the file, its keywords and its log of changes."""
        with self.database.writing() as connection:
            connection.run("INSERT INTO chunk_words (chunk_words) VALUES ('optimize')")
            # Keep the last change: every index and index file refers to it.
            last = SqlIndexSource(connection).last_change().number
            connection.run("DELETE FROM changes WHERE change_no < ?", (last - _CHANGES_KEPT,))
        with self.database.maintaining() as connection:
            for statement in ("VACUUM", "PRAGMA optimize", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.all(statement)

    def erase(self, index: Index, memory_ids: Sequence[str], space: str, remove: Remove) -> Removal:
        """Erase memories from every file of the store, and search the files for their texts."""
        return erasing.erase(self.database, index, memory_ids, space, remove)

    def close(self) -> None:
        """Release files and connections."""
        self.database.close()
