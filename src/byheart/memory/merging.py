"""Decide how memories that say the same become one: keep one, and hide the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from byheart.contracts import Event, MemoryChange, MemoryState
from byheart.errors import Conflict, Do, Hint
from byheart.memory import versions
from byheart.model import Memory, Merged

_COMBINED = ("tags", "entities", "access_count")


def refuse_superseded(keep: MemoryState) -> None:
    """Refuse to keep a memory that another one supersedes."""
    if keep.superseded_by is not None:
        raise Conflict(
            f"{keep.memory_id} was superseded by {keep.superseded_by}; nothing was merged",
            Hint(
                "keep the one that is valid now, or make this one valid again first: ",
                Do("supersede", keep.memory_id),
            ),
        )


def merge(
    keep: tuple[MemoryState, Memory],
    others: Sequence[tuple[MemoryState, Memory]],
    superseded: Mapping[str, Sequence[MemoryState]],
    now: datetime,
    who: str,
    reason: str | None,
) -> tuple[list[MemoryChange], Merged]:
    """Add the labels and accesses of other memories to one, and hide the others.

    `superseded` gives the memories that each of the others supersedes; the kept one supersedes
    them from now on.
    """
    held, kept = keep
    memories = [kept, *(memory for _, memory in others)]
    combined = replace(
        kept,
        tags=tuple(dict.fromkeys(tag for each in memories for tag in each.tags)),
        entities=tuple(dict.fromkeys(name for each in memories for name in each.entities)),
        access_count=sum(each.access_count for each in memories),
    )
    names = [other.memory_id for other, _ in others]
    changes = [
        *(
            _redirect(each, name, kept.memory_id, now, who)
            for name in names
            for each in superseded[name]
        ),
        *_hide([other for other, _ in others], kept.memory_id, now, who, reason),
        _combine(held, kept, combined, memories, now, who, reason),
    ]
    return changes, Merged(
        kept.memory_id,
        held.version + 1,
        tuple(names),
        combined.tags,
        combined.entities,
        combined.access_count,
    )


def _redirect(held: MemoryState, other: str, keep: str, now: datetime, who: str) -> MemoryChange:
    version = held.version + 1
    noted = {"superseded_by": {"from": other, "to": keep}}
    event = Event("supersede", now, who, f"merged into {keep}", noted)
    fields = {"superseded_by": keep, "version": version, "updated_at": now}
    return MemoryChange(held.memory_no, fields, event)


def _hide(
    others: Sequence[MemoryState], keep: str, now: datetime, who: str, reason: str | None
) -> list[MemoryChange]:
    why = _because(f"merged into {keep}", reason)
    hidden = (versions.forget(other, now, who, why) for other in others)
    return [change for change in hidden if change is not None]


def _combine(
    held: MemoryState,
    kept: Memory,
    combined: Memory,
    memories: Sequence[Memory],
    now: datetime,
    who: str,
    reason: str | None,
) -> MemoryChange:
    version = held.version + 1
    accessed = [each.accessed_at for each in memories if each.accessed_at is not None]
    pinned = [each.pinned_at for each in memories if each.pinned_at is not None]
    noted = {
        name: {"from": getattr(kept, name), "to": getattr(combined, name)}
        for name in _COMBINED
        if getattr(kept, name) != getattr(combined, name)
    }
    merged = "merged with " + ", ".join(each.memory_id for each in memories[1:])
    return MemoryChange(
        held.memory_no,
        {
            "version": version,
            "updated_at": now,
            "access_count": combined.access_count,
            "accessed_at": max(accessed, default=None),
            "pinned_at": min(pinned, default=None),
        },
        Event("update", now, who, _because(merged, reason), noted),
        labels=combined,
    )


def _because(what: str, reason: str | None) -> str:
    return what if reason is None else f"{what}: {reason}"
