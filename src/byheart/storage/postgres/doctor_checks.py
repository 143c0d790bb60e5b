"""Check a PostgreSQL store for the doctor: each check passes, or reports what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from byheart.errors import Hint, join_hints
from byheart.model import Finding
from byheart.storage.postgres import repairs
from byheart.storage.postgres.connection import PostgresConnection
from byheart.storage.postgres.database import Database
from byheart.storage.postgres.erasing import is_unswept, sweep
from byheart.storage.postgres.raw_queries import has_words
from byheart.storage.postgres.server_checks import check_server
from byheart.storage.sql import writing
from byheart.storage.sql.backend import IndexOf
from byheart.storage.sql.check_results import FIX, REBUILD, Checked, Mend, examine, passed
from byheart.storage.sql.index_checks import check_index, rebuild_index
from byheart.storage.sql.row_checks import (
    RELATIONS,
    SEARCHED,
    check_relations,
    check_rows,
    keyword_relations,
    report_remains,
    some_chunks,
)
from byheart.storage.sql.rows import to_chunk

_RELATIONS = (*keyword_relations("chunk_no", repairs.add_missing_words), *RELATIONS)
_HAS_WORDS = "SELECT 1 FROM chunk_words w WHERE w.chunk_no = c.chunk_no"
_INDEX = "search index"
# How many spaces with the same trouble are named.
_MOST_NAMED = 3


class Doctor:
    """Check the tables, the server and the index of every space."""

    def __init__(self, database: Database, index_of: IndexOf, scopes: Sequence[str | None]) -> None:
        self._database = database
        self._index_of = index_of
        self._scopes = scopes

    def examine(self, *, fix: bool) -> list[Finding]:
        """Check everything; with `fix`, repair what can be derived."""
        return examine(lambda: list(self._all()), fix=fix)

    def inspect(self) -> list[Finding]:
        """Check only the data that searches use."""
        with self._database.reading(None) as connection:
            checked = [*check_relations(connection, _RELATIONS, self._transact, SEARCHED)]
        return [each.finding for each in (*checked, self._indexes())]

    def _all(self) -> Iterator[Checked]:
        # Each group has a snapshot of its own: a long one keeps the server from cleaning up.
        with self._database.reading(None) as connection:
            yield from check_server(connection, self._database)
        with self._database.reading(None) as connection:
            yield from check_relations(connection, _RELATIONS, self._transact)
        with self._database.reading(None) as connection:
            yield self._words(connection)
        with self._database.reading(None) as connection:
            yield from check_rows(connection)
        yield self._indexes()
        with self._database.reading(None) as connection:
            yield from report_remains(connection)
            yield self._unswept(connection)

    def _transact(self, mend: Mend) -> None:
        with self._database.writing(None) as connection:
            mend(connection)
        for scope in self._scopes:  # an index may have been built from damaged data
            self._index_of(scope).discard()

    def _words(self, connection: PostgresConnection) -> Checked:
        """Compare keyword entries of some chunks with texts, headings, titles and summaries."""
        name, wrong, compared = "keyword index as saved", 0, 0
        for _ in connection.parts():
            for row in some_chunks(connection, _HAS_WORDS):
                columns = writing.word_columns(to_chunk(row[1:10]), row[10], row[11])
                compared += 1
                wrong += not has_words(connection.raw, row[0], columns)
        if not wrong:
            return passed(name)
        message = (
            f"{wrong:,} of {compared:,} chunks looked at are not found by their own words: the "
            "keyword index is of other texts"
        )
        mend = partial(repairs.rebuild_words, self._database, self._scopes)
        return Checked(Finding(name, False, message, REBUILD), mend)

    def _indexes(self) -> Checked:
        """Check the index of every space, and report all of them as one finding."""
        # Named by their spaces: a reference would keep an index in memory, whatever the limit is.
        failed: dict[str | None, Finding] = {}
        broken: list[str | None] = []
        for scope in self._scopes:
            with self._database.reading(scope) as connection:
                finding, mend_one = check_index(connection, self._index_of(scope))
            if mend_one is not None:
                broken.append(scope)
            if not finding.ok or mend_one is not None:
                failed[scope] = finding
        if not failed:
            return passed(_INDEX)
        named = [Hint(f"space {scope}: ", each.message) for scope, each in failed.items()]
        more = len(failed) - _MOST_NAMED
        others = f"and {more:,} other spaces" if more > 0 else None
        message = join_hints("; ", [*named[:_MOST_NAMED], others]) or ""
        first = next(iter(failed.values()))

        def mend() -> None:
            for scope in broken:
                rebuild_index(self._index_of(scope))

        ok = all(each.ok for each in failed.values())
        return Checked(Finding(_INDEX, ok, message, first.hint), mend if broken else None)

    def _unswept(self, connection: PostgresConnection) -> Checked:
        """Check whether an erasure is unfinished after its rows were removed."""
        name = "forgetting"
        if not is_unswept(connection):
            return passed(name)
        message = "an erasure did not finish: its words may still be in the database's files"
        mend = partial(sweep, self._database, self._index_of, self._scopes)
        return Checked(Finding(name, False, message, FIX), mend)
