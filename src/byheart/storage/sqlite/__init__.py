"""Store memories in one SQLite file."""

from byheart.storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
