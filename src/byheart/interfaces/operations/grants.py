"""Define grants: what a caller may do, and inside which space and session.

A grant without a space belongs to the owner, who works on the machine itself. A grant for a session
reads that session and the global memories, and writes only to that session.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from byheart.errors import InvalidInput, NotFound
from byheart.interfaces.operations.voices import Forbidden as Forbidden
from byheart.interfaces.operations.voices import attribute
from byheart.memory.references import may_be_short
from byheart.model import Access, HistoryEntry, Voice
from byheart.model.checks import check_ids
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore

if TYPE_CHECKING:  # at run time, the table imports this module
    from byheart.interfaces.operations.table import Operation

# How an operation is confined to a session: by a filter, by checking the memory that is named, by
# both, or not at all, because the operation is about the whole space.
Reach = Literal["filter", "memory", "both", "space"]
# The name of a browser's login in messages.
LOGIN = "login"


@dataclass(frozen=True, slots=True)
class Grant:
    """Describe what a caller may do, in which space and session, and in whose name."""

    access: Access = "write"
    space: str | None = None
    session_id: str | None = None
    who: str | None = None
    # How a message names what the caller showed to be let in.
    shown: str = "API key"
    voice: Voice = "user"

    def narrow(
        self, operation: Operation, given: dict[str, Any], store: MemoryStore
    ) -> dict[str, Any]:
        """Confine a call to the grant's space and session, or refuse it."""
        verb, reach, needs = operation.name, operation.reach, operation.needed_for(given)
        if needs == "write" and self.access != "write":
            raise Forbidden(f"this {self.shown} may read only, and {verb} writes", self._writable())
        narrowed = attribute(operation, given, self.voice) if needs == "write" else dict(given)
        if self.space is not None:
            narrowed["space"] = self._only("space", given.get("space"), self.space)
        self._complete_ids(narrowed, store)
        if self.session_id is None:
            return narrowed
        if reach == "space":
            raise Forbidden(
                f"this API key is bound to the session {self.session_id}, and {verb} is about the "
                "whole space",
                "use an API key without a session",
            )
        if given.get("include_task") is not None:
            raise Forbidden(
                f"this API key is bound to the session {self.session_id}, and include_task is "
                "about other sessions",
                "leave include_task out, or use an API key without a session",
            )
        # `memory_id` and filters are mutually exclusive, so a call with ids gets no session filter;
        # `_check_memories` checks the ids.
        if reach == "both" or (reach == "filter" and not given.get("memory_id")):
            asked = given.get("session_id")
            narrowed["session_id"] = self._only("session_id", asked, self.session_id)
            if needs == "write" and "include_global" in operation.parameters:
                narrowed["include_global"] = False  # global memories are read-only here
        allowed = (self.session_id, None) if needs == "read" else (self.session_id,)
        if operation.by_path:
            _put_ids_for_paths(narrowed, allowed, store)
        _check_memories(narrowed, allowed, store)
        if reach == "memory" and given.get("session_id", self.session_id) is None:
            raise Forbidden(
                f"this API key is bound to the session {self.session_id!r}, and cannot move a "
                "memory out of it",
                "leave session_id out, or use an API key without a session",
            )
        if reach == "memory":
            self._only("session_id", given.get("session_id"), self.session_id)
        return narrowed

    def _writable(self) -> str:
        if self.shown == LOGIN:
            return "log in again, this time for writing"
        return "use an API key that may write; the operator of the store makes API keys"

    def _only(self, name: str, asked: object, allowed: str) -> str:
        if asked is not None and asked != allowed:
            raise Forbidden(
                f"this {self.shown} is bound to the {name} {allowed!r}, not {asked!r}",
                f"leave {name} out, or use an API key of that {name}",
            )
        return allowed

    def _complete_ids(self, given: dict[str, Any], store: MemoryStore) -> None:
        """Complete ids that a prompt or a person shortened."""
        space = given.get("space")
        for name in _NAMES_OF_MEMORIES:
            said = given.get(name)
            if isinstance(said, str):
                given[name] = self._whole_id(said, store, space)
            elif isinstance(said, list):
                given[name] = [self._whole_id(each, store, space) for each in said]

    def _whole_id(self, name: Any, store: MemoryStore, space: str | None) -> Any:
        if not isinstance(name, str) or not may_be_short(name):
            return name
        try:
            return store.admin.complete_id(name, space)
        except InvalidInput:
            if self.session_id is None:
                raise
            return name  # the error names memories, which may be of other sessions

    def visible(self, history: Sequence[HistoryEntry]) -> tuple[HistoryEntry, ...]:
        """Leave out the history of a memory from before it moved here from another session."""
        for at in reversed(range(len(history) if self.session_id is not None else 0)):
            moved = history[at].changes.get("session_id")
            if moved is not None and moved["from"] not in (self.session_id, None):
                # The move's other changes would reveal the earlier values.
                return (replace(history[at], reason=None, changes={}), *history[at + 1 :])
        return tuple(history)


_NAMES_OF_MEMORIES = ("memory_id", "chunk_id", "by", "keep", "others", "after")


def _put_ids_for_paths(
    given: dict[str, Any], allowed: Collection[str | None], store: MemoryStore
) -> None:
    """Replace paths by ids: a path may name another memory after it was checked."""
    for name in ("memory_id", "chunk_id"):
        if name in given:
            found = store.sessions.identify(given[name], allowed, given.get("space"))
            if found is None:
                raise _not_in_session(given[name])
            given[name] = found


def _check_memories(
    given: dict[str, Any], allowed: Collection[str | None], store: MemoryStore
) -> None:
    """Refuse ids of memories outside the session, as if they did not exist."""
    named = [each for name in _NAMES_OF_MEMORIES for each in check_ids(name, given.get(name))]
    sessions = store.sessions.of(named, given.get("space"))
    for memory_id in named:
        if memory_id not in sessions or sessions[memory_id] not in allowed:
            raise _not_in_session(memory_id)


def _not_in_session(memory_id: str) -> NotFound:
    return NotFound(
        f"there is no memory {memory_id!r} in this session",
        "check the id: only memories of this session can be reached",
    )
