"""Define `hook`, which agents call automatically. It never fails and never waits long."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from byheart.errors import InvalidInput
from byheart.interfaces.cli.store import overrides
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.interfaces.hooks import journal
from byheart.interfaces.hooks.attempts import (
    Answer,
    Deadline,
    attempt,
    read_within,
    seconds_since_start,
)
from byheart.interfaces.hooks.guard import Say, run_guarded
from byheart.settings import Settings, load_settings

# Written out here, so that help does not load the engine.
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop", "SessionEnd")
# The agent waits for an answer to these events.
ANSWERED = ("SessionStart", "UserPromptSubmit")
# The working process may live this much longer than the settings allow. A process that keeps the
# limit ends well before; a process that does not is stuck in a call that it cannot interrupt.
_GRACE_SECONDS = 0.25


class _HookVerb(Verb):
    """Accept any command line: some exit codes make an agent drop a prompt."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; write errors to the journal."""
        event = " ".join(args[:1])
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            journal.note(event, error.format_message())
            raise click.exceptions.Exit(0) from error


@click.command(
    "hook",
    cls=_HookVerb,
    # Agents treat some exit codes as a refusal of the action.
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    examples=("byheart setup claude-code --hooks", "cat event.json | byheart hook SessionStart"),
)
@click.argument("event", default="")
@click.pass_obj
def hook_command(invocation: Invocation, event: str) -> None:
    """Answer an agent's hooks: record its turns, and recall memories.

    EVENT is SessionStart, UserPromptSubmit, PostToolUse, PreCompact, Stop or SessionEnd, as in
    Claude Code. The event is read from stdin as JSON. Errors go to a log and never stop the agent:
    there is no output then, and the exit code is 0.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError("this is for agents: the event comes from stdin as JSON")
    ended = True
    try:
        settings = load_settings(overrides(invocation))
        began = time.monotonic() - seconds_since_start()
        # Without an event name, the time limit is not known yet.
        longest = max(_longest(each, settings) for each in ([event] if event else EVENTS))
        work = partial(_react, settings, event, began)
        text, ended, was_killed = run_guarded(work, _until(began, longest + _GRACE_SECONDS))
        if was_killed:
            journal.note(event, f"stopped from outside, not done within {longest:g} s")
        if text is not None:
            click.echo(text)
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the outermost handler; nothing may escape
        journal.note(event, error)
        if isinstance(error, OSError):
            _let_go_of_stdout()
    if not ended:
        os._exit(0)  # otherwise exit would wait for a working thread


def _let_go_of_stdout() -> None:
    """Discard unread output, so that it is not written again when the process ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _react(settings: Settings, name: str, began: float, say: Say) -> bool:
    """Print the answer as soon as it is known; return whether all work has ended."""
    try:
        logging.basicConfig(handlers=[journal.JournalHandler(name)], force=True)
        return _react_to_event(settings, name, began, say)
    except BaseException as error:  # noqa: BLE001 - this process must show no error
        journal.note(name, error)
        return True


def _react_to_event(settings: Settings, name: str, began: float, say: Say) -> bool:
    seconds = _longest(name, settings)
    data = read_within(_until(began, seconds), sys.stdin.buffer.read)
    if data is None:
        journal.note(name, f"no event came within {seconds:g} s")
        return False
    said = json.loads(data)
    if not isinstance(said, dict):
        raise InvalidInput("the event is no object")
    name = name or str(said.get("hook_event_name"))
    if name not in EVENTS:
        raise InvalidInput("nothing is known of such an event")
    if not settings.enabled:
        return True
    if name == "PostToolUse" and not _is_wanted(str(said.get("tool_name")), settings):
        return True
    seconds = _longest(name, settings)
    deadline, answer = _until(began, seconds), Answer(lambda text: say(_answer(name, text)))
    handed_over = _hand_over(settings, name, said, deadline)
    if handed_over is not None:
        answer.say(handed_over)
        return True
    spooled = _spool(settings, said) if name == "UserPromptSubmit" else None

    def work(quicker: bool) -> None:
        # The engine is imported here, within the time limit of the settings.
        from byheart.interfaces.hooks import events, reactions, situation

        event = events.read_event(said, name, os.environ)
        react = reactions.reaction_to(name, quicker=quicker)
        react(situation.Situation(event, settings, deadline, answer))
        if spooled is not None and not quicker:
            spooled.unlink(missing_ok=True)

    otherwise = partial(work, True) if name == "UserPromptSubmit" else None
    ended = attempt(name, deadline, answer, partial(work, False), otherwise)
    if not ended:
        journal.note(name, f"not done within {seconds:g} s")
    return ended


def _is_wanted(tool: str, settings: Settings) -> bool:
    from byheart.conversation.capture import is_wanted

    return is_wanted(tool, settings)


def _hand_over(
    settings: Settings, name: str, said: dict[str, Any], deadline: Deadline
) -> str | None:
    """Let a running server react, if there is one: it need not load anything."""
    from byheart.interfaces.hooks.events import PROJECT_VARIABLE
    from byheart.interfaces.hooks.handing_over import hand_over

    known = (
        {PROJECT_VARIABLE: os.environ[PROJECT_VARIABLE]} if PROJECT_VARIABLE in os.environ else {}
    )
    event = {"name": name, "said": said, "environ": known, "seconds": deadline.left}
    return hand_over(settings, event, deadline)


def _spool(settings: Settings, said: dict[str, Any]) -> Path | None:
    """Keep the prompt in a file, before the engine is loaded, which may take too long."""
    from byheart.conversation.agent_events import said_by_user
    from byheart.conversation.capture import capture
    from byheart.interfaces.hooks.events import read_event
    from byheart.interfaces.hooks.spool import keep_prompt

    event = read_event(said, "UserPromptSubmit", os.environ)
    prompt = said_by_user(event.text("prompt"))
    if prompt is None:
        return None
    text = capture(prompt, settings).text
    return keep_prompt(settings, event.session_id, text, event.project)


def _until(began: float, seconds: float) -> Deadline:
    """Return the deadline that is this many seconds after `began`."""
    return Deadline(began + seconds - time.monotonic())


def _longest(name: str, settings: Settings) -> float:
    """Return the time limit of an event; the agent may wait for one without a name."""
    waited_for = name in ANSWERED or name not in EVENTS
    return settings.hook_timeout_seconds if waited_for else settings.hook_capture_seconds


def _answer(event: str, text: str) -> str:
    return json.dumps(
        {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}},
        ensure_ascii=False,
    )
