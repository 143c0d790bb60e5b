"""Give apsw's connection the few methods that the shared statements use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from byheart.storage.sql.connection import Values


class SqliteConnection(apsw.Connection):
    """A connection to a SQLite file."""

    def get(self, statement: str, values: Values = ()) -> Any:
        """Give the first row, the value itself if the row has one column, or `None`."""
        # apsw's own `get` gives a list where there are several rows.
        row: Any = self.execute(statement, values).fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def all(self, statement: str, values: Values = ()) -> list[Any]:
        """Give all rows."""
        return self.execute(statement, values).fetchall()

    def each(self, statement: str, values: Values = ()) -> apsw.Cursor:
        """Give the rows one by one."""
        return self.execute(statement, values)

    def run(self, statement: str, values: Values = ()) -> int:
        """Run a statement, and count the rows that it changed."""
        self.execute(statement, values)
        return self.changes()

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each row of values."""
        self.executemany(statement, values)

    def insert(self, statement: str, values: Values) -> int:
        """Insert one row, and give its number."""
        self.execute(statement, values)
        return self.last_insert_rowid()
