"""Define the rows of receipts, which say what was put into prompts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, Protocol

from byheart.model import ReceiptSummary


class ReceiptRow(NamedTuple):
    """A receipt as it is stored; `body` holds the items, compressed."""

    summary: ReceiptSummary
    body: bytes


class ReceiptReader(Protocol):
    """Look up receipts."""

    def find(
        self,
        space: str,
        since: datetime,
        session_id: str | None,
        memory_id: str | None,
        limit: int,
        offset: int,
    ) -> tuple[list[ReceiptSummary], int]:
        """List the receipts since a moment, the latest first, and count them all.

        With a session, list its own; with a memory, those of contexts that the memory is in.
        """
        ...

    def get(self, receipt_id: str, space: str, since: datetime) -> ReceiptRow | None:
        """Fetch one receipt, unless it is older than a moment."""
        ...


class ReceiptRows(ReceiptReader, Protocol):
    """Look up and remove receipts; `Storage.note` adds them."""

    def forget_session(self, space: str, session_id: str) -> None:
        """Remove the receipts of a session."""
        ...

    def remove_if(self, space: str, is_about: Callable[[str], bool]) -> int:
        """Remove the receipts of a space whose questions meet a condition, and count them."""
        ...
