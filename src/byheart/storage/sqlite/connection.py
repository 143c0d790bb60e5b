"""Give apsw's connection the few methods that the shared statements use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apsw

from byheart.contracts import Lookup
from byheart.model.times import now_micros
from byheart.storage.sql.connection import Values


class SqliteConnection(apsw.Connection):
    """A connection to a SQLite file."""

    def prefetch(self, *calls: Lookup) -> None:
        """Do nothing: SQLite answers at once."""

    def get(self, statement: str, values: Values = ()) -> Any:
        """Give the first row, the value itself if the row has one column, or `None`."""
        # apsw's own `get` gives a list where there are several rows.
        row: Any = self.execute(statement, values).fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def all(self, statement: str, values: Values = ()) -> list[Any]:
        """Give all rows."""
        return self.execute(statement, values).fetchall()

    def get_many(self, statement: str, values: Iterable[Values]) -> list[Any]:
        """Run a query once for each row of values; give of each what `get` gives."""
        return [self.get(statement, each) for each in values]

    def each(self, statement: str, values: Values = ()) -> apsw.Cursor:
        """Give the rows one by one."""
        return self.execute(statement, values)

    def stream(self, statement: str, values: Values = ()) -> apsw.Cursor:
        """Give the rows one by one."""
        return self.execute(statement, values)

    def run(self, statement: str, values: Values = ()) -> None:
        """Run a statement."""
        self.execute(statement, values)

    def count(self, statement: str, values: Values = ()) -> int:
        """Run a statement, and count the rows that it changed."""
        self.execute(statement, values)
        return self.changes()

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each row of values."""
        self.executemany(statement, values)

    def insert(self, table: str, row: Mapping[str, object]) -> int:
        """Insert a row, and give its number."""
        marks = ", ".join("?" * len(row))
        self.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
        )
        return self.last_insert_rowid()

    def expect_chunks(self, count: int) -> None:
        """Do nothing: SQLite numbers a row when it is inserted."""

    def insert_words(self, chunk_no: int, columns: Sequence[str]) -> None:
        """Make a chunk findable by raw queries."""
        self.execute(
            "INSERT INTO chunk_words (rowid, title, summary, headings, content) "
            "VALUES (?, ?, ?, ?, ?)",
            (chunk_no, *columns),
        )

    def remove_words(self, chunk_nos: Sequence[int]) -> None:
        """Make chunks unfindable by raw queries; FTS5 knows no foreign keys."""
        self.executemany(
            "DELETE FROM chunk_words WHERE rowid = ?", ((chunk_no,) for chunk_no in chunk_nos)
        )

    def parts(self) -> Iterator[None]:
        """Stay where it is: a SQLite file has one part."""
        yield

    def logs(self) -> Iterator[None]:
        """Stay where it is: a SQLite file has one log."""
        yield

    def now_micros(self) -> int:
        """Give the time of this machine."""
        return now_micros()

    def server_clocks(self) -> None:
        """Give none: the clocks of the machine count."""
        return

    @property
    def numbers(self) -> range:
        """Give all numbers: the spaces of a file share them."""
        return range((1 << 63) - 1)

    def skip_numbers(self, last: int) -> None:
        """Do nothing: SQLite gives no number that is below one in the table."""
