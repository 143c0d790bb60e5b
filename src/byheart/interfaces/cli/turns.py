"""Define `log`, `transcript` and `summarize`, which record and show sessions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from byheart.errors import InvalidInput
from byheart.interfaces.cli.batches import (
    LOGGING,
    import_lines,
    warn_of_missing_vectors,
    warn_of_secrets,
)
from byheart.interfaces.cli.errors import FAILURE
from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import (
    complete_kind,
    flag,
    name_list,
    page,
    together,
    turn_flag,
)
from byheart.interfaces.cli.save import given_fields, read_content
from byheart.interfaces.cli.screen import (
    Part,
    Screen,
    count,
    open_screen,
    point_on,
    print_json,
    print_text,
    remark,
)
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.update import who
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Memory, Transcript, Turn
from byheart.model.fields import BY_NAME, LOG_FIELDS

if TYPE_CHECKING:  # keeps numpy out of the import of the help
    from byheart.store import MemoryStore

ABOUT = "About the turn"

# The session is an argument.
_NAMED = [name for name in LOG_FIELDS if BY_NAME[name].flag and name not in ("session_id", "kind")]
_about = together(
    turn_flag("kind", ABOUT, default="message", show_default=True),
    *(turn_flag(name, ABOUT) for name in _NAMED),
)


@click.command(
    "log",
    cls=Verb,
    examples=(
        'byheart log s1 user "Where is the deploy key kept?"',
        'byheart log s1 assistant "In the vault, under ci/deploy." --client-id turn-2',
        "git log -1 | byheart log s1 tool --kind tool_output --title 'git log'",
        """echo '{"role": "user", "content": "Thanks!"}' | byheart log s1 --jsonl -""",
    ),
)
@click.argument("session_id", required=False)
@click.argument("role", required=False)
@click.argument("text", nargs=-1)
@flag("--jsonl", metavar="PATH", help="Log each line of a JSONL file (- is stdin).")
@_about
@click.pass_obj
def log_command(
    invocation: Invocation,
    /,
    session_id: str | None,
    role: str | None,
    text: tuple[str, ...],
    jsonl: str | None,
    **given: Any,
) -> None:
    """Record a turn of a session: a message, a tool's output, a file.

    ROLE is who speaks: user, assistant, system, tool, or a word of your own. TEXT is joined by
    spaces; "-", or no TEXT in a pipe, reads stdin. With --jsonl, each line is an object with
    session_id, role, content and any of the fields below.
    """
    about = given_fields(given)
    if jsonl:
        if text:
            raise click.UsageError("text and --jsonl were given together: give one of them")
        named = {"session_id": session_id, "role": role}
        about |= {name: value for name, value in named.items() if value is not None}
        import_lines(invocation, jsonl, about, LOGGING)
        return
    if session_id is None or role is None:
        raise click.UsageError("say in which session, and who speaks: byheart log s1 user TEXT")
    content = _read_turn(invocation, text)
    with open_embedding_store(invocation, create=True) as store:
        result = store.log(session_id, role, content, **about)
    warn_of_missing_vectors(invocation, [result])
    warn_of_secrets(invocation, [result])
    if invocation.json:
        print_json(result)
    elif sys.stdout.isatty():
        done = "logged before" if result.status == "unchanged" else "logged"
        open_screen().line(Part("✓", "good"), done, Part(result.memory_id, "name"))
    else:
        open_screen().line(result.memory_id)


def _read_turn(invocation: Invocation, text: Sequence[str]) -> str:
    """Return the text; an empty one must be explicit, since a broken pipe is also empty."""
    content = "" if sys.stdin.isatty() and not text else read_content(invocation, text)
    if not content and not text:
        raise InvalidInput(
            "there is nothing to log: no text was given, and nothing came from stdin",
            'give the text: byheart log s1 user TEXT; "" logs a turn without words',
        )
    return content


@click.command(
    "transcript",
    cls=Verb,
    examples=(
        "byheart transcript s1",
        "byheart transcript s1 --latest --limit 5",
        "byheart transcript s1 --role user --json",
    ),
)
@click.argument("session_id")
@page(limit=100)
@flag("--latest", is_flag=True, help="Show the last turns, in order.")
@name_list("--role", help="Only turns of these roles.")
@name_list("--kind", "-k", shell_complete=complete_kind, help="Only these kinds.")
@click.pass_context
def transcript_command(ctx: click.Context, /, session_id: str, **given: Any) -> None:
    """Print the turns of a session, in order.

    The exit code is 1 if there is no such session.
    """
    invocation: Invocation = ctx.obj
    with open_store(invocation) as store:
        found = store.sessions.transcript(session_id, **given)
        known = bool(found.total) or _is_known(store, session_id)
    if invocation.json:
        print_json(found)
    elif not found.turns:
        click.echo("No more turns." if found.total else _nothing(session_id, given, known=known))
    else:
        _show_turns(invocation, found, given)
    if not known:
        ctx.exit(FAILURE)


def _show_turns(invocation: Invocation, found: Transcript, given: Mapping[str, Any]) -> None:
    screen = open_screen()
    for turn in found.turns:
        kind = turn.kind if turn.kind != "message" else ""
        show_whole(screen, turn.role, kind, turn.title or "", at=turn.created_at, text=turn)
    if found.has_more:
        seen = given["offset"] + len(found.turns)
        end = " --latest" if given["latest"] else ""
        point_on(invocation, seen, found.total, f"byheart transcript {found.session_id}{end}")


def _is_known(store: MemoryStore, session_id: str) -> bool:
    return store.list(session_id=session_id, include_global=False, limit=1).total > 0


def unknown_session(session_id: str) -> str:
    """Say that there is no such session, and how to list the sessions."""
    return f"There is no session {session_id}. Those there are: byheart sessions"


def _nothing(session_id: str, given: Mapping[str, Any], *, known: bool) -> str:
    """Say which turns are missing; an unknown session id is usually a misspelt one."""
    if not known:
        return unknown_session(session_id)
    by = f" by {' or '.join(given['role'])}" if given["role"] else ""
    of = f" of kind {' or '.join(given['kind'])}" if given["kind"] else ""
    return f"Nothing{of} was said in {session_id}{by}."


def show_whole(screen: Screen, name: str, *about: str, at: datetime, text: Turn | Memory) -> None:
    """Show a complete text, under a line that describes it."""
    screen.line(
        Part(name, "name"), *about, Part(screen.moment(at), "dim"), Part(text.memory_id, "dim")
    )
    screen.passage(text.content.strip("\n"))


@click.command(
    "summarize",
    cls=Verb,
    examples=(
        'byheart summarize s1 "We moved the service to Berlin; open: the DNS entry."',
        "git log -1 | byheart summarize s1 -",
    ),
)
@click.argument("session_id")
@click.argument("text", nargs=-1)
@who
@click.pass_obj
def summarize_command(
    invocation: Invocation, session_id: str, text: tuple[str, ...], who: str
) -> None:
    """Set the running summary of a session, or generate it.

    Without TEXT, the summary is generated from the turns. A given summary stays until it is set
    again; a generated one grows with the session. Earlier ones stay in the history: byheart history
    ID.
    """
    given = read_content(invocation, text) if text else None
    with open_embedding_store(invocation) as store:
        summary = store.sessions.summarize(session_id, given, who)
    if invocation.json:
        print_json(summary)
        return
    print_text(f"{summary.content.rstrip()}\n")
    if sys.stdout.isatty():
        made = f"made from {count(summary.turns, 'turn')}" if summary.extracted else "as given"
        remark(invocation, f"{summary.memory_id}, version {summary.version}, {made}")
