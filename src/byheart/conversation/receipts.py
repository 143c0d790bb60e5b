"""Keep the receipts of contexts, and read them back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from byheart.contracts import GivenReceipt, Note, OldReceipts, ReceiptRow
from byheart.model import (
    ContextAnswer,
    ContextItem,
    ContextReceipt,
    LeftOut,
    ReceiptSummary,
    ReceiptVerb,
    StoredReceipt,
    to_wire,
)
from byheart.model.ids import new_receipt_id, parse_text_id

_SUMMARY_NAMES = ("receipt_id", "verb", "session_id", "query", "mode", "at")
_TOKEN_NAMES = ("max_tokens", "used_tokens")


def kept_since(now: datetime, kept_days: float) -> datetime:
    """Give the moment from which on receipts are kept."""
    return now - timedelta(days=kept_days)


def make_receipt(
    answer: ContextAnswer, verb: ReceiptVerb, space: str, now: datetime, kept_days: float
) -> tuple[str | None, list[Note]]:
    """Make the notes that keep the receipt of an answer and remove old ones, and its id."""
    old = OldReceipts(space, kept_since(now, kept_days))
    if not kept_days:
        return None, [old]
    receipt = answer.receipt
    summary = ReceiptSummary(
        receipt_id=new_receipt_id(),
        verb=verb,
        session_id=answer.session_id,
        query=answer.query,
        mode=answer.mode,
        at=now,
        max_tokens=receipt.max_tokens,
        used_tokens=answer.tokens_used,
        items=len(receipt.items),
        left_out=len(receipt.left_out),
    )
    given = GivenReceipt(summary, space, tuple(_memories(receipt)), _pack(receipt), now)
    return summary.receipt_id, [given, old]


def _memories(receipt: ContextReceipt) -> Iterator[tuple[str, bool]]:
    """Name each memory once, and say whether it is in the context."""
    used = {parse_text_id(each.memory_id)[0]: True for each in receipt.items}
    left = {parse_text_id(each.memory_id)[0]: False for each in receipt.left_out}
    for memory_id, is_used in {**left, **used}.items():
        if memory_id:  # an identity file has none
            yield memory_id, is_used


def _pack(receipt: ContextReceipt) -> bytes:
    return zlib.compress(json.dumps(to_wire(receipt), ensure_ascii=False).encode(), 1)


def read_receipt(row: ReceiptRow, hidden: Collection[str]) -> StoredReceipt:
    """Read a receipt back; memories that are hidden now keep only their ids."""
    packed: dict[str, Any] = json.loads(zlib.decompress(row.body))
    items = tuple(_to_item(each, hidden) for each in packed["items"])
    left_out = tuple(LeftOut(**each) for each in packed["left_out"])
    receipt = ContextReceipt(
        items, left_out, packed["tokens"], packed["max_tokens"], packed["counter"]
    )
    names = (*_SUMMARY_NAMES, *_TOKEN_NAMES)
    return StoredReceipt(**{name: getattr(row.summary, name) for name in names}, receipt=receipt)


def _to_item(packed: dict[str, Any], hidden: Collection[str]) -> ContextItem:
    known = {each.name for each in fields(ContextItem)}
    values = {name: value for name, value in packed.items() if name in known}
    values["chunk_ids"] = tuple(values["chunk_ids"])
    values["created_at"] = datetime.fromisoformat(values["created_at"])
    item = ContextItem(**values)
    if parse_text_id(item.memory_id)[0] in hidden:
        return replace(item, title=None, path=None)
    return item
