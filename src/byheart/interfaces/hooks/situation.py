"""The situation: an event, and what there is to react to it with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import filterfalse

from byheart.conversation.agent_events import CLAUDE_CODE
from byheart.conversation.capture import name_turn
from byheart.interfaces.hooks.attempts import Answer, Deadline
from byheart.interfaces.hooks.events import Event
from byheart.model import Memory
from byheart.opening import open as open_store
from byheart.settings import Settings
from byheart.store import MemoryStore

_SUMMARY = "session_summary"
# So many times may the same words be said in a session.
_MOST_REPETITIONS, _MOST_TURNS = 10_000, 1000


@dataclass(frozen=True, slots=True)
class Situation:
    """An event, and what there is to react to it with."""

    event: Event
    settings: Settings
    deadline: Deadline
    answer: Answer

    @contextlib.contextmanager
    def store(self, *, embedding: bool) -> Iterator[MemoryStore]:
        """Open the store; without an embedder, what is kept gets its vectors later."""
        provider = self.settings.embedding_provider if embedding else "none"
        settings = replace(
            self.settings,
            embedding_provider=provider,
            offline=True,  # a download is nothing that an agent could wait for
            busy_timeout_seconds=min(self.settings.busy_timeout_seconds, self.deadline.left),
            collect_stats=False,
        )
        with open_store(settings=settings) as store:
            yield store


Reaction = Callable[[Situation], None]


def keep_said(store: MemoryStore, event: Event, role: str, text: str) -> None:
    """Log words under the name that they will have when the transcript is read."""
    said = store.transcript(event.session_id, limit=_MOST_TURNS, latest=True, role=role).turns
    taken = {turn.client_id for turn in said}
    names = (name_turn(role, text, number) for number in range(_MOST_REPETITIONS))
    for name in filterfalse(taken.__contains__, names):
        kept = store.log(
            event.session_id,
            role,
            text,
            client_id=name,
            agent_id=CLAUDE_CODE,
            task_code=event.project,
        )
        if kept.status == "created":
            return


def summary_of(store: MemoryStore, session_id: str) -> Memory | None:
    """Find what a session came to, if that was ever said."""
    page = store.list(limit=1, kind=_SUMMARY, session_id=session_id, include_global=False)
    return page.memories[0] if page.memories else None
