"""Define stored receipts: what went into the prompts of a session, and what did not."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from byheart.model.answers import Mode
from byheart.model.prompts import ContextReceipt
from byheart.startup.dataclass_types import dataclass

ReceiptVerb = Literal["context", "remind"]


@dataclass(frozen=True, slots=True)
class ReceiptSummary:
    """A receipt in a list; `items` and `left_out` are numbers."""

    receipt_id: str
    verb: ReceiptVerb
    session_id: str
    query: str
    mode: Mode
    at: datetime
    max_tokens: int
    used_tokens: int
    items: int
    left_out: int


@dataclass(frozen=True, slots=True)
class ReceiptPage:
    """A listing of receipts, the latest first; `kept_days` is how long receipts are kept."""

    receipts: tuple[ReceiptSummary, ...]
    total: int
    has_more: bool
    kept_days: float


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt as `context` or `remind` gave it, without the texts of the memories."""

    receipt_id: str
    verb: ReceiptVerb
    session_id: str
    query: str
    mode: Mode
    at: datetime
    max_tokens: int
    used_tokens: int
    receipt: ContextReceipt
