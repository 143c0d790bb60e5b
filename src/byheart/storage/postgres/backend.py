"""Implement the interface of a database over one PostgreSQL database."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path

from byheart.contracts import COPY_MARK, IndexCopy, Ledger, PostingStore, Remove
from byheart.errors import StoreReadOnly
from byheart.index.index import Index
from byheart.model import Finding, Removal, Sizes
from byheart.storage.postgres import claims, erasing, repairs
from byheart.storage.postgres.address import Address
from byheart.storage.postgres.connection import PostgresConnection
from byheart.storage.postgres.database import Database
from byheart.storage.postgres.doctor_checks import Doctor
from byheart.storage.postgres.index_lookup import PostgresIndexLookup
from byheart.storage.postgres.ledger import PostgresLedger
from byheart.storage.postgres.migrations import migrate
from byheart.storage.postgres.posting_tables import PostgresPostingStore
from byheart.storage.postgres.published_index import PublishedIndex
from byheart.storage.sql.backend import IndexOf
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.storage import INDEX_MEMORY_BYTES, SqlStorage
from byheart.system.private_files import FILE_MODE, make_private_folder

_MOST_CONNECTIONS = 10
LOCAL_CHUNKS = 1_000_000
_VALUES = "SELECT key, value FROM store WHERE key IN ('store_id', ?)"


class PostgresStorage(SqlStorage):
    """Keep memories in a PostgreSQL database."""

    def __init__(
        self,
        address: Address,
        cache_dir: Path,
        *,
        busy_timeout_seconds: float = 30,
        index_memory_bytes: int = INDEX_MEMORY_BYTES,
        local_chunks: int = LOCAL_CHUNKS,
        create: bool = True,
        read_only: bool = False,
        for_copy: bool = False,
    ) -> None:
        backend = PostgresBackend(
            address,
            cache_dir,
            busy_timeout_seconds,
            local_chunks=local_chunks,
            create=create,
            read_only=read_only,
        )
        super().__init__(backend, index_memory_bytes, for_copy=for_copy)


class PostgresBackend:
    """Open transactions on one PostgreSQL database, and look after it."""

    def __init__(
        self,
        address: Address,
        cache_dir: Path,
        busy_timeout_seconds: float,
        *,
        local_chunks: int = LOCAL_CHUNKS,
        create: bool = True,
        read_only: bool = False,
    ) -> None:
        self.database = Database(address, busy_timeout_seconds, _MOST_CONNECTIONS)
        self.database.writable &= not read_only
        try:
            self.schema_version = migrate(self.database, create=create)
            with self.database.reading(None) as connection:
                values = dict(connection.all(_VALUES, (COPY_MARK,)))
        except BaseException:
            self.database.close()
            raise
        # The name under which this process claims chunks.
        self._owner = uuid.uuid4().hex
        self._indexes = cache_dir / "indexes" / str(values["store_id"])
        self._local_chunks = local_chunks
        self._copy_mark: str | None = values.get(COPY_MARK)
        self._ledger = PostgresLedger(self.database.connected_alone, address.schema)

    @property
    def location(self) -> str:
        """Name the database, without secrets."""
        return self.database.address.location

    @property
    def writable(self) -> bool:
        """Say whether the database takes writes."""
        return self.database.writable

    @property
    def is_remote(self) -> bool:
        """Say yes: the server may be another machine."""
        return True

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` if nothing can be written."""
        return self._ledger if self.writable else None

    @property
    def copy_mark(self) -> str | None:
        """Give the mark of a copy that the database had when it was opened."""
        return self._copy_mark

    def refuse_writes(self, error: StoreReadOnly) -> None:
        """Have every attempt to write raise this error from now on."""
        self.database.writable, self.database.refusal = False, error

    def trouble(self) -> str | None:
        """Report nothing: the server keeps what it has acknowledged."""
        return None

    def reading(self, space: str | None) -> AbstractContextManager[PostgresConnection]:
        """Hold one snapshot of everything committed before; later writes do not change it."""
        return self.database.reading(space)

    def writing(self, space: str | None) -> AbstractContextManager[PostgresConnection]:
        """Hold the write lock of a space or of the store: commit everything, or nothing."""
        return self.database.writing(space)

    def noting(self, space: str | None, wait_ms: int) -> AbstractContextManager[PostgresConnection]:
        """Begin a minor write that does not wait for the disk, nor long for other writers."""
        return self.database.noting(space, wait_ms)

    def lookup(self, connection: Connection) -> PostgresIndexLookup:
        """Answer the queries of an array index in the snapshot of a connection."""
        assert isinstance(connection, PostgresConnection)
        return PostgresIndexLookup(connection)

    def index_scope(self, space: str | None) -> str | None:
        """Name the space itself: each space has an index of its own."""
        return space

    def index_scopes(self) -> list[str | None]:
        """List all spaces."""
        with self.database.reading(None) as connection:
            return [row[0] for row in connection.all("SELECT name FROM spaces ORDER BY space_no")]

    def index_path(self, scope: str | None) -> Path:
        """Name the file of a space in the cache folder."""
        name = blake2b((scope or "").encode(), digest_size=16).hexdigest()
        return self._indexes / f"{name}.index"

    def index_copy(self, scope: str | None) -> IndexCopy | None:
        """Give the place for a copy of the index file of a space."""
        if scope is None:
            return None
        return PublishedIndex(self.database.connected_alone, self.database.schema, scope)

    def posting_store(self, scope: str | None) -> PostingStore | None:
        """Give the place for the postings of a space that is large."""
        if scope is None:
            return None
        return PostgresPostingStore(self.database, scope, self._local_chunks)

    def prepare_publishing(self) -> int:
        """Make the folder of index files, and give the mode of private files."""
        make_private_folder(self._indexes)
        return FILE_MODE

    def sizes(self) -> Sizes:
        """Give the sizes of the tables, of their indexes and of the index files."""
        with self.database.reading(None) as connection:
            store = connection.get(
                "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE c.relkind = 'r' AND n.nspname = ANY(?)",
                (self.database.schemas,),
            )
        files = self._indexes.glob("*.index*") if self._indexes.is_dir() else ()
        return Sizes(int(store), 0, sum(each.stat().st_size for each in files), 0, 0)

    def back_up(self, path: Path) -> bool:  # noqa: ARG002
        """Write nothing: the tools of the server copy a database."""
        return False

    def examine(self, index_of: IndexOf, *, quick: bool, fix: bool) -> list[Finding]:
        """Check the database and all derived data; with `fix`, repair what can be derived."""
        doctor = Doctor(self.database, index_of, self.index_scopes())
        return doctor.inspect() if quick else doctor.examine(fix=fix)

    def rebuild(self) -> None:
        """Rebuild the data that the database derives from texts, metadata and vectors."""
        repairs.rebuild(self.database, self.index_scopes())

    def compact(self) -> None:
        """Compact the tables and the log of changes."""
        repairs.compact(self.database, self.index_scopes())

    def erase(self, index: Index, memory_ids: Sequence[str], space: str, remove: Remove) -> Removal:
        """Erase memories from the tables and the index, and search both for their texts."""
        return erasing.erase(self.database, index, memory_ids, space, remove)

    def claim(self, limit: int, seconds: float, without: Sequence[int]) -> list[int]:
        """Claim chunks that wait for vectors for some seconds, and give their numbers."""
        return claims.claim(self.database, self._owner, limit, seconds, without)

    def hold(self, chunk_nos: Sequence[int], seconds: float) -> None:
        """Have own claims end so many seconds from now; 0 releases the chunks."""
        claims.hold(self.database, self._owner, chunk_nos, seconds)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
