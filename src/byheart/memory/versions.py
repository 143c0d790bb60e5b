"""Decide how a memory changes: new texts, superseding, forgetting, restoring, pinning.

A new text is a new row; the old row stays as `<memory_id>@<version>`, so that a search as of that
time finds it. All other fields change in place, and the history keeps the old and the new value.

Every function here takes values and gives values. `memory/transactions.py` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from byheart.contracts import DedupKey, Event, Held, MemoryChange, Revision
from byheart.errors import Conflict, Do, Hint, NotFound, Placeholder, VersionConflict
from byheart.model import Memory, SaveResult, text_id
from byheart.model.fields import FIELDS

# The reason recorded when an expired memory is hidden.
_SAID_AGAIN = "it had expired, and the same text was saved again"
_MICROSECOND = timedelta(microseconds=1)
_WRITTEN = tuple(
    field.name for field in FIELDS if field.column and field.written and field.owner == "memory"
)


def result_of(held: Held) -> SaveResult:
    """Describe a memory that already holds the text of a save."""
    return SaveResult(
        held.memory_id,
        "unchanged",
        held.chunks,
        held.key.content_hash,
        held.created_at,
        held.pending_vectors,
        held.version,
    )


def is_same(held: Held, now: datetime) -> bool:
    """Say whether a memory counts as the one that is saved again.

    A client id names the same memory even if that memory is hidden or has expired.
    """
    return held.key.client_id is not None or held.is_valid(now)


def names_other_text(key: DedupKey, known: SaveResult) -> bool:
    """Say whether a turn's client id already names another text, unless that text was changed."""
    named = key.is_turn and key.client_id is not None
    return named and known.version == 1 and known.content_hash != key.content_hash


def other_text_error(key: DedupKey, known: SaveResult, item: str = "") -> Conflict:
    """Make the error for a turn whose client id already names another text."""
    return Conflict(
        f"{item}client_id {key.client_id!r} was logged before with another text, "
        f"as {known.memory_id}, which stays as it is",
        Hint(
            "give each turn a client_id of its own, or change the text with: ",
            Do("update", known.memory_id),
        ),
    )


def refuse_double(revision: Revision, own: Held, other: Held | None, now: datetime) -> None:
    """Refuse a change that would make two valid memories hold the same text."""
    if other is None or other.memory_no == own.memory_no or not is_same(other, now):
        return
    raise Conflict(
        f"{other.memory_id} already holds this text in the same session and kind; "
        "nothing was written",
        Hint(
            "forget one of the two, or say which one is valid: ",
            Do("supersede", revision.memory.memory_id, other.memory_id),
        ),
    )


def refuse_changed(revision: Revision, held: Held | None) -> Held:
    """Refuse a revision of a memory that is hidden, or has another version by now."""
    memory_id = revision.memory.memory_id
    if held is None or held.forgotten_at is not None:
        raise NotFound(f"{memory_id} was forgotten meanwhile", "nothing was changed")
    if held.version != revision.expected_version:
        raise VersionConflict(
            f"{memory_id} has version {held.version} by now, not {revision.expected_version}: "
            "another caller changed it; nothing was written",
            Hint("read it with: ", Do("get", memory_id), ", and change it again"),
        )
    return held


def require_visible(held: Held | None, memory_id: str) -> Held:
    """Raise `NotFound` for a memory that does not exist or is hidden."""
    if held is None:
        raise unknown_error(memory_id)
    refuse_forgotten(memory_id, held.forgotten_at)
    return held


def refuse_forgotten(memory_id: str, forgotten_at: datetime | None) -> None:
    """Raise `NotFound` for a memory that was forgotten."""
    if forgotten_at is not None:
        raise NotFound(
            f"{memory_id} was forgotten on {forgotten_at:%Y-%m-%d}",
            Hint("bring it back with: ", Do("restore", memory_id)),
        )


def unknown_error(memory_id: str) -> NotFound:
    """Make the error for the id of a memory, text or chunk that the space does not have."""
    return NotFound(
        f"there is no {memory_id} in this space",
        Hint("look for it with: ", Do("search", Placeholder("QUERY"))),
    )


def end_text(held: Held, at: datetime) -> MemoryChange:
    """Turn the row of the present text into the row of an earlier one."""
    # The clock may have gone back, but the earlier text must still end before the next begins.
    fields = {
        "memory_id": text_id(held.memory_id, held.version),
        "version_of": held.memory_id,
        "replaced_at": max(at, held.since_at + _MICROSECOND),
        "lapsed_at": None,
    }
    return MemoryChange(held.memory_no, fields)


def carry_over(held: Held, ended: MemoryChange) -> dict[str, Any]:
    """Give the fields that a new text takes over from the text before it."""
    return {
        "since_at": ended.fields["replaced_at"],
        "accessed_at": held.accessed_at,
        "access_count": held.access_count,
        "superseded_by": held.superseded_by,
        "superseded_at": held.superseded_at,
        "pinned_at": held.pinned_at,
        "version": held.version + 1,
    }


def written_fields(memory: Memory, derived: tuple[str, ...]) -> dict[str, Any]:
    """Give the fields that an update writes."""
    return {
        **{name: getattr(memory, name) for name in _WRITTEN},
        "derived": derived,
    }


def update_event(at: datetime, who: str, changes: Mapping[str, tuple[Any, Any]]) -> Event:
    """Describe a change of fields in the history."""
    noted = {name: {"from": old, "to": new} for name, (old, new) in changes.items()}
    return Event("update", at, who, None, noted)


def supersede(
    old: Held, new: str | None, now: datetime, who: str, reason: str | None
) -> MemoryChange | None:
    """Record which memory supersedes another; with `None`, the old one is valid again."""
    if new == old.superseded_by:
        return None
    return MemoryChange(
        old.memory_no,
        {
            "superseded_by": new,
            "superseded_at": None if new is None else now,
            "version": old.version + 1,
            "updated_at": now,
        },
        Event(
            "supersede",
            now,
            who,
            reason,
            {"superseded_by": {"from": old.superseded_by, "to": new}},
        ),
    )


def refuse_circle(old: str, new: str, successors: Iterable[str]) -> None:
    """Refuse that a memory is superseded by itself, or by a memory that it supersedes."""
    if old == new:
        raise Conflict(f"{old} cannot be superseded by itself", "name another memory")
    if old in successors:
        raise Conflict(
            f"{old} cannot be superseded by {new}, which it supersedes itself",
            Hint("make it valid again first: ", Do("supersede", new)),
        )


def forget(held: Held, now: datetime, who: str, reason: str | None) -> MemoryChange | None:
    """Hide a memory with all its texts; give `None` if it is hidden already."""
    if held.forgotten_at is not None:
        return None
    return _set_forgotten(held, now, Event("forget", now, who, reason))


def set_aside(expired: Held, now: datetime, who: str) -> MemoryChange | None:
    """Hide an expired memory whose text is about to be saved again as a new memory."""
    return forget(expired, now, who, _SAID_AGAIN)


def restore(held: Held, same: Held | None, now: datetime, who: str) -> MemoryChange | None:
    """Make a hidden memory visible again; give `None` if it is visible.

    `same` is the memory with the same text or client id; a visible one makes restoring impossible.
    """
    if held.forgotten_at is None:
        return None
    if same is not None and same.memory_no != held.memory_no and same.forgotten_at is None:
        raise Conflict(
            f"the same text was saved again as {same.memory_id}; nothing was changed",
            Hint("use that one, or forget it first: ", Do("forget", same.memory_id)),
        )
    return _set_forgotten(held, None, Event("restore", now, who))


def _set_forgotten(held: Held, at: datetime | None, event: Event) -> MemoryChange:
    fields = {"forgotten_at": at, "lapsed_at": None}
    return MemoryChange(held.memory_no, fields, event, every_text=True)


def pin(held: Held, now: datetime, who: str, *, pinned: bool) -> MemoryChange | None:
    """Pin a memory or remove its pin; give `None` if that changes nothing."""
    if pinned == (held.pinned_at is not None):
        return None
    event = Event("pin" if pinned else "unpin", now, who)
    return MemoryChange(
        held.memory_no, {"pinned_at": now if pinned else None}, event, indexed=False
    )
