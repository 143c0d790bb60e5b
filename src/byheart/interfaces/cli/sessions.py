"""Define `sessions`, `resume` and `promote`, which work on whole sessions."""

from __future__ import annotations

from typing import Any

import click

from byheart.interfaces.cli.errors import FAILURE
from byheart.interfaces.cli.forget import agreed, show_end, yes
from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import complete_kind, flag, name_list, page, together
from byheart.interfaces.cli.screen import (
    Column,
    Part,
    count,
    one_line,
    open_screen,
    print_json,
    remark,
)
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.turns import show_whole, unknown_session
from byheart.interfaces.cli.update import reason, who
from byheart.interfaces.cli.verb import Invocation, Verb, VerbGroup
from byheart.model import Memory, Promoted, ResumedSession, SessionStats

_listing = together(
    flag("--agent-id", "-a", metavar="ID", help="Only sessions of this agent."),
    page(limit=20),
)


@click.group(
    "sessions",
    cls=VerbGroup,
    invoke_without_command=True,
    examples=("byheart sessions", "byheart sessions --agent-id coder --json"),
)
@_listing
@click.pass_context
def sessions_command(ctx: click.Context, /, **given: Any) -> None:
    """List sessions, show their figures, forget or restore one.

    Without a subcommand, sessions are listed, the latest active first.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.obj, given)


@sessions_command.command("list", examples=("byheart sessions list --limit 5",))
@_listing
@click.pass_obj
def list_sessions(invocation: Invocation, /, **given: Any) -> None:
    """List sessions, the latest active first."""
    _list(invocation, given)


def _list(invocation: Invocation, given: dict[str, Any]) -> None:
    with open_store(invocation) as store:
        sessions = store.sessions.list(**given)
    if invocation.json:
        print_json(sessions)
        return
    if not sessions:
        click.echo("No sessions here. Save into one with: byheart save TEXT --session-id ID")
        return
    screen = open_screen()
    screen.table(
        (
            Column("SESSION", style="name"),
            Column("AGENT"),
            Column("MEMORIES", right=True),
            Column("ITERATION", right=True),
            Column("FIRST"),
            Column("LATEST"),
            Column("KINDS", wide=True),
        ),
        [
            (
                session.session_id,
                session.agent_id or "-",
                f"{session.memory_count:,}",
                "-" if session.latest_iter is None else str(session.latest_iter),
                screen.moment(session.first_activity),
                screen.moment(session.latest_activity),
                ", ".join(session.kinds),
            )
            for session in sessions
        ],
    )


@sessions_command.command(
    "stats", examples=("byheart sessions stats s1", "byheart sessions stats --json")
)
@click.argument("session_id", required=False)
@click.pass_obj
def session_stats(invocation: Invocation, /, session_id: str | None) -> None:
    """Show the figures of one session, or of all sessions."""
    with open_store(invocation) as store:
        stats = store.sessions.stats(session_id)
    if invocation.json:
        print_json(stats)
    elif not stats.total_memories:
        click.echo(unknown_session(session_id) if session_id else "No sessions here.")
    else:
        _show_stats(stats)


def _show_stats(stats: SessionStats) -> None:
    screen = open_screen()

    def counts(held: Any) -> str:
        return ", ".join(f"{number:,} {name}" for name, number in held.items())

    rows = [
        ("session", stats.session_id or f"all {stats.unique_sessions:,}"),
        ("memories", f"{stats.total_memories:,}, {count(stats.turns, 'turn')}"),
        ("kinds", counts(stats.kinds)),
        ("origins", counts(stats.origins)),
        ("pinned", f"{stats.pinned:,}"),
        ("agents", f"{stats.unique_agents:,}"),
        ("tasks", f"{stats.unique_tasks:,}"),
        ("iteration", "-" if stats.max_session_iter is None else str(stats.max_session_iter)),
        ("length", f"{stats.avg_content_length:,.1f} characters on average"),
        ("accesses", f"{stats.total_access_count:,}"),
        (
            "active",
            f"{screen.moment(stats.first_activity)} to {screen.moment(stats.latest_activity)}",
        ),
    ]
    for name, value in rows:
        screen.line(Part(f"{name:9}", "dim"), value)


@sessions_command.command(
    "forget",
    examples=("byheart sessions forget s1 --yes", "byheart sessions forget s1 --hard --yes"),
)
@click.argument("session_id")
@flag("--hard", is_flag=True, help="Erase every trace from the store; cannot be undone.")
@flag("--dry-run", is_flag=True, help="Only count; change nothing.")
@yes
@reason
@who
@click.pass_context
def forget_session(
    ctx: click.Context, /, session_id: str, hard: bool, dry_run: bool, yes: bool, **given: Any
) -> None:
    """Hide a session with everything in it: turns, summary, pins, memories.

    The command counts first, and asks before it continues. Unless it was --hard, it comes
    back with: byheart sessions restore ID.
    """
    invocation: Invocation = ctx.obj
    with open_store(invocation) as store:
        done = store.sessions.forget(session_id, hard, **given)
        if not done.count and not invocation.json:
            click.echo(unknown_session(session_id))
            return
        if done.count and not dry_run:
            if not agreed(invocation, store, done, yes):
                return
            done = store.sessions.forget(session_id, hard, dry_run=False, **given)
    show_end(ctx, done)


@sessions_command.command("restore", examples=("byheart sessions restore s1",))
@click.argument("session_id")
@who
@click.pass_obj
def restore_session(invocation: Invocation, /, session_id: str, who: str) -> None:
    """Restore the memories of a session that were forgotten last, at one time."""
    with open_store(invocation) as store:
        restored = store.sessions.restore(session_id, who)
    if invocation.json:
        print_json(restored)
    elif not restored.count:
        click.echo(f"Nothing is forgotten of {session_id}.")
    else:
        done = f"restored {count(restored.count, 'memory')} of {session_id}"
        open_screen().line(Part("✓", "good"), done)


@click.command(
    "resume",
    cls=Verb,
    examples=("byheart resume s1", "byheart resume s1 --task-code T-42 --json"),
)
@click.argument("session_id")
@flag("--task-code", metavar="CODE", help="Omit memories of other tasks.")
@flag("--agent-id", "-a", metavar="ID", help="Only memories of this agent.")
@flag(
    *("--limit", "-n"),
    type=int,
    default=5,
    show_default=True,
    metavar="N",
    help="The largest number of prompts, reports and working memories.",
)
@click.pass_context
def resume_command(ctx: click.Context, /, session_id: str, **given: Any) -> None:
    """Print what is needed to continue a session.

    It has the running summary, the last session_context, and the latest memories of the kinds
    input_prompt, report and working_memory. The exit code is 1 if there is no such session.
    """
    invocation: Invocation = ctx.obj
    with open_store(invocation) as store:
        resumed = store.sessions.resume(session_id, **given)
    if invocation.json:
        print_json(resumed)
    elif not resumed.found:
        click.echo(unknown_session(session_id))
    else:
        _show_resumed(invocation, resumed)
    if not resumed.found:
        ctx.exit(FAILURE)


def _show_resumed(invocation: Invocation, resumed: ResumedSession) -> None:
    screen, shown = open_screen(), False
    parts: tuple[tuple[str, tuple[Memory, ...]], ...] = (
        ("summary", (resumed.summary,) if resumed.summary else ()),
        ("context", (resumed.context,) if resumed.context else ()),
        ("input prompts", resumed.input_prompts),
        ("reports", resumed.reports),
        ("working memories", resumed.working_memories),
    )
    for name, memories in parts:
        for memory in memories:
            about = (memory.title or "", memory.task_code or "")
            show_whole(screen, name, *about, at=memory.updated_at, text=memory)
            shown = True
    if not shown:
        remark(invocation, f"{resumed.session_id} has no summary, context, reports or work yet")


@click.command(
    "promote",
    cls=Verb,
    examples=(
        "byheart promote s1 --dry-run",
        "byheart promote s1 --kind fact,report",
        'byheart promote --memory-id "$ID"',
    ),
)
@click.argument("session_id", required=False)
@name_list("--memory-id", help="Only these memories; turns become notes.")
@name_list("--kind", "-k", shell_complete=complete_kind, help="Only these kinds.")
@flag("--dry-run", is_flag=True, help="Only show what would be copied.")
@who
@click.pass_obj
def promote_command(invocation: Invocation, /, **given: Any) -> None:
    """Copy a session's memories to the global ones.

    Every session sees global memories. By default only lasting memories are copied: no turns,
    summaries, input prompts or working memory. A text that is already global is not copied again.
    The metadata of each copy names its source.
    """
    with open_embedding_store(invocation) as store:
        promoted = store.sessions.promote(**given)
        name = promoted.session_id
        unknown = name is not None and not store.sessions.stats(name).total_memories
    if invocation.json:
        print_json(promoted)
    elif unknown and name is not None:
        click.echo(unknown_session(name))
    else:
        _show_promoted(promoted)


def _show_promoted(promoted: Promoted) -> None:
    screen = open_screen()
    fresh = [each for each in promoted.promotions if each.status == "created"]
    there = len(promoted.promotions) - len(fresh)
    would = "would promote" if promoted.dry_run else "promoted"
    already = f"({there:,} there already)" if there else ""
    screen.line(Part("✓", "good"), f"{would} {count(len(fresh), 'memory')}", Part(already, "dim"))
    for each in fresh:
        name = each.promoted_id or each.memory_id
        screen.line(Part(name, "name"), each.kind, one_line(each.summary), indent=1)
