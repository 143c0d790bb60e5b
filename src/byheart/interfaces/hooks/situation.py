"""Give a reaction its event, settings, deadline, answer and store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import filterfalse

from byheart.conversation.agent_events import CLAUDE_CODE
from byheart.conversation.capture import name_turn
from byheart.interfaces.hooks.attempts import Answer, Deadline
from byheart.interfaces.hooks.events import Event
from byheart.model import Memory
from byheart.opening import open as open_store
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore

_SUMMARY = "session_summary"
# How often the same words may be said in a session, and how many turns are checked for them.
_MOST_REPETITIONS, _MOST_TURNS = 10_000, 1000


@dataclass(frozen=True, slots=True)
class Situation:
    """Hold an event, and the means to react to it."""

    event: Event
    settings: Settings
    deadline: Deadline
    answer: Answer
    # The open store of the server that reacts; without one, each reaction opens its own.
    shared: MemoryStore | None = None

    @contextlib.contextmanager
    def store(self, *, embedding: bool) -> Iterator[MemoryStore]:
        """Open the store; without an embedder, saved texts get their vectors later."""
        if self.shared is not None:
            yield self.shared
            return
        provider = self.settings.embedding_provider if embedding else "none"
        settings = replace(
            self.settings,
            embedding_provider=provider,
            offline=True,  # an agent cannot wait for a download
            busy_timeout_seconds=min(self.settings.busy_timeout_seconds, self.deadline.left),
            collect_stats=False,
        )
        with open_store(settings=settings) as store:
            yield store


Reaction = Callable[[Situation], None]


def keep_said(
    store: MemoryStore,
    session_id: str,
    project: str | None,
    role: str,
    text: str,
    created_at: str | None = None,
) -> None:
    """Log a turn under the name that it will have when the transcript is read."""
    said = store.sessions.transcript(session_id, limit=_MOST_TURNS, latest=True, role=role).turns
    taken = {turn.client_id for turn in said}
    names = (name_turn(role, text, number) for number in range(_MOST_REPETITIONS))
    for name in filterfalse(taken.__contains__, names):
        kept = store.log(
            session_id,
            role,
            text,
            client_id=name,
            agent_id=CLAUDE_CODE,
            task_code=project,
            created_at=created_at,
        )
        if kept.status == "created":
            return


def summary_of(store: MemoryStore, session_id: str) -> Memory | None:
    """Return the summary of a session, if there is one."""
    page = store.list(limit=1, kind=_SUMMARY, session_id=session_id, include_global=False)
    return page.memories[0] if page.memories else None
