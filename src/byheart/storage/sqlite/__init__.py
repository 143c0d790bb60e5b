"""Store memories in one SQLite file."""

from byheart.storage.sqlite.backend import SqliteStorage

__all__ = ["SqliteStorage"]
