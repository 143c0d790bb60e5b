"""Define `list`, which lists memories."""

from __future__ import annotations

from typing import Any

import click

from byheart.errors import InvalidInput, NotFound
from byheart.interfaces.cli.options import filters, flag, page
from byheart.interfaces.cli.screen import (
    Column,
    one_line,
    open_screen,
    point_on,
    print_json,
    remark,
)
from byheart.interfaces.cli.store import open_store, shown_ids
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
@flag("--after", metavar="MEMORY_ID", help="List memories behind this one.")
@flag("--forgotten", is_flag=True, help="List forgotten memories, which can be restored.")
@filters
@click.pass_obj
def list_command(invocation: Invocation, /, **given: Any) -> None:
    """List memories, latest first.

    Within a session, the latest iteration comes first.
    """
    with open_store(invocation) as store:
        try:
            found = store.list(**given)
        except NotFound as error:
            raise _explain(error, given["after"]) from None
        names = shown_ids(store, [memory.memory_id for memory in found.memories])
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
                names[memory.memory_id],
                memory.kind,
                memory.session_id or "-",
                f"{memory.importance:.1f}",
                screen.moment(memory.created_at),
                one_line(memory.title or memory.summary),
            )
            for memory in found.memories
        ],
    )
    if found.has_more and given["after"] is not None:
        remark(invocation, f"more: byheart list … --after {names[found.memories[-1].memory_id]}")
    elif found.has_more:
        seen = given["offset"] + len(found.memories)
        point_on(invocation, seen, found.total, "byheart list")


def _explain(error: NotFound, after: str | None) -> Exception:
    """Make a clearer error where `--after` names no id, but perhaps a time."""
    if after is None or after.startswith("mem_"):
        return error
    return InvalidInput(
        f"--after takes the id of a memory, not {after}",
        "for memories of a time: byheart list --created-after DATE",
    )
