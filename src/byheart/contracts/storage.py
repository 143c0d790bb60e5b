"""Define the storage interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from byheart.contracts.ledger import Ledger
from byheart.contracts.notes import Note
from byheart.contracts.reader import Reader
from byheart.contracts.writer import Removed, Writer
from byheart.model import Finding, Inventory, Removal, Status

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

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the store, if they are."""
        ...

    @property
    def bookmarks(self) -> Bookmarks:
        """Give access to the bookmarks of growing files."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        ...

    def searching(self) -> AbstractContextManager[Reader]:
        """Open a consistent view for ranking and counting as well."""
        ...

    def writing(self) -> AbstractContextManager[Writer]:
        """Open one transaction that reads and writes: all of it is done, or nothing."""
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

    def back_up(self, path: Path) -> None:
        """Copy the store to a file as it is at this moment; other processes can keep using it."""
        ...

    def refresh(self) -> None:
        """Update all derived data, so that the next search, in any process, is fast."""
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
