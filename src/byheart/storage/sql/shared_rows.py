"""Give the groups of rows that a reader and a writer both have."""

from __future__ import annotations

from functools import cached_property

from byheart.contracts import Lookup
from byheart.storage.sql.api_keys import SqlApiKeyRows
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.expiry_rows import SqlExpiryRows
from byheart.storage.sql.model_rows import SqlModelRows
from byheart.storage.sql.receipt_rows import SqlReceiptRows
from byheart.storage.sql.review_rows import SqlReviewRows
from byheart.storage.sql.view_rows import SqlViewRows
from byheart.storage.sql.whole_rows import SqlWholeRows
from byheart.storage.sql.workspace_rows import SqlWorkspaceRows


class SharedRows:
    """Give groups of rows within one transaction; the contract of a reader only lets it look."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def prefetch(self, *calls: Lookup) -> None:
        """Send the first question of each call, without waiting for the answer."""
        self._connection.prefetch(*calls)

    @cached_property
    def receipts(self) -> SqlReceiptRows:
        """Give the receipts of contexts."""
        return SqlReceiptRows(self._connection)

    @cached_property
    def reviews(self) -> SqlReviewRows:
        """Give the rows that a review looks at."""
        return SqlReviewRows(self._connection)

    @cached_property
    def views(self) -> SqlViewRows:
        """Give the lists and counts that people look at."""
        return SqlViewRows(self._connection)

    @cached_property
    def workspaces(self) -> SqlWorkspaceRows:
        """Give the workspaces and their files."""
        return SqlWorkspaceRows(self._connection)

    @cached_property
    def expiry(self) -> SqlExpiryRows:
        """Give the memories that may be erased, and the time that has passed."""
        return SqlExpiryRows(self._connection)

    @cached_property
    def api_keys(self) -> SqlApiKeyRows:
        """Give the API keys."""
        return SqlApiKeyRows(self._connection)

    @cached_property
    def models(self) -> SqlModelRows:
        """Give the models, their vectors, and the chunks that lack vectors."""
        return SqlModelRows(self._connection)

    @cached_property
    def whole_rows(self) -> SqlWholeRows:
        """Give the rows that a copy of a store reads and writes."""
        return SqlWholeRows(self._connection)
