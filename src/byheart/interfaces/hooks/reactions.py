"""Reactions: what is done about each event, by the verbs that everybody else uses."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import filterfalse, islice

from byheart.capturing import capture, capture_title, is_wanted, name_turn
from byheart.context import says_nothing
from byheart.context.delimiting import PREAMBLE, SUMMARY, quote
from byheart.errors import ByheartError, Conflict, EmbeddingError, NotFound
from byheart.interfaces.hooks.attempts import Answer, Deadline
from byheart.interfaces.hooks.events import Event, output_text
from byheart.memory_store import MemoryStore
from byheart.model import Memory
from byheart.opening import open as open_store
from byheart.settings import Settings
from byheart.upkeep.foreign.claude_code import AGENT, said_by_user
from byheart.upkeep.foreign.transcripts import describe_call

# Claude Code shows a model no more than 10,000 characters of what a hook says.
LONGEST_ANSWER_CHARS = 9_500
# How many passages answer a prompt, and how many sessions before this one are told of.
_TOP_K, _EARLIER_SESSIONS = 6, 3
_LOOKED_AT = 50
# What a long prompt asks stands in its beginning; a path is no command.
_LONGEST_QUESTION, _COMMAND = 4000, re.compile(r"/[\w:-]+(?:\s|$)")
_SUMMARY, _COMPACTION = "session_summary", "compaction"
# So many times may the same words be said in a session.
_MOST_REPETITIONS, _MOST_TURNS = 10_000, 1000
# Vectors are made a few at a time, so that what was made is kept when time is up.
_EMBEDDED_AT_ONCE, _LAST_MOMENT_SECONDS = 8, 0.3


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


# --- What goes into the prompt --------------------------------------------------------------------


def start_session(situation: Situation) -> None:
    """Give what stays: what is pinned, and what the last sessions of this project came to."""
    event, budget = situation.event, situation.settings.hook_max_tokens
    with situation.store(embedding=False) as store:
        if event.text("source") == "compact":
            store.log(event.session_id, "system", "compacted", _COMPACTION, agent_id=AGENT)
        if not budget:
            return
        text = _what_stays(store, event, budget)
        for summary in _earlier_summaries(store, event):
            about = (("session", summary.session_id), ("date", f"{summary.updated_at:%Y-%m-%d}"))
            told = quote(SUMMARY, summary.content, about)
            if len(text) + len(told) <= LONGEST_ANSWER_CHARS:
                text = (text or PREAMBLE) + told
                store.note_shown(summary.memory_id, event.session_id)
        situation.answer.say(text)


def _what_stays(store: MemoryStore, event: Event, budget: int) -> str:
    while budget:
        answer = store.context(event.session_id, max_tokens=budget, recent=0, top_k=0, mode="fts")
        # Never cut: what follows would stand inside of a quotation that does not end.
        if len(answer.text) <= LONGEST_ANSWER_CHARS:
            return answer.text if answer.receipt.items else ""
        budget //= 2
    return ""


def _earlier_summaries(store: MemoryStore, event: Event) -> Iterator[Memory]:
    if event.project is None:
        return
    latest = dict.fromkeys(each.session_id for each in store.sessions(limit=_LOOKED_AT))
    latest.pop(event.session_id, None)
    of_project = (name for name in latest if _is_of(store, name, event.project))
    for session_id in islice(of_project, _EARLIER_SESSIONS):
        summary = _summary_of(store, session_id)
        if summary is None:  # it was imported
            with contextlib.suppress(ByheartError):
                store.summarize(session_id, who="byheart")
                summary = _summary_of(store, session_id)
        if summary is not None:
            yield summary


def _is_of(store: MemoryStore, session_id: str, project: str) -> bool:
    own = store.list(limit=1, task_code=project, session_id=session_id, include_global=False)
    return own.total > 0


def answer_prompt(situation: Situation) -> None:
    """Give what answers a prompt, then keep the prompt."""
    _answer(situation, embedding=True)


def answer_by_keyword(situation: Situation) -> None:
    """Give what answers a prompt by its words alone: the model is not waited for."""
    _answer(situation, embedding=False)


def _answer(situation: Situation, *, embedding: bool) -> None:
    event, settings = situation.event, situation.settings
    said = said_by_user(event.text("prompt"))
    if said is None:
        situation.answer.say("")
        return
    prompt = capture(said, settings).text
    with situation.store(embedding=embedding) as store:
        asks = not _COMMAND.match(prompt) and not says_nothing(prompt)
        if asks and settings.hook_max_tokens:
            situation.answer.say(_retrieved(store, situation, prompt, embedding=embedding))
        else:
            situation.answer.say("")
        # The transcript may have been read when the prompt stood in it already.
        last = store.transcript(event.session_id, limit=1, latest=True).turns
        is_there = bool(last) and (last[0].role, last[0].content) == ("user", prompt)
        if embedding and not is_there:
            _keep_said(store, event, "user", prompt)


def _retrieved(store: MemoryStore, situation: Situation, prompt: str, *, embedding: bool) -> str:
    """Retrieve what answers and is not before the model's eyes: what was said or given there."""
    event, settings = situation.event, situation.settings
    compacted = store.transcript(event.session_id, limit=1, latest=True, kind=_COMPACTION).turns
    began = compacted or store.transcript(event.session_id, limit=1).turns
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


# --- What is captured -----------------------------------------------------------------------------


def keep_output(situation: Situation) -> None:
    """Keep what a tool put out, if the settings want it; its vectors are made later."""
    event, settings = situation.event, situation.settings
    tool = event.text("tool_name")
    if event.is_of_subagent or not is_wanted(tool, settings):
        return
    kept = capture(output_text(event.said.get("tool_response")), settings, is_output=True)
    if not kept.text.strip():
        return
    about = capture_title(describe_call(tool, event.said.get("tool_input")), settings)
    with situation.store(embedding=False) as store, contextlib.suppress(Conflict):
        store.log(
            event.session_id,
            "tool",
            kept.text,
            "tool_output",
            client_id=event.text("tool_use_id") or None,
            agent_id=AGENT,
            task_code=event.project,
            title=about,
        )


def catch_up(situation: Situation) -> None:
    """Keep what the transcript has that is not known yet, then make vectors while there is time."""
    with situation.store(embedding=False) as store:
        _keep_transcript(store, situation)
    _make_vectors(situation)


def sum_up(situation: Situation) -> None:
    """Keep what is new, and say anew what the session came to."""
    event = situation.event
    with situation.store(embedding=False) as store:
        _keep_transcript(store, situation)
        held = _summary_of(store, event.session_id)
        # What an agent wrote stays until an agent writes again.
        if held is None or held.metadata.get("extracted"):
            with contextlib.suppress(NotFound):
                store.summarize(event.session_id, who="byheart")
    _make_vectors(situation)


def _keep_transcript(store: MemoryStore, situation: Situation) -> None:
    event = situation.event
    if event.transcript is not None and event.transcript.is_file():
        store.import_(event.transcript, on_error="skip", format=AGENT, embed=False)
    # It may not have been written yet.
    message = event.text("last_assistant_message").strip()
    if message:
        text = capture(message, situation.settings).text
        last = store.transcript(event.session_id, limit=1, latest=True, role="assistant").turns
        if not last or last[0].content != text:
            _keep_said(store, event, "assistant", text)


def _keep_said(store: MemoryStore, event: Event, role: str, text: str) -> None:
    """Log words under the name that they will have when the transcript is read."""
    said = store.transcript(event.session_id, limit=_MOST_TURNS, latest=True, role=role).turns
    taken = {turn.client_id for turn in said}
    names = (name_turn(role, text, number) for number in range(_MOST_REPETITIONS))
    for name in filterfalse(taken.__contains__, names):
        kept = store.log(
            event.session_id, role, text, client_id=name, agent_id=AGENT, task_code=event.project
        )
        if kept.status == "created":
            return


def _make_vectors(situation: Situation) -> None:
    if situation.settings.embedding_provider == "none":
        return

    def go_on(_: int) -> None:
        if situation.deadline.left < _LAST_MOMENT_SECONDS:
            raise TimeoutError

    with (
        contextlib.suppress(TimeoutError, EmbeddingError),
        situation.store(embedding=True) as store,
    ):
        go_on(0)
        store.embed_pending(go_on, _EMBEDDED_AT_ONCE)


def _summary_of(store: MemoryStore, session_id: str | None) -> Memory | None:
    if session_id is None:
        return None
    page = store.list(limit=1, kind=_SUMMARY, session_id=session_id, include_global=False)
    return page.memories[0] if page.memories else None


REACTIONS: Mapping[str, Reaction] = {
    "SessionStart": start_session,
    "UserPromptSubmit": answer_prompt,
    "PostToolUse": keep_output,
    "PreCompact": sum_up,
    "Stop": catch_up,
    "SessionEnd": sum_up,
}
