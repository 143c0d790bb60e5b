"""Give the rows that one transaction may change."""

from __future__ import annotations

from functools import cached_property

from byheart.storage.sql import emissions
from byheart.storage.sql.api_keys import SqlApiKeyRows
from byheart.storage.sql.archive_rows import SqlArchiveRows
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.entities import SqlEntityRows
from byheart.storage.sql.expiry_rows import SqlExpiryRows
from byheart.storage.sql.memory_rows import SqlMemoryRows
from byheart.storage.sql.model_rows import SqlModelRows
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

    @cached_property
    def entities(self) -> SqlEntityRows:
        """Give the rows of entities."""
        return SqlEntityRows(self._connection)

    @cached_property
    def expiry(self) -> SqlExpiryRows:
        """Give the memories that may be erased, and the time that has passed."""
        return SqlExpiryRows(self._connection)

    @cached_property
    def api_keys(self) -> SqlApiKeyRows:
        """Give the rows of API keys."""
        return SqlApiKeyRows(self._connection)

    def forget_emissions(self, space: str, session_id: str) -> None:
        """Remove the record of passages that were given to a session."""
        emissions.forget(self._connection, space, session_id)

    @cached_property
    def models(self) -> SqlModelRows:
        """Give the rows of models and vectors."""
        return SqlModelRows(self._connection)
