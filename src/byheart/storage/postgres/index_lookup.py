"""Answer the array index from PostgreSQL: filters without a column, raw queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byheart.contracts import Accesses
from byheart.language.raw_query import RawQuery
from byheart.model import Filter
from byheart.startup.late_numpy import NDArray, np
from byheart.storage.postgres import raw_queries
from byheart.storage.postgres.connection import PostgresConnection
from byheart.storage.postgres.posting_tables import PostgresStoredPostings
from byheart.storage.sql import writing
from byheart.storage.sql.accesses import LATEST, to_accesses
from byheart.storage.sql.filters import subqueries
from byheart.storage.sql.model_rows import SqlModelRows
from byheart.storage.sql.writing import WORDED

# Tags have no space: without the numbers, the tags of other spaces would be read too.
_OWN = "SELECT memory_no FROM (%s) AS found WHERE memory_no BETWEEN ? AND ?"


class PostgresIndexLookup:
    """Look up data that the index has no array for, in the transaction of a search."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def members(self, where: Filter) -> Sequence[NDArray[np.int64]]:
        """List the memories that satisfy each condition of a filter that has no column."""
        first, last = self._connection.numbers.start, self._connection.numbers[-1]
        return [
            np.array(
                [row[0] for row in self._connection.each(_OWN % query, (*values, first, last))],
                np.int64,
            )
            for query, values in subqueries(where)
        ]

    def matches(self, raw: RawQuery, within: range) -> NDArray[np.int64]:
        """List the chunks with numbers in a range that a raw query matches."""
        return raw_queries.find_matches(
            self._connection.raw, raw.expression, within, self._read_columns
        )

    def _read_columns(self, chunk_nos: Sequence[int]) -> Iterator[tuple[int, Sequence[str]]]:
        """Read what chunks are found by, in any order."""
        rows = self._connection.execute(f"{WORDED} WHERE c.chunk_no = ANY(?)", (list(chunk_nos),))
        return map(writing.to_word_columns, rows.fetchall())

    def continuations(self, prefix: str, after: str, limit: int) -> Sequence[str]:
        """List terms of the space that begin with a prefix, in order, behind another term."""
        numbers = self._connection.numbers
        if numbers.start < 0:
            return []  # nothing was ever saved in this space
        return raw_queries.continuations(self._connection.raw, prefix, after, limit, numbers)

    def accesses(self, space: str, limit: int) -> Accesses:
        """List the memories of a space that were accessed last."""
        return to_accesses(self._connection.each(LATEST, (space, limit)))

    def stored_postings(self) -> PostgresStoredPostings:
        """Read the postings of a large space."""
        return PostgresStoredPostings(self._connection)

    def active_model_name(self) -> str | None:
        """Name the model whose vectors are searched."""
        # Every search has asked for the models already.
        return SqlModelRows(self._connection).read().active
