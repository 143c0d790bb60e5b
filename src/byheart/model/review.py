"""Define the review queue: memories that somebody should look at, each with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from byheart.model.views import Brief
from byheart.startup.dataclass_types import dataclass

ReviewReason = Literal["secret", "contradiction", "untrusted", "expiring", "duplicate", "unused"]
ReviewAction = Literal["keep", "merge", "supersede", "extend", "trust", "forget"]

# The reasons in the order of the queue: the most urgent first.
REVIEW_REASONS: tuple[ReviewReason, ...] = (
    "secret",
    "contradiction",
    "untrusted",
    "expiring",
    "duplicate",
    "unused",
)


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One entry of the queue: the memories to look at, why, and the actions that fit.

    `item_id` stays the same until one of the memories changes.
    """

    item_id: str
    reason: ReviewReason
    why: str
    memories: tuple[Brief, ...]
    actions: tuple[ReviewAction, ...]


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """A page of the queue; `counts` has every reason, whatever reason was asked for."""

    items: tuple[ReviewItem, ...]
    counts: Mapping[str, int]
    total: int
    has_more: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class KeptItem:
    """A decision about an item: `kept` says whether it now stays out of the queue."""

    item_id: str
    kept: bool
