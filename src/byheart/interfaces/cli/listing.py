"""`list` and `sessions`: what is there."""

from __future__ import annotations

from typing import Any

import click

from byheart.interfaces.cli.options import filters, flag, page
from byheart.interfaces.cli.screen import Column, one_line, open_screen, print_json, remark
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.verb import Invocation, Verb


@click.command(
    "list",
    cls=Verb,
    examples=(
        "byheart list",
        "byheart list --kind fact,report --tags people --limit 5",
        "byheart list --session-id s1 --no-include-global --json",
    ),
)
@page(limit=20)
@flag("--forgotten", is_flag=True, help="What was forgotten and can be restored.")
@filters
@click.pass_obj
def list_command(invocation: Invocation, /, **given: Any) -> None:
    """List memories, the latest first."""
    with open_store(invocation) as store:
        found = store.list(**given)
    if invocation.json:
        print_json(found)
        return
    if not found.memories:
        click.echo("No memories here." if not found.total else "No more memories.")
        return
    screen = open_screen()
    screen.table(
        (
            Column("ID", style="dim"),
            Column("KIND"),
            Column("SESSION"),
            Column("IMPORTANCE", right=True),
            Column("SAVED"),
            Column("TEXT", wide=True, style="name"),
        ),
        [
            (
                memory.memory_id,
                memory.kind,
                memory.session_id or "-",
                f"{memory.importance:.1f}",
                screen.moment(memory.created_at),
                one_line(memory.title or memory.summary),
            )
            for memory in found.memories
        ],
    )
    if found.has_more:
        following = given["offset"] + len(found.memories)
        remark(
            invocation, f"{following:,} of {found.total:,}; more: byheart list --offset {following}"
        )


@click.command(
    "sessions",
    cls=Verb,
    examples=("byheart sessions", "byheart sessions --agent-id coder --json"),
)
@flag("--agent-id", "-a", metavar="ID", help="Only of this agent.")
@page(limit=20)
@click.pass_obj
def sessions_command(invocation: Invocation, /, **given: Any) -> None:
    """List sessions, the latest active first."""
    with open_store(invocation) as store:
        sessions = store.sessions(**given)
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
