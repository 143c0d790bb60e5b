"""Save an agent's work, and summarize its sessions."""

from __future__ import annotations

import contextlib

from byheart.conversation.agent_events import CLAUDE_CODE, describe_call
from byheart.conversation.capture import capture, capture_title, is_trusted, is_wanted
from byheart.errors import Conflict, EmbeddingError, NotFound
from byheart.interfaces.hooks.events import output_text
from byheart.interfaces.hooks.journal import note
from byheart.interfaces.hooks.situation import Situation, keep_said, summary_of
from byheart.interfaces.hooks.spool import store_waiting
from byheart.store import MemoryStore

# Vectors are made in small batches, so that finished ones are saved when the time is up.
_EMBEDDED_AT_ONCE, _LAST_MOMENT_SECONDS = 8, 0.3


def keep_output(situation: Situation) -> None:
    """Save the output of a tool, if the settings want it; its vectors are made later."""
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
            agent_id=CLAUDE_CODE,
            task_code=event.project,
            title=about,
            trusted=is_trusted(tool, settings),
        )


def catch_up(situation: Situation) -> None:
    """Save the new turns of the transcript, then make vectors while there is time."""
    with situation.store(embedding=False) as store:
        _keep_transcript(store, situation)
    _make_vectors(situation)


def sum_up(situation: Situation) -> None:
    """Save the new turns of the transcript, and renew the session's summary."""
    event = situation.event
    with situation.store(embedding=False) as store:
        _keep_transcript(store, situation)
        held = summary_of(store, event.session_id)
        # A summary that an agent wrote stays until an agent writes a new one.
        if held is None or held.metadata.get("extracted"):
            with contextlib.suppress(NotFound):
                store.sessions.summarize(event.session_id, who="byheart")
    _make_vectors(situation)


def _keep_transcript(store: MemoryStore, situation: Situation) -> None:
    event = situation.event
    store_waiting(store, situation.settings)
    if event.transcript is not None and event.transcript.is_file():
        store.sessions.follow(event.transcript, format=CLAUDE_CODE)
    elif event.transcript is not None:
        note(event.name, f"there is no transcript {event.transcript}")
    # The last message may not be in the transcript yet.
    message = event.text("last_assistant_message").strip()
    if message:
        text = capture(message, situation.settings).text
        last = store.sessions.transcript(
            event.session_id, limit=1, latest=True, role="assistant"
        ).turns
        if not last or last[0].content != text:
            keep_said(store, event.session_id, event.project, "assistant", text)


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
        store.admin.embed_pending(go_on, _EMBEDDED_AT_ONCE)
