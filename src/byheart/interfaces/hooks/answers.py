"""Add memories to the prompt when a session begins, and when a person asks something."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice

from byheart.conversation.agent_events import CLAUDE_CODE, said_by_user
from byheart.conversation.capture import capture
from byheart.conversation.reminders import PREAMBLE, asks_for_something, quote_summary
from byheart.errors import ByheartError
from byheart.interfaces.hooks.events import Event
from byheart.interfaces.hooks.situation import Situation, keep_said, summary_of
from byheart.interfaces.hooks.spool import store_waiting
from byheart.model import Memory
from byheart.store import MemoryStore

# Claude Code shows a model at most 10,000 characters of a hook's output.
LONGEST_ANSWER_CHARS = 9_500
# How many passages answer a prompt, and how many earlier sessions are summarized.
_TOP_K, _EARLIER_SESSIONS = 6, 3
_LOOKED_AT = 50
# The beginning of a long prompt contains its question.
_LONGEST_QUESTION = 4000
_COMPACTION = "compaction"


def start_session(situation: Situation) -> None:
    """Show the pinned memories, and the summaries of the project's last sessions."""
    event, budget = situation.event, situation.settings.hook_max_tokens
    with situation.store(embedding=False) as store:
        if event.text("source") == "compact":
            store.log(event.session_id, "system", "compacted", _COMPACTION, agent_id=CLAUDE_CODE)
        if not budget:
            return
        text = _what_stays(store, event, budget)
        for summary in _earlier_summaries(store, event):
            told = quote_summary(summary)
            if len(text) + len(told) <= LONGEST_ANSWER_CHARS:
                text = (text or PREAMBLE) + told
                store.sessions.note_shown(summary.memory_id, event.session_id)
        situation.answer.say(text)


def _what_stays(store: MemoryStore, event: Event, budget: int) -> str:
    while budget:
        answer = store.context(event.session_id, max_tokens=budget, recent=0, top_k=0, mode="fts")
        # The text is never cut: later text would fall into a quotation that has no end.
        if len(answer.text) <= LONGEST_ANSWER_CHARS:
            return answer.text if answer.receipt.items else ""
        budget //= 2
    return ""


def _earlier_summaries(store: MemoryStore, event: Event) -> Iterator[Memory]:
    if event.project is None:
        return
    latest = (each.session_id for each in store.sessions.list(limit=_LOOKED_AT))
    others = (name for name in dict.fromkeys(latest) if name and name != event.session_id)
    of_project = (name for name in others if _is_of(store, name, event.project))
    for session_id in islice(of_project, _EARLIER_SESSIONS):
        summary = summary_of(store, session_id)
        if summary is None:  # an imported session has no summary yet
            with contextlib.suppress(ByheartError):
                store.sessions.summarize(session_id, who="byheart")
                summary = summary_of(store, session_id)
        if summary is not None and summary.trusted:
            yield summary


def _is_of(store: MemoryStore, session_id: str, project: str) -> bool:
    own = store.list(limit=1, task_code=project, session_id=session_id, include_global=False)
    return own.total > 0


def answer_prompt(situation: Situation) -> None:
    """Show the passages that answer a prompt, then save the prompt."""
    _answer(situation, embedding=True)


def answer_by_keyword(situation: Situation) -> None:
    """Show the passages that answer a prompt by keyword, without waiting for the model."""
    _answer(situation, embedding=False)


def _answer(situation: Situation, *, embedding: bool) -> None:
    event, settings = situation.event, situation.settings
    said = said_by_user(event.text("prompt"))
    if said is None:
        situation.answer.say("")
        return
    prompt = capture(said, settings).text
    with situation.store(embedding=embedding) as store:
        if settings.hook_max_tokens and asks_for_something(prompt):
            situation.answer.say(_retrieved(store, situation, prompt, embedding=embedding))
        else:
            situation.answer.say("")
        # The prompt may be saved already, if the transcript that contains it was read before.
        last = store.sessions.transcript(event.session_id, limit=1, latest=True).turns
        is_there = bool(last) and (last[0].role, last[0].content) == ("user", prompt)
        if embedding and not is_there:
            keep_said(store, event.session_id, event.project, "user", prompt)
        if embedding:
            store_waiting(store, settings)


def _retrieved(store: MemoryStore, situation: Situation, prompt: str, *, embedding: bool) -> str:
    """Retrieve passages that answer a prompt and are not yet in the model's context."""
    event, settings = situation.event, situation.settings
    compacted = store.sessions.transcript(
        event.session_id, limit=1, latest=True, kind=_COMPACTION
    ).turns
    began = compacted or store.sessions.transcript(event.session_id, limit=1).turns
    answer = store.remind(
        event.session_id,
        prompt[:_LONGEST_QUESTION],
        max_tokens=settings.hook_max_tokens,
        top_k=_TOP_K,
        include_task=event.project,
        mode="hybrid" if embedding else "fts",
        since=compacted[0].created_at if compacted else None,
        min_similarity=settings.hook_min_similarity,
        max_chars=LONGEST_ANSWER_CHARS,
        created_before=began[0].created_at if began else None,
    )
    text = answer.text.removeprefix(answer.stable)
    return PREAMBLE + text if text.strip() else ""
