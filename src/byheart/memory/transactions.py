"""Carry out each change of memories in one transaction: read, decide, write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from byheart.contracts import (
    DedupKey,
    Draft,
    Event,
    MemoryChange,
    MemoryRows,
    MemoryState,
    Model,
    Models,
    NewText,
    Reader,
    Revision,
    Storage,
    Vectors,
    Writer,
    key_of,
    one_transaction,
)
from byheart.embedding import stored_vectors
from byheart.errors import Conflict
from byheart.memory import merging, turn_places, versions
from byheart.model import Memory, Merged, SaveResult
from byheart.system import clock

# A change of these fields changes the words that a chunk is found by.
_IN_KEYWORDS = frozenset(("title", "summary"))


def write(storage: Storage, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
    """Write memories, those of each space in one transaction.

    Leave a text alone that its space, session and kind already hold.
    If the client id of a turn already has another text, raise `Conflict`.
    """
    results: dict[int, SaveResult] = {}
    for space in dict.fromkeys(draft.memory.space for draft in drafts):
        own = {at: draft for at, draft in enumerate(drafts) if draft.memory.space == space}
        results |= zip(own, _write_space(storage, space, list(own.values()), model), strict=True)
    return [results[at] for at in range(len(drafts))]


@one_transaction
def _write_space(
    storage: Storage, space: str, drafts: Sequence[Draft], model: Model | None
) -> list[SaveResult]:
    results: list[SaveResult] = []
    with storage.writing(space) as writer:
        if model is not None:
            writer.prefetch(writer.models.read)
        seen: set[DedupKey] = set()
        for draft in drafts:
            if key_of(draft.memory) not in seen:
                _prefetch(writer, draft, model)
            if not seen:
                usable = stored_vectors.adopt(writer.models, model)
            seen.add(key_of(draft.memory))
            results.append(_write(writer, draft, usable))
    return results


def _prefetch(writer: Writer, draft: Draft, model: Model | None) -> None:
    """Ask at once for everything that a write of a draft has to know."""
    rows, memory = writer.memories, draft.memory
    writer.prefetch(
        lambda: rows.find(key_of(memory)),
        lambda: turn_places.choose(rows, memory.space, memory.session_id, draft.placed_at),
    )
    rows.prefetch_insert(memory, len(draft.chunks), model)


def _write(writer: Writer, draft: Draft, model: Model | None) -> SaveResult:
    rows, now, key = writer.memories, clock.now(), key_of(draft.memory)
    same = rows.find(key)
    if same is not None and versions.is_same(same, now):
        known = versions.result_of(same)
        if versions.names_other_text(key, known):
            raise versions.other_text_error(key, known)
        _apply(rows, versions.confirm(same, draft.memory, now, draft.who))
        return known
    if same is not None:
        _apply(rows, versions.set_aside(same, now, draft.who))
    # A text that is saved again is wanted, even if it was once forgotten for good.
    writer.tombstones.remove([key.text])
    return insert(rows, draft, model)


def insert(rows: MemoryRows, draft: Draft, model: Model | None) -> SaveResult:
    """Insert a new memory at its place in its session."""
    memory = draft.memory
    turn_no = turn_places.choose(rows, memory.space, memory.session_id, draft.placed_at)
    life = versions.begin_text(memory)
    text = NewText(memory, draft.derived, draft.chunks, draft.windows, turn_no, life)
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


@one_transaction
def revise(storage: Storage, revision: Revision, model: Model | None) -> SaveResult:
    """Apply a revision to a memory, unless the memory has changed since it was read."""
    with storage.writing(revision.memory.space) as writer:
        rows = writer.memories
        memory, now = revision.memory, clock.now()
        writer.prefetch(
            lambda: rows.held([memory.memory_id], memory.space),
            lambda: rows.find(key_of(memory)),
            writer.models.read,
        )
        if revision.text is not None:
            rows.prefetch_insert(memory, len(revision.text[0]), model)
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


def replace_text(
    rows: MemoryRows, held: MemoryState, revision: Revision, model: Model | None
) -> None:
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


def amend(rows: MemoryRows, held: MemoryState, revision: Revision, model: Model | None) -> None:
    """Change a memory's fields in place; its text stays."""
    memory = revision.memory
    fields = {
        **versions.written_fields(memory, revision.derived),
        "turn_no": _place(rows, held, memory),
        "version": held.version + 1,
        "lapsed_at": None,  # a changed memory is wanted: cancel its grace period
    }
    if "valid_from" in revision.changes and len(rows.texts(memory.memory_id, memory.space)) == 1:
        fields["since_at"] = min(memory.valid_from or memory.created_at, memory.created_at)
    event = versions.update_event(memory.updated_at, revision.who, revision.changes)
    rows.change([MemoryChange(held.memory_no, fields, event, labels=memory)])
    if not _IN_KEYWORDS.isdisjoint(revision.changes):
        rows.rewrite_chunks(held.memory_no, memory, revision.windows, model)


def _place(rows: MemoryRows, held: MemoryState, changed: Memory) -> int | None:
    """Keep the place of a memory in its session; in another session, choose one by its time."""
    if held.key.session_id == changed.session_id:
        return held.turn_no
    return turn_places.choose(rows, changed.space, changed.session_id, changed.created_at)


@one_transaction
def find_closing(storage: Storage, memory_id: str, space: str) -> versions.Closing | None:
    """Find how the last superseding of a memory changed its end."""
    with storage.reading(space) as reader:
        return versions.read_closing(reader.history(memory_id, space))


@one_transaction
def supersede(
    storage: Storage,
    old: str,
    new: str | None,
    closed: versions.Closing | None,
    space: str,
    who: str,
    reason: str | None,
) -> Memory:
    """Record which memory supersedes another; with `None`, make the memory valid again.

    `closed` says how an earlier superseding changed the end of the old memory, which is returned.
    """
    with storage.writing(space) as writer:
        rows, by = writer.memories, None
        held = versions.require_visible(_held(rows, old, space), old)
        if new is not None:
            by = versions.require_visible(_held(rows, new, space), new)
            versions.refuse_circle(old, new, _successors(rows, new, space))
        _apply(rows, versions.supersede(held, by, closed, clock.now(), who, reason))
        return rows.memory(held.memory_no)


def _successors(rows: MemoryRows, memory_id: str, space: str) -> Iterator[str]:
    """Follow the memories that supersede one another; imported ones may form a circle."""
    seen = {memory_id}
    held = _held(rows, memory_id, space)
    while held is not None and held.superseded_by is not None and held.superseded_by not in seen:
        seen.add(held.superseded_by)
        yield held.superseded_by
        held = _held(rows, held.superseded_by, space)


@one_transaction
def forget(
    storage: Storage, memory_ids: Sequence[str], space: str, who: str, reason: str | None
) -> list[str]:
    """Hide memories with all their texts; give the ids of those that were not hidden before."""
    with storage.writing(space) as writer:
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


@one_transaction
def restore(storage: Storage, memory_id: str, space: str, who: str) -> Memory:
    """Restore a memory, unless it is visible already; give it."""
    with storage.writing(space) as writer:
        rows = writer.memories
        held = _held(rows, memory_id, space)
        if held is None or held.forgotten_at is None:
            held = versions.require_visible(held, memory_id)
        else:
            show(rows, held, who)
        return rows.memory(held.memory_no)


def show(rows: MemoryRows, held: MemoryState, who: str) -> bool:
    """Make a hidden memory visible again; say whether it was hidden."""
    return _apply(rows, versions.restore(held, rows.find(held.key), clock.now(), who))


@one_transaction
def restore_session(storage: Storage, session_id: str, space: str, who: str) -> list[str]:
    """Restore the memories of a session that were hidden last, all at one moment.

    A text that was saved again since then stays hidden, because it is already visible.
    """
    with storage.writing(space) as writer:
        rows = writer.memories
        restored = []
        for held in rows.hidden_last(session_id, space):
            with contextlib.suppress(Conflict):
                if show(rows, held, who):
                    restored.append(held.memory_id)
        return restored


@one_transaction
def forget_emissions(storage: Storage, session_id: str, space: str) -> None:
    """Forget which passages a session was given, and the receipts of its contexts."""
    storage.settle()  # otherwise a waiting note would be written after this
    with storage.writing(space) as writer:
        writer.forget_emissions(space, session_id)
        writer.receipts.forget_session(space, session_id)


@one_transaction
def pin(storage: Storage, memory_id: str, space: str, who: str, *, pinned: bool) -> Memory:
    """Pin a memory to the top of every prompt that may contain it, or remove the pin; give it."""
    with storage.writing(space) as writer:
        rows = writer.memories
        held = versions.require_visible(_held(rows, memory_id, space), memory_id)
        _apply(rows, versions.pin(held, clock.now(), who, pinned=pinned))
        return rows.memory(held.memory_no)


@one_transaction
def set_trust(
    storage: Storage,
    memory_ids: Sequence[str],
    space: str,
    who: str,
    reason: str | None,
    *,
    trusted: bool,
) -> list[str]:
    """Trust memories, or have them wait for review; give the ids of those that it changed."""
    with storage.writing(space) as writer:
        now = clock.now()
        changes = {
            held.memory_id: change
            for held in writer.memories.held(dict.fromkeys(memory_ids), space)
            if (change := versions.set_trust(held, now, who, reason, trusted=trusted)) is not None
        }
        writer.memories.change(list(changes.values()))
        return list(changes)


@one_transaction
def merge(
    storage: Storage, keep: str, others: Sequence[str], space: str, who: str, reason: str | None
) -> Merged:
    """Add the labels and accesses of other memories to one memory, and hide the others."""
    with storage.writing(space) as writer:
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


def _held(rows: MemoryRows, memory_id: str, space: str) -> MemoryState | None:
    found = rows.held([memory_id], space)
    return found[0] if found else None


def _apply(rows: MemoryRows, change: MemoryChange | None) -> bool:
    if change is None:
        return False
    rows.change([change])
    return True


@one_transaction
def known(storage: Storage, keys: Sequence[DedupKey]) -> dict[DedupKey, SaveResult]:
    """Find which texts are stored already, unless they have expired."""
    with storage.reading(one_space(key.space for key in keys)) as reader:
        return _known(reader, keys)


def one_space(spaces: Iterable[str]) -> str | None:
    """Give the space that all items are in, or `None` if they are in several."""
    names = set(spaces)
    return names.pop() if len(names) == 1 else None


def _known(
    reader: Reader, keys: Sequence[DedupKey], *, trusted: bool = False
) -> dict[DedupKey, SaveResult]:
    """Find stored texts; with `trusted`, leave out those that wait for review."""
    found, now = reader.find(keys), clock.now()
    return {
        key: versions.result_of(held)
        for key, held in found.items()
        if versions.is_same(held, now) and not (trusted and held.untrusted_at is not None)
    }


class Prepared(NamedTuple):
    """Hold all that a save needs to know of the store before it splits and embeds texts.

    `waiting` says whether stored chunks wait for vectors, `vectors` are those of the texts that
    were sought. If all texts are known, none of this is looked up.
    """

    known: dict[DedupKey, SaveResult]
    models: Models | None
    waiting: bool
    vectors: dict[bytes, Vectors]


class Sought(NamedTuple):
    """Name texts by their hashes whose vectors a save needs, of one model."""

    model: Model
    hashes: Sequence[bytes]


@one_transaction
def prepare(storage: Storage, keys: Sequence[DedupKey], sought: Sought | None = None) -> Prepared:
    """Look up in one transaction what a save of these texts needs to know."""
    with storage.reading(one_space(key.space for key in keys)) as reader:
        rows = reader.models
        reader.prefetch(lambda: reader.find(keys), rows.read, rows.any_waiting)
        if sought is not None:
            reader.prefetch(lambda: rows.vectors_of(*sought))
        # A text that waits for review is looked up again when it is written: the user may say it.
        found = _known(reader, keys, trusted=True)
        if all(key in found for key in keys):
            return Prepared(found, None, False, {})
        vectors = rows.vectors_of(*sought) if sought is not None else {}
        return Prepared(found, rows.read(), rows.any_waiting(), vectors)
