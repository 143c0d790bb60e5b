"""Bookmarks: how far files that grow were read.

They are kept in the store and nowhere else, so that a copy of it knows how far it was itself.
"""

from __future__ import annotations

from datetime import timedelta

import apsw

from byheart.model.times import now_micros
from byheart.storage.sqlite.database import Database

# A file that nobody went on with for so long is read from its beginning again, if ever.
_KEPT_MICROS = timedelta(days=60) // timedelta(microseconds=1)


class SqliteBookmarks:
    """Keep one bookmark for each file and space."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, path: str, space: str) -> str | None:
        """Give the bookmark of a file, if there is one."""
        with self._database.reading() as connection:
            return connection.execute(  # type: ignore[no-any-return]
                "SELECT mark FROM bookmarks WHERE space = ? AND path = ?", (space, path)
            ).get

    def put(self, path: str, space: str, mark: str) -> None:
        """Put the bookmark of a file where it belongs now; let go of those long out of use."""
        now = now_micros()
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO bookmarks (space, path, mark, put_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (space, path) DO UPDATE SET mark = excluded.mark, "
                "put_at = excluded.put_at",
                (space, path, mark, now),
            )
            connection.execute("DELETE FROM bookmarks WHERE put_at < ?", (now - _KEPT_MICROS,))


def remove(connection: apsw.Connection, space: str) -> None:
    """Take the bookmarks of a space out: they may quote what is to be forgotten for good."""
    connection.execute("DELETE FROM bookmarks WHERE space = ?", (space,))
