"""Count, resume and promote sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from byheart.contracts import DedupKey, Listing, Reader, Storage
from byheart.conversation.running_summary import find_summary
from byheart.errors import Do, Hint, InvalidInput, NotFound
from byheart.memory import notes, transactions
from byheart.memory.save_requests import SaveRequest
from byheart.memory.saving import Saver
from byheart.model import (
    Filter,
    Memory,
    Promoted,
    Promotion,
    ResumedSession,
    SaveResult,
    SessionStats,
)
from byheart.model.fields import SAVE_FIELDS
from byheart.model.filters import of_session
from byheart.model.memories import RUNNING_SUMMARY_ID
from byheart.system import clock

# Kinds that matter only during their session, not to later sessions.
PASSING_KINDS = (
    *("message", "tool_output", "session_context", "session_summary"),
    *("input_prompt", "working_memory"),
)
_BATCH = 64


class Sessions:
    """Count sessions, resume them, and copy their lasting memories to the global scope."""

    def __init__(self, storage: Storage, saver: Saver) -> None:
        self._storage = storage
        self._saver = saver

    def stats(self, session_id: str | None, space: str) -> SessionStats:
        """Count the memories of one session, or of all sessions together."""
        with self._storage.reading(space) as reader:
            return reader.session_stats(of_session(session_id, space))

    def resume(
        self, session_id: str, task_code: str | None, agent_id: str | None, limit: int, space: str
    ) -> ResumedSession:
        """Gather a session's summary, context, prompts, reports and working memories."""
        own = replace(of_session(session_id, space), agent_id=agent_id)
        with self._storage.reading(space) as reader:

            def last(kind: str, most: int) -> tuple[Memory, ...]:
                where = replace(own, kind=(kind,))
                return tuple(
                    reader.memories(Listing(where, "last turn", most, task_code=task_code))
                )

            summary = find_summary(reader, session_id, space)
            contexts = last("session_context", 1)
            left = ResumedSession(
                session_id=session_id,
                task_code=task_code,
                found=bool(reader.session_stats(of_session(session_id, space)).total_memories),
                summary=None if summary is None or summary.forgotten_at else summary,
                context=contexts[0] if contexts else None,
                input_prompts=last("input_prompt", limit),
                reports=last("report", limit),
                working_memories=last("working_memory", limit),
            )
        given = [each.memory_id for each in _all_of(left)]
        self._storage.note(notes.emissions(given, space, session_id))
        return left

    def promote(
        self,
        session_id: str | None,
        memory_ids: Sequence[str],
        kinds: tuple[str, ...],
        space: str,
        who: str,
        *,
        dry_run: bool,
    ) -> Promoted:
        """Copy memories of sessions to the global scope; do not copy a text that exists there."""
        if session_id is None and not memory_ids:
            raise InvalidInput(
                "neither a session nor a memory was named",
                "name a session_id, or memories by their ids",
            )
        with self._storage.reading(space) as reader:
            if memory_ids:
                chosen = _named(reader, memory_ids, session_id, kinds, space)
            else:
                chosen = list(_lasting(reader, of_session(session_id, space), kinds))
        promotions: list[Promotion] = []
        copied: set[DedupKey] = set()
        rest = iter(chosen)
        while batch := list(islice(rest, _BATCH)):
            requests = [_copied(memory, who) for memory in batch]
            saved: Sequence[SaveResult | None]
            if dry_run:
                known = transactions.known(self._storage, [request.key for request in requests])
                saved = [known.get(request.key) for request in requests]
            else:
                made = saved = self._saver.save(requests)
                self._supersede_copies(batch, made, space, who)
            for memory, request, result in zip(batch, requests, saved, strict=True):
                # In a dry run, the second of two equal texts counts as unchanged, as in a real run.
                again = request.key in copied
                copied.add(request.key)
                promotions.append(
                    Promotion(
                        memory_id=memory.memory_id,
                        promoted_id=None if result is None else result.memory_id,
                        kind=request.kind,
                        status=result.status if result else "unchanged" if again else "created",
                        summary=memory.summary,
                    )
                )
        return Promoted(session_id, tuple(promotions), dry_run)

    def _supersede_copies(
        self, memories: Sequence[Memory], made: Sequence[SaveResult], space: str, who: str
    ) -> None:
        """Supersede the old copies of memories that changed after they were promoted."""
        fresh = {
            memory.memory_id: result.memory_id
            for memory, result in zip(memories, made, strict=True)
            if memory.version > 1 and result.status == "created"
        }
        if not fresh:
            return
        with self._storage.reading(space) as reader:
            copies = reader.copies_of(list(fresh), space)
        for copy, source in copies:
            if copy != fresh[source]:
                transactions.supersede(
                    self._storage, copy, fresh[source], None, space, who, "promoted again"
                )


def _all_of(left: ResumedSession) -> Iterator[Memory]:
    yield from filter(None, (left.summary, left.context))
    yield from (*left.input_prompts, *left.reports, *left.working_memories)


def _named(
    reader: Reader,
    memory_ids: Sequence[str],
    session_id: str | None,
    kinds: tuple[str, ...],
    space: str,
) -> list[Memory]:
    found = []
    for memory_id in dict.fromkeys(memory_ids):
        memory = reader.memory(memory_id, space)
        if memory is None or memory.replaced_at is not None:
            raise NotFound(
                f"there is no memory {memory_id} in this space; nothing was promoted",
                Hint("look for it with: ", Do("list")),
            )
        if memory.session_id is None:
            raise InvalidInput(f"{memory_id} is global already", "name memories of a session")
        if kinds and memory.kind not in kinds:
            raise InvalidInput(
                f"{memory_id} is a {memory.kind}, not a {' or '.join(kinds)}; nothing was promoted",
                "leave kind out, or name memories of that kind",
            )
        if memory.expires_at is not None and memory.expires_at <= clock.now():
            raise InvalidInput(
                f"{memory_id} expired on {memory.expires_at:%Y-%m-%d}; nothing was promoted",
                Hint("keep it first: ", Do("update", memory_id, ttl_days=None)),
            )
        if session_id is not None and memory.session_id != session_id:
            raise InvalidInput(
                f"{memory_id} belongs to the session {memory.session_id!r}, not {session_id!r}",
                "leave session_id out, or name memories of that session",
            )
        found.append(memory)
    return found


def _lasting(reader: Reader, own: Filter, kinds: tuple[str, ...]) -> Iterator[Memory]:
    """Return the memories of a session that are still valid, oldest first.

    Messages and kinds that matter only to the session are left out, unless `kinds` names them.
    """
    where = replace(own, kind=kinds, superseded=False)
    for memory_id in reader.ids(Listing(where, "oldest")):
        memory = reader.memory(memory_id, own.space)
        if memory is None or memory.client_id == RUNNING_SUMMARY_ID:
            continue
        passing = memory.role is not None or memory.kind in PASSING_KINDS
        if (kinds or not passing) and memory.content.strip():
            yield memory


def _copied(memory: Memory, who: str) -> SaveRequest:
    """Make a global copy of a memory; a message becomes a note, since it is no turn any more."""
    said = {name: getattr(memory, name) for name in SAVE_FIELDS if name != "ttl_days"}
    said |= {
        "kind": "note" if memory.kind == "message" else memory.kind,
        "session_id": None,
        "metadata": {
            **memory.metadata,
            "promoted_from": memory.memory_id,
            "promoted_session": memory.session_id,
        },
    }
    # The importance stays the same; the rest that was derived is derived again.
    for name in memory.derived:
        said[name] = memory.importance if name == "importance" else None
    return SaveRequest(**said, content_hash=memory.content_hash, at=clock.now(), who=who)
