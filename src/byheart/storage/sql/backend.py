"""Define the interface of a database: everything that the shared SQL cannot do by itself.

A second database implements this, `Connection`, `IndexLookup` and `Ledger`, and its own schema.
All rows are read and written by the statements of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from byheart.contracts import IndexCopy, IndexLookup, Ledger, PostingStore, Remove
from byheart.errors import StoreReadOnly
from byheart.index.index import Index
from byheart.model import Finding, Removal, Sizes
from byheart.storage.sql.connection import Connection, Database

# Gives the index of a space, or of the whole store.
IndexOf = Callable[[str | None], Index]


class Backend(Database, Protocol):
    """Open transactions on one database, and look after it."""

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        ...

    @property
    def schema_version(self) -> int:
        """Give the number of the schema that the database has."""
        ...

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` where nothing can be written."""
        ...

    def index_scope(self, space: str | None) -> str | None:
        """Name the space whose index finds the memories of a space; `None` is the whole store's."""
        ...

    def index_scopes(self) -> list[str | None]:
        """List all scopes that have an index."""
        ...

    def index_path(self, scope: str | None) -> Path:
        """Name the file that the index of a scope is published to."""
        ...

    def index_copy(self, scope: str | None) -> IndexCopy | None:
        """Give the place in the database for a copy of that file; `None` where it has none."""
        ...

    def posting_store(self, scope: str | None) -> PostingStore | None:
        """Give the place for the postings of a large space; `None` where all are local."""
        ...

    @property
    def copy_mark(self) -> str | None:
        """Give the mark of a copy that the database had when it was opened."""
        ...

    def refuse_writes(self, error: StoreReadOnly) -> None:
        """Have every attempt to write raise this error from now on."""
        ...

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the database, if they are."""
        ...

    def lookup(self, connection: Connection) -> IndexLookup:
        """Answer the queries of an array index in the snapshot of a connection."""
        ...

    def prepare_publishing(self) -> int:
        """Prepare the folder for a new index file, and give the file mode of that file."""
        ...

    def sizes(self) -> Sizes:
        """Give the sizes of the files."""
        ...

    def back_up(self, path: Path) -> bool:
        """Copy the database to a file as it is at this moment; return false if it is no file."""
        ...

    def examine(self, index_of: IndexOf, *, quick: bool, fix: bool) -> list[Finding]:
        """Check the database and all derived data; with `fix`, repair what can be derived.

        `quick` checks only the data that searches use.
        """
        ...

    def rebuild(self) -> None:
        """Rebuild the data that the database derives from texts, metadata and vectors."""
        ...

    def compact(self) -> None:
        """Compact the database and its indexes."""
        ...

    def erase(self, index: Index, memory_ids: Sequence[str], space: str, remove: Remove) -> Removal:
        """Erase memories with every trace of them, and search for remaining traces."""
        ...

    def claim(self, limit: int, seconds: float, without: Sequence[int]) -> list[int]:
        """Claim chunks that wait for vectors for some seconds, and give their numbers."""
        ...

    def hold(self, chunk_nos: Sequence[int], seconds: float) -> None:
        """Have claims of this process end so many seconds from now; 0 releases the chunks."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
