"""Decide which memories somebody should look at, and what can be done with them.

These are rules over values. `reviewing.py` reads the values from the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from byheart.contracts import Listing, ReviewedText, TextStamp
from byheart.errors import Conflict, Do, Hint, InvalidInput
from byheart.language import distinct_words as particulars
from byheart.language.claims import Claim
from byheart.language.conflicts import find_difference
from byheart.memory.duplicates import group_around
from byheart.model import REVIEW_REASONS, Brief, Filter, ReviewAction, ReviewReason
from byheart.model.workspaces import FILE_KIND
from byheart.startup.late_patterns import late_pattern

EXPIRING_DAYS, UNUSED_DAYS = 14, 180
# The least similarity of two memories of which one may be merged into the other, as in `dedupe`.
SAME = 0.95
# The least similarity of two that may contradict each other, by the number of texts up to which it
# is used. The pairs in benchmarks/quality/conflict_pairs.json reach 0.6 in 96 % of cases, 0.8 in
# 71 % and 0.85 in 64 %; finding less near pairs among many texts takes much longer.
_SAME_SUBJECT = ((1_000, 0.6), (20_000, 0.8))
_SAME_SUBJECT_AMONG_MANY = 0.85
# No id of a memory contains `@`.
_TEXT = late_pattern(r"(?:^|\+)(?P<memory_id>[^@]+)@(?P<version>\d{1,9})(?=\+|$)")
# A larger group is shown as several items.
_MOST_IN_ITEM = 12

ACTIONS: Mapping[ReviewReason, tuple[ReviewAction, ...]] = {
    "secret": ("forget", "keep"),
    "contradiction": ("supersede", "keep", "forget"),
    "untrusted": ("trust", "forget", "keep"),
    "expiring": ("extend", "keep", "forget"),
    "duplicate": ("merge", "supersede", "keep", "forget"),
    "unused": ("keep", "forget"),
}
# The reasons that rows tell by themselves: a page of them is one query.
ListedReason = Literal["untrusted", "expiring", "unused"]
LISTED: tuple[ListedReason, ...] = ("untrusted", "expiring", "unused")


class TextName(NamedTuple):
    """Name a memory at one of its versions."""

    memory_id: str
    version: int


class FoundItem(NamedTuple):
    """An item of the queue that was found by comparing or by reading texts."""

    reason: ReviewReason
    memory_nos: tuple[int, ...]
    why: str


class PairVerdict(NamedTuple):
    """Say how two memories relate: one contradicts the other, or says the same."""

    reason: Literal["contradiction", "duplicate"]
    similarity: float
    why: str


def item_id_of(reason: ReviewReason, texts: Iterable[TextName]) -> str:
    """Name an item by its reason and its memories, so that a change of one gives another name."""
    named = sorted(f"{each.memory_id}@{each.version}" for each in texts)
    return f"{reason}:{'+'.join(named)}"


def parse_item_id(item_id: str) -> tuple[ReviewReason, list[TextName]]:
    """Read the name of an item: its reason, and its memories with their versions."""
    reason, _, named = item_id.partition(":")
    texts = [TextName(each["memory_id"], int(each["version"])) for each in _TEXT.finditer(named)]
    for known in REVIEW_REASONS:
        if known == reason and texts and item_id_of(known, texts) == item_id:
            return known, texts
    raise InvalidInput(
        f"{item_id!r} names no item of the review queue",
        Hint("see the items with: ", Do("review.queue")),
    )


def refuse_changed(item_id: str, texts: Sequence[TextName], now: Mapping[str, int]) -> None:
    """Refuse a decision about an item whose memories are gone or have other versions `now`."""
    changed = [each.memory_id for each in texts if now.get(each.memory_id) != each.version]
    if changed:
        raise Conflict(
            f"{changed[0]} is gone, or was changed since the item {item_id!r} was listed",
            Hint("see the items as they are now with: ", Do("review.queue")),
        )


def listing_of(reason: ListedReason, where: Filter, now: datetime) -> Listing:
    """Choose the memories of a reason that rows tell by themselves."""
    if reason == "untrusted":
        return Listing(replace(where, trusted=False), "waiting", not_kept_as=reason)
    if reason == "expiring":
        soon = now + timedelta(days=EXPIRING_DAYS)
        return Listing(where, "expiring", expires_before=soon, not_kept_as=reason)
    # A turn stays as it was said, a file as it is on disk, and a pinned memory is wanted.
    return Listing(
        where,
        "untouched",
        untouched_since=now - timedelta(days=UNUSED_DAYS),
        exclude_turns=True,
        exclude_pinned=True,
        exclude_kinds=(FILE_KIND,),
        not_kept_as=reason,
    )


def least_similarity(texts: int) -> float:
    """Give the least similarity of pairs that are looked at among so many texts."""
    usable = (least for most, least in _SAME_SUBJECT if texts <= most)
    return next(usable, _SAME_SUBJECT_AMONG_MANY)


def is_comparable(stamp: TextStamp) -> bool:
    """Say whether a text may be merged or replaced: no turn, and no file of a workspace."""
    return not stamp.is_turn and stamp.kind != FILE_KIND


def judge_pair(
    texts: tuple[ReviewedText, ReviewedText],
    claims: tuple[Sequence[Claim], Sequence[Claim]],
    similarity: float,
) -> PairVerdict | None:
    """Say whether two near texts contradict each other, say the same, or neither.

    The earlier text is given first. The reason quotes the later text first.
    """
    different = find_difference(*claims)
    if different is not None:
        why = f"“{different.other}” and “{different.some}” differ in a {different.kind}"
        return PairVerdict("contradiction", similarity, why)
    some, other = texts
    if similarity < SAME or particulars.differ(
        some.content, other.content, some.entities, other.entities
    ):
        return None
    return PairVerdict("duplicate", similarity, f"they are alike to {similarity:.0%}")


def arrange_pairs(
    pairs: Mapping[tuple[int, int], PairVerdict], importances: Mapping[int, float]
) -> list[FoundItem]:
    """Make items of pairs: each contradiction by itself, duplicates in groups; nearest first.

    The memory that is offered to stay comes first: of a contradiction, the one saved later.
    Groups do not depend on how often memories are read: reading must not bring back an item.
    """
    items = [
        (verdict.similarity, FoundItem("contradiction", (max(pair), min(pair)), verdict.why))
        for pair, verdict in pairs.items()
        if verdict.reason == "contradiction"
    ]
    alike: dict[int, dict[int, float]] = {}
    for (first, second), verdict in pairs.items():
        if verdict.reason == "duplicate":
            alike.setdefault(first, {})[second] = verdict.similarity
            alike.setdefault(second, {})[first] = verdict.similarity
    for keep, others in group_around(alike, lambda number: (-importances[number], number)):
        for at in range(0, len(others), _MOST_IN_ITEM - 1):
            part = others[at : at + _MOST_IN_ITEM - 1]
            similarity = alike[keep][part[0]]
            why = f"they are alike to {similarity:.0%}"
            items.append((similarity, FoundItem("duplicate", (keep, *part), why)))
    items.sort(key=lambda each: (-each[0], each[1].memory_nos))
    return [item for _, item in items]


def tell_secrets(kinds: Mapping[str, int]) -> str:
    """Name the secrets that a text seems to hold, without repeating them."""
    told = [kind if number == 1 else f"{number} × {kind}" for kind, number in kinds.items()]
    return f"it seems to hold a secret: {', '.join(told)}"


def tell_why(reason: ListedReason, memory: Brief, now: datetime) -> str:
    """Say why a memory is in the queue."""
    if reason == "untrusted":
        return f"its words come from {_ORIGINS[memory.origin]} and enter no prompt until trusted"
    if reason == "expiring":
        assert memory.expires_at is not None
        days = (memory.expires_at - now) // timedelta(days=1)
        return "it expires within a day" if days < 1 else f"it expires in {_days(days)}"
    used = max(filter(None, (memory.updated_at, memory.accessed_at)))
    return f"nobody changed or used it for {_days((now - used).days)}"


_ORIGINS = {
    "user": "a user",
    "agent": "an agent",
    "tool": "a tool",
    "file": "a file",
    "import": "an import",
}


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days:,} days"
