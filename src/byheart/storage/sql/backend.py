"""Define the interface of a database: everything that the shared SQL cannot do by itself.

A second database implements this, `Connection`, `IndexLookup` and `Ledger`, and its own schema.
All rows are read and written by the statements of this folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from byheart.contracts import IndexLookup, Ledger, Remove
from byheart.index.index import Index
from byheart.model import Finding, Removal, Sizes
from byheart.storage.sql.connection import Connection, Database


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

    @property
    def index_path(self) -> Path:
        """Name the file that the index is published to."""
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

    def back_up(self, path: Path) -> None:
        """Copy the database to a file as it is at this moment."""
        ...

    def examine(self, index: Index, *, quick: bool, fix: bool) -> list[Finding]:
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

    def close(self) -> None:
        """Release files and connections."""
        ...
