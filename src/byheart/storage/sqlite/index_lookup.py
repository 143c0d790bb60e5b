"""Answer the array index from SQLite: filters without a column, raw queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from byheart.contracts import Accesses
from byheart.errors import QuerySyntaxError
from byheart.model import Filter
from byheart.startup.late_numpy import NDArray, np
from byheart.storage.sql.accesses import LATEST, to_accesses
from byheart.storage.sql.filters import subqueries
from byheart.storage.sql.model_rows import NAME_IN_USE

if TYPE_CHECKING:
    from byheart.language.raw_query import RawQuery


class SqliteIndexLookup:
    """Look up data that the index has no array for, in the transaction of a search."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def members(self, where: Filter) -> Sequence[NDArray[np.int64]]:
        """List the memories that satisfy each condition of a filter that has no column."""
        return [
            np.array([row[0] for row in self._connection.execute(query, values)], np.int64)
            for query, values in subqueries(where)
        ]

    def matches(self, raw: RawQuery, within: range) -> NDArray[np.int64]:
        """List the chunks with numbers in a range that a raw query matches, in any space.

        The range keeps out most chunks of other spaces at no cost; a join with the memories would
        take five times as long. The array index keeps out the others, and ranks the rest: FTS5's
        own bm25() would count across the space boundary.
        """
        # Imported here, because few searches are in raw syntax.
        from byheart.language.raw_query import to_fts5

        try:
            rows = self._connection.execute(
                "SELECT rowid FROM chunk_words WHERE chunk_words MATCH ? "
                "AND rowid >= ? AND rowid < ?",
                (to_fts5(raw.expression), within.start, within.stop),
            ).fetchall()
        except apsw.SQLError as error:
            raise QuerySyntaxError(
                f"the raw query cannot be executed: {error}",
                "make it shorter, or nest it less deeply; leave raw off to search for any text",
                0,
            ) from error
        return np.array([row[0] for row in rows], np.int64)

    def continuations(self, prefix: str, after: str, limit: int) -> Sequence[str]:
        """List terms of the store that begin with a prefix, in order, behind another term."""
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary"
            " USING fts5vocab (main, chunk_words, row)"
        )
        rows = self._connection.execute(
            "SELECT term FROM temp.vocabulary WHERE term >= ? AND term < ? AND term > ? LIMIT ?",
            (prefix, f"{prefix}\U0010ffff", after, limit),
        )
        return [str(row[0]) for row in rows]

    def accesses(self, space: str, limit: int) -> Accesses:
        """List the memories of a space that were accessed last."""
        return to_accesses(self._connection.execute(LATEST, (space, limit)))

    def stored_postings(self) -> None:
        """Give nothing: the index is beside the file."""
        return

    def active_model_name(self) -> str | None:
        """Name the model whose vectors are searched."""
        return self._connection.execute(  # type: ignore[no-any-return]
            f"SELECT {NAME_IN_USE}"
        ).get
