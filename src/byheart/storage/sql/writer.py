"""Give the rows that one transaction may change."""

from __future__ import annotations

from functools import cached_property

from byheart.storage.sql import emissions
from byheart.storage.sql.archive_rows import SqlArchiveRows
from byheart.storage.sql.entities import SqlEntityRows
from byheart.storage.sql.memory_rows import SqlMemoryRows
from byheart.storage.sql.shared_rows import SharedRows
from byheart.storage.sql.tombstones import SqlTombstoneRows


class SqlWriter(SharedRows):
    """Change a store in one transaction."""

    @cached_property
    def memories(self) -> SqlMemoryRows:
        """Give the rows of memories."""
        return SqlMemoryRows(self._connection)

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

    def forget_emissions(self, space: str, session_id: str) -> None:
        """Remove the record of passages that were given to a session."""
        emissions.forget(self._connection, space, session_id)
