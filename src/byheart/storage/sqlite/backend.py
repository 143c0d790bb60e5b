"""Implement the interface of a database over one SQLite file.

Modules of upkeep are imported when they are used: a search or a save needs none of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from byheart.contracts import Ledger, Remove
from byheart.errors import StoreReadOnly, StoreUnreachable
from byheart.index.index import Index
from byheart.model import Finding, Removal, Sizes
from byheart.storage.sql.backend import IndexOf
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.index_source import SqlIndexSource
from byheart.storage.sql.storage import SqlStorage
from byheart.storage.sqlite import files
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.index_lookup import SqliteIndexLookup
from byheart.storage.sqlite.ledger import SqliteLedger
from byheart.storage.sqlite.migrations import migrate

# The log of changes keeps this many of the latest changes.
_CHANGES_KEPT = 10_000


class SqliteStorage(SqlStorage):
    """Keep memories in one SQLite file."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_seconds: float = 30,
        read_only: bool = False,
        for_copy: bool = False,
    ) -> None:
        backend = SqliteBackend(path, busy_timeout_seconds, read_only=read_only)
        super().__init__(backend, for_copy=for_copy)


class SqliteBackend:
    """Open transactions on one SQLite file, and look after it."""

    def __init__(self, path: Path, busy_timeout_seconds: float, *, read_only: bool = False) -> None:
        # Resolve links: otherwise the log, the index and the counts would be beside the link.
        try:
            path = path.resolve()
        except (OSError, RuntimeError) as error:  # circular links
            raise StoreUnreachable(f"{path} leads nowhere: {error}", "check the links") from error
        if not path.name:
            raise StoreUnreachable(f"{path} is a folder, not a store", "name a file in it")
        self.database = Database(path, busy_timeout_seconds, read_only=read_only)
        try:
            self.schema_version = migrate(self.database, _rebuild_outdated_words)
        except BaseException:
            self.database.close()
            raise
        self._ledger = SqliteLedger(path.with_name(path.name + "-stats"), path)

    @property
    def location(self) -> str:
        """Name the file."""
        return str(self.database.path)

    @property
    def writable(self) -> bool:
        """Say whether the file can be written."""
        return self.database.writable and self.database.refusal is None

    @property
    def is_remote(self) -> bool:
        """Say no: SQLite answers in this process."""
        return False

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` if nothing can be written."""
        return self._ledger if self.writable else None

    @property
    def copy_mark(self) -> str | None:
        """Give the mark of a copy that the file had when it was opened."""
        return self.database.change_mark.copied_from

    def refuse_writes(self, error: StoreReadOnly) -> None:
        """Have every attempt to write raise this error from now on."""
        self.database.refusal = error

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the file, if they are."""
        return self.database.change_mark.trouble()

    def reading(self, space: str | None) -> AbstractContextManager[SqliteConnection]:  # noqa: ARG002
        """Hold one snapshot of everything committed before; later writes do not change it."""
        return self.database.reading()

    def writing(self, space: str | None) -> AbstractContextManager[SqliteConnection]:  # noqa: ARG002
        """Hold the write lock for one transaction: commit all of it, or nothing."""
        return self.database.writing()

    def noting(
        self,
        space: str | None,  # noqa: ARG002
        wait_ms: int,
    ) -> AbstractContextManager[SqliteConnection]:
        """Hold the write lock for a minor write that does not wait for the disk."""
        return self.database.noting(wait_ms)

    def lookup(self, connection: Connection) -> SqliteIndexLookup:
        """Answer the queries of an array index in the snapshot of a connection."""
        assert isinstance(connection, SqliteConnection)
        return SqliteIndexLookup(connection)

    def index_scope(self, space: str | None) -> None:  # noqa: ARG002
        """Name no space: one index finds the memories of all spaces of a file."""
        return

    def index_scopes(self) -> list[str | None]:
        """List the one scope of a file."""
        return [None]

    def index_path(self, scope: str | None) -> Path:  # noqa: ARG002
        """Name the file beside the database."""
        path = self.database.path
        return path.with_name(path.name + "-index")

    def posting_store(self, scope: str | None) -> None:  # noqa: ARG002
        """Give no place: the index is beside the database anyway."""
        return

    def index_copy(self, scope: str | None) -> None:  # noqa: ARG002
        """Give none: the file beside the database is there for all processes."""
        return

    def prepare_publishing(self) -> int:
        """Remove half-written index files, and give the mode of the database file."""
        files.remove_leftovers(self.database.path)
        return self.database.path.stat().st_mode & 0o777

    def sizes(self) -> Sizes:
        """Give the sizes of the files."""
        return files.sizes(self.database.path)

    def back_up(self, path: Path) -> bool:
        """Copy the store to a file as it is at this moment; other processes can keep using it."""
        from byheart.storage.sqlite.copying import copy

        copy(self.database, path)
        return True

    def examine(self, index_of: IndexOf, *, quick: bool, fix: bool) -> list[Finding]:
        """Check the file and all derived data; with `fix`, repair what can be derived."""
        from byheart.storage.sqlite import doctor_checks

        index = index_of(None)
        if quick:
            return doctor_checks.inspect(self.database, index)
        return doctor_checks.examine(self.database, index, self.schema_version, fix)

    def rebuild(self) -> None:
        """Rebuild the data that SQLite derives from texts, metadata and vectors."""
        from byheart.storage.sql.repairs import drop_unused_entities, rebuild_pending
        from byheart.storage.sqlite import repairs

        with self.database.writing() as connection:
            repairs.rebuild_words(connection)
            drop_unused_entities(connection)
            rebuild_pending(connection)
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
        from byheart.storage.sqlite.erasing import erase

        return erase(self.database, index, memory_ids, space, remove)

    def claim(self, limit: int, seconds: float, without: Sequence[int]) -> list[int]:  # noqa: ARG002
        """List chunks that wait for vectors: the processes of one machine need no claims."""
        with self.database.reading() as connection:
            rows = connection.all(
                "SELECT chunk_no FROM pending_vectors WHERE chunk_no NOT IN "
                "(SELECT value FROM json_each(?)) ORDER BY chunk_no LIMIT ?",
                (json.dumps(list(without)), limit),
            )
        return [row[0] for row in rows]

    def hold(self, chunk_nos: Sequence[int], seconds: float) -> None:
        """Do nothing: there are no claims."""

    def close(self) -> None:
        """Release files and connections."""
        self.database.close()


def _rebuild_outdated_words(connection: SqliteConnection) -> None:
    from byheart.storage.sqlite.repairs import rebuild_outdated_words

    rebuild_outdated_words(connection)
