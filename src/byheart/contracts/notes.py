"""Define notes: minor records for which no caller should wait."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from byheart.model import ReceiptSummary


class MemoryAccess(NamedTuple):
    """A memory was given as part of an answer."""

    memory_id: str
    space: str
    at: datetime


class Emission(NamedTuple):
    """A passage, or a whole memory, was given out for the prompt of a session or of no session.

    `passage` is the id of a chunk, or of a text.
    """

    passage: str
    space: str
    session_id: str | None
    at: datetime


class KeyUse(NamedTuple):
    """An API key was used."""

    token_id: str
    at: datetime


class GivenReceipt(NamedTuple):
    """A context was given; its receipt names memories, and says whether each is in the context."""

    summary: ReceiptSummary
    space: str
    memories: tuple[tuple[str, bool], ...]
    body: bytes
    at: datetime


class OldReceipts(NamedTuple):
    """The receipts of a space from before a moment are no longer kept."""

    space: str
    at: datetime


Note = MemoryAccess | Emission | KeyUse | GivenReceipt | OldReceipts
