"""Define the small part of a database that the shared statements use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Values = Sequence[object]


class Connection(Protocol):
    """Run statements within one transaction. Placeholders are `?`, or `?1`, `?2` … by number."""

    def get(self, statement: str, values: Values = ()) -> Any:
        """Give the first row, the value itself if the row has one column, or `None`."""
        ...

    def all(self, statement: str, values: Values = ()) -> list[Any]:
        """Give all rows."""
        ...

    def each(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """Give the rows one by one."""
        ...

    def run(self, statement: str, values: Values = ()) -> int:
        """Run a statement, and count the rows that it changed."""
        ...

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each row of values."""
        ...

    def insert(self, statement: str, values: Values) -> int:
        """Insert one row, and give its number."""
        ...


class Database(Protocol):
    """Open transactions: any number that read, and one at a time that writes."""

    @property
    def writable(self) -> bool:
        """Say whether the database takes writes."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """Hold one snapshot of everything committed before; later writes do not change it."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """Hold the write lock for one transaction: commit all of it, or nothing."""
        ...

    def noting(self, wait_ms: int) -> AbstractContextManager[Connection]:
        """Hold the write lock for a minor write that does not wait for the disk."""
        ...
