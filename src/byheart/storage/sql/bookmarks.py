"""Store bookmarks: how far growing files were read.

Bookmarks are kept only in the store, so that a copy of the store has its own bookmarks.
"""

from __future__ import annotations

from datetime import timedelta

from byheart.contracts import one_transaction
from byheart.model.times import now_micros
from byheart.storage.sql.connection import Connection, Database

# A file that nobody reads for this long is read from its beginning again.
_KEPT_MICROS = timedelta(days=60) // timedelta(microseconds=1)


class SqlBookmarks:
    """Keep one bookmark for each file and space."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, path: str, space: str) -> str | None:
        """Give the bookmark of a file, or `None`."""
        with self._database.reading(space) as connection:
            return connection.get(  # type: ignore[no-any-return]
                "SELECT mark FROM bookmarks WHERE space = ? AND path = ?", (space, path)
            )

    @one_transaction
    def put(self, path: str, space: str, mark: str) -> None:
        """Set the bookmark of a file; remove those of its space that were long unused."""
        now = now_micros()
        with self._database.writing(space) as connection:
            connection.run(
                "INSERT INTO bookmarks (space, path, mark, put_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (space, path) DO UPDATE SET mark = excluded.mark, "
                "put_at = excluded.put_at",
                (space, path, mark, now),
            )
            connection.run(
                "DELETE FROM bookmarks WHERE space = ? AND put_at < ?", (space, now - _KEPT_MICROS)
            )


def remove(connection: Connection, space: str) -> None:
    """Remove the bookmarks of a space: they may quote texts that are to be forgotten for good."""
    connection.run("DELETE FROM bookmarks WHERE space = ?", (space,))
