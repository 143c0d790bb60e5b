"""Treat every space of a PostgreSQL store as too large for a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from byheart.contracts import Expecting
from byheart.storage.sql.reading import SqlReader
from byheart.storage.sql.storage import SqlStorage

# Given as `local_chunks`, it leaves no postings in the memory of a server.
NONE_LOCAL = 0


class LargeSpaces(SqlStorage):
    """Move all postings to the database before each search."""

    @contextmanager
    def _attached(
        self, space: str | None, expecting: Expecting | None = None
    ) -> Iterator[SqlReader]:
        with super()._attached(space):
            index = self._index(space)
        if index.unpublished():
            index.publish()
        with super()._attached(space, expecting) as reader:
            yield reader
