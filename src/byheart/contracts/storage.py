"""Define the storage interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from byheart.contracts.ledger import Ledger
from byheart.contracts.notes import Note
from byheart.contracts.reader import Reader
from byheart.contracts.records import PendingChunk
from byheart.contracts.writer import Removed, Writer
from byheart.model import Finding, Inventory, Removal, Status

# Announces questions to a reader.
Expecting = Callable[[Reader], None]
# Removes memories within a transaction, and counts the removed rows.
Remove = Callable[[Writer, Sequence[str]], Removed]


class Bookmarks(Protocol):
    """Record how far growing files were read; a lost bookmark only means reading them again."""

    def find(self, path: str, space: str) -> str | None:
        """Give the bookmark of a file, or `None`."""
        ...

    def put(self, path: str, space: str, mark: str) -> None:
        """Set the bookmark of a file."""
        ...


class Storage(Protocol):
    """Store memories. Every write is one transaction: it is done completely or not at all."""

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        ...

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        ...

    @property
    def is_remote(self) -> bool:
        """Say whether every question to the store is a round trip over a network."""
        ...

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the store, if they are."""
        ...

    @property
    def bookmarks(self) -> Bookmarks:
        """Give access to the bookmarks of growing files."""
        ...

    def reading(self, space: str | None = None) -> AbstractContextManager[Reader]:
        """Open a consistent view of a space, or of the whole store, by any process."""
        ...

    def searching(
        self, space: str, expecting: Expecting | None = None
    ) -> AbstractContextManager[Reader]:
        """Open a consistent view of a space for ranking and counting as well.

        `expecting` prefetches answers before the reader asks its own first questions.
        """
        ...

    def writing(self, space: str | None) -> AbstractContextManager[Writer]:
        """Open one transaction that reads and writes a space: all of it is done, or nothing.

        A transaction without a space changes what belongs to no space, such as models and API
        keys, and fields of any memory; it adds no memories and no vectors.
        """
        ...

    def claim(self, limit: int, seconds: float, without: Sequence[int] = ()) -> list[PendingChunk]:
        """Claim chunks of all spaces that wait for vectors, oldest first, for some seconds.

        Another process gets none of them until the claim ends, by the clock of the database; a file
        that is used on one machine only knows no claims. Leave out the chunks in `without`.
        """
        ...

    def hold(self, chunk_nos: Sequence[int], seconds: float) -> None:
        """Have claims of this process end so many seconds from now; 0 releases the chunks.

        A claim that another process has taken over stays as it is.
        """
        ...

    def erase(self, memory_ids: Sequence[str], space: str, remove: Remove) -> Removal:
        """Erase memories with every trace of them, and search for remaining traces.

        `remove` is called with some of the memories at a time, each time in a transaction.
        """
        ...

    def note(self, notes: Sequence[Note]) -> None:
        """Record minor events, now or a little later; never wait, and never fail."""
        ...

    def settle(self) -> None:
        """Make recorded notes visible to readers, unless another process is writing now."""
        ...

    def back_up(self, path: Path) -> bool:
        """Copy the store to a file as it is at this moment; other processes can keep using it.

        Return false, and write nothing, if the store is not a file: an export takes its place.
        """
        ...

    def refresh(self, *spaces: str) -> None:
        """Update the indexes of spaces, or of all spaces in use here, for the next searches."""
        ...

    def status(self, space: str) -> Status:
        """Describe the store."""
        ...

    def inventory(self, space: str) -> Inventory:
        """Count the contents of a space by kind, and the sizes of the store's files."""
        ...

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` where nothing can be written."""
        ...

    def report_work(self, to: Callable[[str, float], None]) -> None:
        """Report work on the index to a callback when it is done: its name and its seconds."""
        ...

    def inspect(self) -> list[Finding]:
        """Check the data that searches use, in little time; change nothing."""
        ...

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and all derived data; with `fix`, repair what can be derived."""
        ...

    def rebuild(self) -> None:
        """Rebuild all derived data from text, metadata and vectors."""
        ...

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        ...

    def close(self) -> None:
        """Release files, connections and memory."""
        ...
