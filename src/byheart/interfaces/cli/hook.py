"""`hook`: what an agent calls by itself, and what it is told. It never fails, and never waits."""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import suppress
from functools import partial

import click

from byheart.capturing import is_wanted
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
from byheart.settings import Settings, load_settings

# Written out here, so that help is there before the engine is.
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop", "SessionEnd")
# To these an agent waits for an answer.
ANSWERED = ("SessionStart", "UserPromptSubmit")


class _HookVerb(Verb):
    """A verb whose command line is never wrong: some exit codes make an agent drop a prompt."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; what cannot be read is written down."""
        event = " ".join(args[:1])
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            journal.note(event, error.format_message())
            raise click.exceptions.Exit(0) from error


@click.command(
    "hook",
    cls=_HookVerb,
    # An agent takes some exit codes for a refusal of what it was about to do.
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    examples=("byheart setup claude-code --hooks", "cat event.json | byheart hook SessionStart"),
)
@click.argument("event", default="")
@click.pass_obj
def hook_command(invocation: Invocation, event: str) -> None:
    """Capture what an agent does and recall what it needs, when its hooks call.

    EVENT is SessionStart, UserPromptSubmit, PostToolUse, PreCompact, Stop or SessionEnd, as Claude
    Code names them; what happened is read from stdin as JSON. Whatever goes wrong is written to a
    log, and the agent goes on: there is no output then, and the exit code is 0.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError("this is for agents: the event comes from stdin as JSON")
    ended = True
    try:
        logging.basicConfig(handlers=[journal.JournalHandler(event)], force=True)
        text, ended = _react(invocation, event)
        if text is not None:
            click.echo(text)
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the outermost door, which nothing passes
        journal.note(event, error)
        if isinstance(error, OSError):
            _let_go_of_stdout()
    if not ended:
        os._exit(0)  # a thread that still works would be waited for


def _let_go_of_stdout() -> None:
    """Keep what nobody can read from being written once more when the process ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _react(invocation: Invocation, name: str) -> tuple[str | None, bool]:
    """Give what to print, and say whether all work has ended."""
    settings = load_settings(overrides(invocation))
    seconds = _limit(name, settings)
    data = read_within(Deadline(seconds - seconds_since_start()), sys.stdin.buffer.read)
    if data is None:
        journal.note(name, f"no event came within {seconds:g} s")
        return None, False
    said = json.loads(data)
    if not isinstance(said, dict):
        raise InvalidInput("the event is no object")
    name = name or str(said.get("hook_event_name"))
    if name not in EVENTS:
        raise InvalidInput("nothing is known of such an event")
    if not settings.enabled:
        return None, True
    if name == "PostToolUse" and not is_wanted(str(said.get("tool_name")), settings):
        return None, True
    seconds = _limit(name, settings)
    deadline, answer = Deadline(seconds - seconds_since_start()), Answer()

    def work(by_keyword: bool) -> None:
        # The engine is imported here, where nobody waits for it longer than the settings allow.
        from byheart.interfaces.hooks import events, reactions

        event = events.read_event(said, name, os.environ)
        situation = reactions.Situation(event, settings, deadline, answer)
        react = reactions.answer_by_keyword if by_keyword else reactions.REACTIONS[name]
        react(situation)

    otherwise = partial(work, True) if name == "UserPromptSubmit" else None
    ended = attempt(name, deadline, answer, partial(work, False), otherwise)
    if not ended:
        journal.note(name, f"not done within {seconds:g} s")
    text = answer.text
    return (None if text is None else _answer(name, text)), ended


def _limit(name: str, settings: Settings) -> float:
    """Say how many seconds an event has; one without a name is perhaps waited for."""
    waited_for = name in ANSWERED or name not in EVENTS
    return settings.hook_timeout_seconds if waited_for else settings.hook_capture_seconds


def _answer(event: str, text: str) -> str:
    return json.dumps(
        {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}},
        ensure_ascii=False,
    )
