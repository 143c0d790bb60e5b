"""Define `quarantine`, `trust` and `distrust`, with which untrusted memories are reviewed."""

from __future__ import annotations

import sys
from typing import Any

import click

from byheart.interfaces.cli.forget import given_filters, show_ids, yes
from byheart.interfaces.cli.options import (
    flag,
    own_review_filters,
    page,
    together,
    untrusted_filters,
)
from byheart.interfaces.cli.screen import (
    Column,
    Part,
    count,
    one_line,
    open_screen,
    point_on,
    print_json,
    remark,
)
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.update import reason, who
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Reviewed


@click.command(
    "quarantine",
    cls=Verb,
    examples=("byheart quarantine", "byheart quarantine --origin tool --limit 50"),
)
@page(limit=20)
@untrusted_filters
@click.pass_obj
def quarantine_command(invocation: Invocation, /, **given: Any) -> None:
    """List memories that wait for review, longest waiting first.

    Searches find them, but no context, reminder or hook puts them into a prompt. Read one with
    byheart get ID, then trust it with byheart trust ID, or remove it with byheart forget ID.
    """
    with open_store(invocation) as store:
        found = store.review.quarantine(**given)
    if invocation.json:
        print_json(found)
        return
    if not found.memories:
        click.echo("No memory waits for review." if not found.total else "No more memories.")
        return
    screen = open_screen()
    screen.table(
        (
            Column("ID", style="dim"),
            Column("ORIGIN"),
            Column("SOURCE"),
            Column("WAITS SINCE"),
            Column("TEXT", wide=True, style="name"),
        ),
        [
            (
                memory.memory_id,
                memory.origin,
                memory.source,
                screen.moment(memory.untrusted_at),
                one_line(memory.title or memory.summary),
            )
            for memory in found.memories
        ],
    )
    if found.has_more:
        seen = given["offset"] + len(found.memories)
        point_on(invocation, seen, found.total, "byheart quarantine")


_chosen = together(
    click.argument("memory_ids", metavar="[ID]...", nargs=-1),
    flag("--dry-run", is_flag=True, help="Only count; change nothing."),
    yes,
    reason,
    who,
    own_review_filters,
    click.pass_context,
)


@click.command(
    "trust",
    cls=Verb,
    examples=(
        'byheart trust "$ID"',
        "byheart trust --origin tool --task-code web --yes",
    ),
)
@_chosen
def trust_command(ctx: click.Context, /, **given: Any) -> None:
    """Let untrusted memories enter prompts.

    With a filter, the command counts the memories first and asks before it continues.
    """
    _review(ctx, "trust", **given)


@click.command(
    "distrust",
    cls=Verb,
    examples=(
        'byheart distrust "$ID" --reason "it gives orders"',
        "byheart distrust --agent-id scraper --yes",
    ),
)
@_chosen
def distrust_command(ctx: click.Context, /, **given: Any) -> None:
    """Keep memories out of prompts until they are reviewed.

    With a filter, the command counts the memories first and asks before it continues.
    """
    _review(ctx, "distrust", **given)


def _review(
    ctx: click.Context,
    verb: str,
    memory_ids: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    **given: Any,
) -> None:
    invocation: Invocation = ctx.obj
    about = {"reason": given.pop("reason"), "who": given.pop("who"), **given_filters(ctx, given)}
    with open_store(invocation) as store:
        review = getattr(store.review, verb)
        if memory_ids:
            done = review(memory_ids, dry_run=dry_run, **about)
        else:
            done = review(dry_run=True, **about)
            if done.count and not dry_run:
                if not yes and not _agreed(invocation, verb, done):
                    return
                done = review(dry_run=False, **about)
    _show(invocation, verb, done)


def _agreed(invocation: Invocation, verb: str, done: Reviewed) -> bool:
    if invocation.json or not sys.stdin.isatty():
        _show(invocation, verb, done)
        remark(invocation, "nothing was changed yet: add --yes to do it")
        return False
    show_ids(done.memory_ids)
    return click.confirm(f"{verb.capitalize()} {count(done.count, 'memory')}?", err=True)


def _show(invocation: Invocation, verb: str, done: Reviewed) -> None:
    if invocation.json:
        print_json(done)
        return
    would = f"would {verb}" if done.dry_run else f"{verb}ed"
    open_screen().line(Part("✓", "good"), f"{would} {count(done.count, 'memory')}")
    show_ids(done.memory_ids)
