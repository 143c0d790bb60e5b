"""Define the small part of a database that the shared statements use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from byheart.contracts import Prefetching, ServerClocks

Values = Sequence[object]


class Connection(Prefetching, Protocol):
    """Run statements within one transaction. Placeholders are `?`, or `?1`, `?2` … by number."""

    def get(self, statement: str, values: Values = ()) -> Any:
        """Give the first row, the value itself if the row has one column, or `None`."""
        ...

    def all(self, statement: str, values: Values = ()) -> list[Any]:
        """Give all rows."""
        ...

    def get_many(self, statement: str, values: Iterable[Values]) -> list[Any]:
        """Run a query once for each row of values; give of each what `get` gives."""
        ...

    def each(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """Give the rows of a short answer one by one."""
        ...

    def stream(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """Give the rows of an answer of any length; only some of them are in memory at a time."""
        ...

    def run(self, statement: str, values: Values = ()) -> None:
        """Run a statement, at the latest before the next one that gives an answer."""
        ...

    def count(self, statement: str, values: Values = ()) -> int:
        """Run a statement, and count the rows that it changed."""
        ...

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each row of values."""
        ...

    def insert(self, table: str, row: Mapping[str, object]) -> int:
        """Insert a row into a table whose rows the database numbers, and give its number."""
        ...

    def expect_chunks(self, count: int) -> None:
        """Prepare for chunks that are about to be inserted."""
        ...

    def insert_words(self, chunk_no: int, columns: Sequence[str]) -> None:
        """Make a chunk findable by raw queries: its title, summary, headings and text."""
        ...

    def remove_words(self, chunk_nos: Sequence[int]) -> None:
        """Make chunks that are about to be removed unfindable by raw queries."""
        ...

    def parts(self) -> Iterator[None]:
        """Go to each part of the store in turn: statements reach the tables of that part."""
        ...

    def logs(self) -> Iterator[None]:
        """Go to each log of changes in turn: the store has one log, or each space has one."""
        ...

    def now_micros(self) -> int:
        """Give the time, in microseconds, of the clock that all processes of the store share."""
        ...

    def server_clocks(self) -> ServerClocks | None:
        """Give the clocks of the server; `None` where the machine itself keeps the store."""
        ...

    @property
    def numbers(self) -> range:
        """Give the range of the numbers that rows of the space of this transaction have."""
        ...

    def skip_numbers(self, last: int) -> None:
        """Give new rows only numbers above this one, counted within their space."""
        ...


class Database(Protocol):
    """Open transactions: any number that read, and one at a time that writes to a space.

    A transaction for a space reads and writes the rows of that space. Without a space it reads the
    whole store, and writes what belongs to no space.
    """

    @property
    def writable(self) -> bool:
        """Say whether the database takes writes."""
        ...

    @property
    def is_remote(self) -> bool:
        """Say whether every question to the database is a round trip over a network."""
        ...

    def reading(self, space: str | None) -> AbstractContextManager[Connection]:
        """Hold one snapshot of everything committed before; later writes do not change it."""
        ...

    def writing(self, space: str | None) -> AbstractContextManager[Connection]:
        """Hold the write lock of a space or of the store: commit a whole transaction or nothing."""
        ...

    def noting(self, space: str | None, wait_ms: int) -> AbstractContextManager[Connection]:
        """Begin a minor write that does not wait for the disk, nor long for other writers."""
        ...
