"""Decide how a memory changes: new texts, superseding, forgetting, restoring, pinning.

A new text is a new row; the old row stays as `<memory_id>@<version>`, so that a search as of that
time finds it. All other fields change in place, and the history keeps the old and the new value.

Every function here takes values and gives values. `memory/transactions.py` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from byheart.contracts import DedupKey, Event, MemoryChange, MemoryState, Revision
from byheart.errors import Conflict, Do, Hint, NotFound, Placeholder, VersionConflict
from byheart.model import HistoryEntry, Memory, SaveResult, text_id
from byheart.model.fields import FIELDS

# The reason recorded when an expired memory is hidden.
_SAID_AGAIN = "it had expired, and the same text was saved again"
# The reason recorded when a memory that waited for review is trusted.
_SAID_BY_USER = "the user saved the same text"
_MICROSECOND = timedelta(microseconds=1)
_WRITTEN = tuple(
    field.name for field in FIELDS if field.column and field.written and field.owner == "memory"
)


class Closing(NamedTuple):
    """Hold the end of a memory before and after it was superseded."""

    before: datetime | None
    after: datetime | None


def begin_text(memory: Memory) -> dict[str, Any]:
    """Give the fields of a first text that a save does not write: trust, and when it began.

    A statement that was true before it was saved counts from then on in a search as of a time.
    """
    fields: dict[str, Any] = {} if memory.trusted else {"untrusted_at": memory.untrusted_at}
    if memory.valid_from is not None and memory.valid_from < memory.updated_at:
        fields["since_at"] = memory.valid_from
    return fields


def result_of(held: MemoryState) -> SaveResult:
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


def is_same(held: MemoryState, now: datetime) -> bool:
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


def refuse_double(
    revision: Revision, own: MemoryState, other: MemoryState | None, now: datetime
) -> None:
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


def refuse_changed(revision: Revision, held: MemoryState | None) -> MemoryState:
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


def require_visible(held: MemoryState | None, memory_id: str) -> MemoryState:
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


def end_text(held: MemoryState, at: datetime) -> MemoryChange:
    """Turn the row of the present text into the row of an earlier one."""
    # The clock may have gone back, but the earlier text must still end before the next begins.
    fields = {
        "memory_id": text_id(held.memory_id, held.version),
        "version_of": held.memory_id,
        "replaced_at": max(at, held.since_at + _MICROSECOND),
        "lapsed_at": None,
    }
    return MemoryChange(held.memory_no, fields)


def carry_over(held: MemoryState, ended: MemoryChange) -> dict[str, Any]:
    """Give the fields that a new text takes over from the text before it."""
    return {
        "since_at": ended.fields["replaced_at"],
        "accessed_at": held.accessed_at,
        "access_count": held.access_count,
        "superseded_by": held.superseded_by,
        "superseded_at": held.superseded_at,
        "pinned_at": held.pinned_at,
        "untrusted_at": held.untrusted_at,
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
    old: MemoryState,
    new: MemoryState | None,
    closed: Closing | None,
    now: datetime,
    who: str,
    reason: str | None,
) -> MemoryChange | None:
    """Record which memory supersedes another, and close the old one; with `None`, undo both.

    The old memory ends when the new one begins, or now. `closed` says how an earlier superseding
    closed it.
    """
    by = None if new is None else new.memory_id
    if by == old.superseded_by:
        return None
    before = _reopened(old, closed)
    ends = before if new is None else _end_of(old, new, before, now)
    changes: dict[str, Mapping[str, Any]] = {"superseded_by": {"from": old.superseded_by, "to": by}}
    # The end before the first of several supersedings is noted: an undoing goes back to it.
    opened = old.valid_until if new is None else before
    if ends != opened:
        changes["valid_until"] = {"from": opened, "to": ends}
    return MemoryChange(
        old.memory_no,
        {
            "superseded_by": by,
            "superseded_at": None if by is None else now,
            "valid_until": ends,
            "version": old.version + 1,
            "updated_at": now,
        },
        Event("supersede", now, who, reason, changes),
    )


def read_closing(history: Sequence[HistoryEntry]) -> Closing | None:
    """Find how the last superseding of a memory changed its end."""
    for entry in reversed(history):
        if entry.operation == "supersede":
            ends = entry.changes.get("valid_until")
            if ends is None or entry.changes["superseded_by"]["to"] is None:
                return None
            return Closing(_moment(ends["from"]), _moment(ends["to"]))
    return None


def _reopened(old: MemoryState, closed: Closing | None) -> datetime | None:
    """Return the end of a memory without its superseding, unless somebody changed it since."""
    if old.superseded_by is None:
        return old.valid_until
    if closed is None:  # superseded by an earlier version of Byheart, which noted no end
        return None if old.valid_until == old.superseded_at else old.valid_until
    return closed.before if closed.after == old.valid_until else old.valid_until


def _end_of(old: MemoryState, new: MemoryState, before: datetime | None, now: datetime) -> datetime:
    """Choose when a superseded memory ends: not before it began, and not later than it did."""
    begins = new.valid_from
    ends = now if begins is None or begins > now else begins
    if old.valid_from is not None and ends <= old.valid_from:
        ends = old.valid_from + _MICROSECOND
    return ends if before is None else min(before, ends)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def refuse_circle(old: str, new: str, successors: Iterable[str]) -> None:
    """Refuse that a memory is superseded by itself, or by a memory that it supersedes."""
    if old == new:
        raise Conflict(f"{old} cannot be superseded by itself", "name another memory")
    if old in successors:
        raise Conflict(
            f"{old} cannot be superseded by {new}, which it supersedes itself",
            Hint("make it valid again first: ", Do("supersede", new)),
        )


def forget(held: MemoryState, now: datetime, who: str, reason: str | None) -> MemoryChange | None:
    """Hide a memory with all its texts; give `None` if it is hidden already."""
    if held.forgotten_at is not None:
        return None
    return _set_forgotten(held, now, Event("forget", now, who, reason))


def set_aside(expired: MemoryState, now: datetime, who: str) -> MemoryChange | None:
    """Hide an expired memory whose text is about to be saved again as a new memory."""
    return forget(expired, now, who, _SAID_AGAIN)


def restore(
    held: MemoryState, same: MemoryState | None, now: datetime, who: str
) -> MemoryChange | None:
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


def _set_forgotten(held: MemoryState, at: datetime | None, event: Event) -> MemoryChange:
    fields = {"forgotten_at": at, "lapsed_at": None}
    return MemoryChange(held.memory_no, fields, event, every_text=True)


def pin(held: MemoryState, now: datetime, who: str, *, pinned: bool) -> MemoryChange | None:
    """Pin a memory or remove its pin; give `None` if that changes nothing."""
    if pinned == (held.pinned_at is not None):
        return None
    event = Event("pin" if pinned else "unpin", now, who)
    return MemoryChange(
        held.memory_no, {"pinned_at": now if pinned else None}, event, indexed=False
    )


def set_trust(
    held: MemoryState, now: datetime, who: str, reason: str | None, *, trusted: bool
) -> MemoryChange | None:
    """Put a memory among those that wait for review, or trust it; give `None` if it is so."""
    if trusted == (held.untrusted_at is None):
        return None
    fields = {"untrusted_at": None if trusted else now}
    event = Event("trust" if trusted else "distrust", now, who, reason)
    return MemoryChange(held.memory_no, fields, event, every_text=True)


def confirm(held: MemoryState, said: Memory, now: datetime, who: str) -> MemoryChange | None:
    """Trust an untrusted text that the user says as well."""
    if said.origin != "user" or not said.trusted:
        return None
    return set_trust(held, now, who, _SAID_BY_USER, trusted=True)
