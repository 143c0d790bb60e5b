"""Give the rows that one transaction may change."""

from __future__ import annotations

from functools import cached_property

from byheart.storage.sql.archive_rows import SqlArchiveRows
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.memory_rows import SqlMemoryRows
from byheart.storage.sql.tombstones import SqlTombstoneRows
from byheart.storage.sql.workspace_rows import SqlWorkspaceRows


class SqlWriter:
    """Change a store in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    def memories(self) -> SqlMemoryRows:
        """Give the rows of memories."""
        return SqlMemoryRows(self._connection)

    @cached_property
    def workspaces(self) -> SqlWorkspaceRows:
        """Give the rows of workspaces and their files."""
        return SqlWorkspaceRows(self._connection)

    @cached_property
    def archive(self) -> SqlArchiveRows:
        """Give the rows that an import writes."""
        return SqlArchiveRows(self._connection)

    @cached_property
    def tombstones(self) -> SqlTombstoneRows:
        """Give the tombstones of erased texts."""
        return SqlTombstoneRows(self._connection)
