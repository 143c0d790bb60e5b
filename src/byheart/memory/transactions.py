"""Carry out each change of memories in one transaction: read, decide, write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from byheart.contracts import (
    DedupKey,
    Draft,
    Event,
    Held,
    MemoryChange,
    MemoryRows,
    Model,
    Models,
    NewText,
    Reader,
    Revision,
    Storage,
    key_of,
)
from byheart.embedding import stored_vectors
from byheart.errors import Conflict
from byheart.memory import merging, turn_places, versions
from byheart.model import Memory, Merged, SaveResult
from byheart.system import clock

# A change of these fields changes the words that a chunk is found by.
_IN_KEYWORDS = frozenset(("title", "summary"))


def write(storage: Storage, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
    """Write memories; leave a text alone that its space, session and kind already hold.

    If the client id of a turn already has another text, raise `Conflict`.
    """
    with storage.writing() as writer:
        rows = writer.memories
        model = stored_vectors.adopt(writer.models, model)
        results = []
        for draft in drafts:
            now = clock.now()
            key = key_of(draft.memory)
            same = rows.find(key)
            if same is not None and versions.is_same(same, now):
                known = versions.result_of(same)
                if versions.names_other_text(key, known):
                    raise versions.other_text_error(key, known)
                results.append(known)
            else:
                if same is not None:
                    _apply(rows, versions.set_aside(same, now, draft.who))
                # A text that is saved again is wanted, even if it was once forgotten for good.
                writer.tombstones.remove([key_of(draft.memory).text])
                results.append(insert(rows, draft, model))
        return results


def insert(rows: MemoryRows, draft: Draft, model: Model | None) -> SaveResult:
    """Insert a new memory at its place in its session."""
    memory = draft.memory
    turn_no = turn_places.choose(rows, memory.space, memory.session_id, draft.placed_at)
    text = NewText(memory, draft.derived, draft.chunks, draft.windows, turn_no)
    number, pending = rows.insert(text, model)
    created = Event("create", memory.created_at, draft.who)
    rows.change([MemoryChange(number, event=created, indexed=False)])
    return SaveResult(
        memory.memory_id,
        "created",
        len(draft.chunks),
        memory.content_hash,
        memory.created_at,
        pending,
    )


def revise(storage: Storage, revision: Revision, model: Model | None) -> SaveResult:
    """Apply a revision to a memory, unless the memory has changed since it was read."""
    with storage.writing() as writer:
        rows = writer.memories
        memory, now = revision.memory, clock.now()
        held = versions.refuse_changed(revision, _held(rows, memory.memory_id, memory.space))
        same = rows.find(key_of(memory))
        versions.refuse_double(revision, held, same, now)
        if same is not None and same.memory_no != held.memory_no:
            _apply(rows, versions.set_aside(same, now, revision.who))
        model = stored_vectors.adopt(writer.models, model)
        if revision.text is not None:
            writer.tombstones.remove([key_of(memory).text])
            replace_text(rows, held, revision, model)
        else:
            amend(rows, held, revision, model)
        (after,) = rows.held([memory.memory_id], memory.space)
        return SaveResult(
            memory.memory_id,
            "updated",
            after.chunks,
            memory.content_hash,
            memory.created_at,
            after.pending_vectors,
            after.version,
        )


def replace_text(rows: MemoryRows, held: Held, revision: Revision, model: Model | None) -> None:
    """Give a memory another text; keep the row of the old text under the id of its version."""
    memory = revision.memory
    ended = versions.end_text(held, memory.updated_at)
    rows.change([ended])
    assert revision.text is not None
    chunks, windows = revision.text
    turn_no, life = _place(rows, held, memory), versions.carry_over(held, ended)
    text = NewText(memory, revision.derived, chunks, windows, turn_no, life)
    number, _ = rows.insert(text, model)
    rows.move_history(held.memory_no, number)
    event = versions.update_event(memory.updated_at, revision.who, revision.changes)
    rows.change([MemoryChange(number, event=event, indexed=False)])


def amend(rows: MemoryRows, held: Held, revision: Revision, model: Model | None) -> None:
    """Change a memory's fields in place; its text stays."""
    memory = revision.memory
    fields = {
        **versions.written_fields(memory, revision.derived),
        "turn_no": _place(rows, held, memory),
        "version": held.version + 1,
        "lapsed_at": None,  # a changed memory is wanted: cancel its grace period
    }
    event = versions.update_event(memory.updated_at, revision.who, revision.changes)
    rows.change([MemoryChange(held.memory_no, fields, event, labels=memory)])
    if not _IN_KEYWORDS.isdisjoint(revision.changes):
        rows.rewrite_chunks(held.memory_no, memory, revision.windows, model)


def _place(rows: MemoryRows, held: Held, changed: Memory) -> int | None:
    """Keep the place of a memory in its session; in another session, choose one by its time."""
    if held.key.session_id == changed.session_id:
        return held.turn_no
    return turn_places.choose(rows, changed.space, changed.session_id, changed.created_at)


def supersede(
    storage: Storage, old: str, new: str | None, space: str, who: str, reason: str | None
) -> None:
    """Record which memory supersedes another; with `None`, make the memory valid again."""
    with storage.writing() as writer:
        rows = writer.memories
        held = versions.require_visible(_held(rows, old, space), old)
        if new is not None:
            versions.require_visible(_held(rows, new, space), new)
            versions.refuse_circle(old, new, _successors(rows, new, space))
        _apply(rows, versions.supersede(held, new, clock.now(), who, reason))


def _successors(rows: MemoryRows, memory_id: str, space: str) -> Iterator[str]:
    """Follow the memories that supersede one another; imported ones may form a circle."""
    seen = {memory_id}
    held = _held(rows, memory_id, space)
    while held is not None and held.superseded_by is not None and held.superseded_by not in seen:
        seen.add(held.superseded_by)
        yield held.superseded_by
        held = _held(rows, held.superseded_by, space)


def forget(
    storage: Storage, memory_ids: Iterable[str], space: str, who: str, reason: str | None
) -> list[str]:
    """Hide memories with all their texts; give the ids of those that were not hidden before."""
    with storage.writing() as writer:
        return hide(writer.memories, memory_ids, space, who, reason)


def hide(
    rows: MemoryRows, memory_ids: Iterable[str], space: str, who: str, reason: str | None
) -> list[str]:
    """Hide memories within a transaction; give the ids of those that were not hidden before."""
    now = clock.now()
    changes = {
        held.memory_id: change
        for held in rows.held(dict.fromkeys(memory_ids), space)
        if (change := versions.forget(held, now, who, reason)) is not None
    }
    rows.change(list(changes.values()))
    return list(changes)


def restore(storage: Storage, memory_id: str, space: str, who: str) -> bool:
    """Restore a hidden memory; say whether it had been hidden."""
    with storage.writing() as writer:
        rows = writer.memories
        held = _held(rows, memory_id, space)
        if held is None or held.forgotten_at is None:
            versions.require_visible(held, memory_id)
            return False
        return show(rows, held, who)


def show(rows: MemoryRows, held: Held, who: str) -> bool:
    """Make a hidden memory visible again; say whether it was hidden."""
    return _apply(rows, versions.restore(held, rows.find(held.key), clock.now(), who))


def restore_session(storage: Storage, session_id: str, space: str, who: str) -> list[str]:
    """Restore the memories of a session that were hidden last, all at one moment.

    A text that was saved again since then stays hidden, because it is already visible.
    """
    with storage.writing() as writer:
        rows = writer.memories
        restored = []
        for held in rows.hidden_last(session_id, space):
            with contextlib.suppress(Conflict):
                if show(rows, held, who):
                    restored.append(held.memory_id)
        return restored


def pin(storage: Storage, memory_id: str, space: str, who: str, *, pinned: bool) -> None:
    """Pin a memory to the top of every prompt that may contain it, or remove the pin."""
    with storage.writing() as writer:
        rows = writer.memories
        held = versions.require_visible(_held(rows, memory_id, space), memory_id)
        _apply(rows, versions.pin(held, clock.now(), who, pinned=pinned))


def merge(
    storage: Storage, keep: str, others: Sequence[str], space: str, who: str, reason: str | None
) -> Merged:
    """Add the labels and accesses of other memories to one memory, and hide the others."""
    with storage.writing() as writer:
        rows = writer.memories
        found = [
            versions.require_visible(_held(rows, memory_id, space), memory_id)
            for memory_id in (keep, *others)
        ]
        merging.refuse_superseded(found[0])
        kept, *rest = [(held, rows.memory(held.memory_no)) for held in found]
        superseded = {other: rows.superseded_by(other, space) for other in others}
        changes, merged = merging.merge(kept, rest, superseded, clock.now(), who, reason)
        rows.change(changes)
        return merged


def _held(rows: MemoryRows, memory_id: str, space: str) -> Held | None:
    found = rows.held([memory_id], space)
    return found[0] if found else None


def _apply(rows: MemoryRows, change: MemoryChange | None) -> bool:
    if change is None:
        return False
    rows.change([change])
    return True


def known(storage: Storage, keys: Sequence[DedupKey]) -> dict[DedupKey, SaveResult]:
    """Find which texts are stored already, unless they have expired."""
    with storage.reading() as reader:
        return _known(reader, keys)


def _known(reader: Reader, keys: Sequence[DedupKey]) -> dict[DedupKey, SaveResult]:
    found, now = reader.find(keys), clock.now()
    return {
        key: versions.result_of(held) for key, held in found.items() if versions.is_same(held, now)
    }


class Prepared(NamedTuple):
    """Hold all that a save needs to know of the store before it splits and embeds texts.

    `waiting` is the number of stored chunks that wait for vectors. If all texts are known, the
    models and that number are not looked up.
    """

    known: dict[DedupKey, SaveResult]
    models: Models | None
    waiting: int


def prepare(storage: Storage, keys: Sequence[DedupKey]) -> Prepared:
    """Look up in one transaction what a save of these texts needs to know."""
    with storage.reading() as reader:
        found = _known(reader, keys)
        if all(key in found for key in keys):
            return Prepared(found, None, 0)
        return Prepared(found, reader.models.read(), reader.models.count_lacking(None))
