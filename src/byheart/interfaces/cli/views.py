"""Define the commands that show memories in brief, in parts, as HTML and over time."""

from __future__ import annotations

from typing import Any

import click

from byheart.interfaces.cli.options import filters, flag, page
from byheart.interfaces.cli.screen import (
    Column,
    Part,
    count,
    one_line,
    open_screen,
    point_on,
    print_json,
    print_text,
    remark,
    warn,
)
from byheart.interfaces.cli.store import open_store, shown_ids, whole_id
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Day

_WIDEST_BAR = 20


@click.command("brief", cls=Verb, examples=("byheart brief $ID",))
@click.argument("memory_id", nargs=-1, required=True)
@click.pass_obj
def brief_command(invocation: Invocation, /, memory_id: tuple[str, ...]) -> None:
    """List memories by id, without their texts, forgotten ones too."""
    with open_store(invocation) as store:
        found = store.views.brief([whole_id(store, each) for each in memory_id])
        names = shown_ids(store, [each.memory_id for each in found.memories])
    if invocation.json:
        print_json(found)
        return
    screen = open_screen()
    rows = [
        (
            names[each.memory_id],
            each.kind,
            each.session_id or "-",
            screen.moment(each.created_at),
            one_line(each.title or each.summary),
        )
        for each in found.memories
    ]
    if rows:
        screen.table(
            (
                Column("ID", style="dim"),
                Column("KIND"),
                Column("SESSION"),
                Column("SAVED"),
                Column("TEXT", wide=True, style="name"),
            ),
            rows,
        )
    for each in found.missing:
        remark(invocation, f"there is no {each} in this space")


@click.command("chunks", cls=Verb, examples=("byheart chunks $ID",))
@click.argument("memory_id")
@page(limit=50)
@click.pass_obj
def chunks_command(invocation: Invocation, /, memory_id: str, **given: Any) -> None:
    """List the passages that a memory is divided into, in order."""
    with open_store(invocation) as store:
        found = store.views.chunks(whole_id(store, memory_id), **given)
    if invocation.json:
        print_json(found)
        return
    screen = open_screen()
    for each in found.chunks:
        screen.line(
            Part(each.chunk_id, "name"),
            Part(f"lines {each.start_line}-{each.end_line}", "dim"),
            Part(count(each.token_count, "token"), "dim"),
            Part(each.header_path, "dim"),
        )
        screen.passage(each.content.strip("\n"))
    if found.has_more:
        seen = given["offset"] + len(found.chunks)
        point_on(invocation, seen, found.total, f"byheart chunks {memory_id}")


@click.command("render", cls=Verb, examples=("byheart render $ID > memory.html",))
@click.argument("memory_id")
@click.pass_obj
def render_command(invocation: Invocation, /, memory_id: str) -> None:
    """Print a memory as HTML that a page can show as it is.

    Markdown is rendered; other texts stay as they are. Scripts, styles, images and HTML of the text
    are not passed on.
    """
    with open_store(invocation) as store:
        rendered = store.views.render(whole_id(store, memory_id))
    if invocation.json:
        print_json(rendered)
        return
    print_text(f"{rendered.html}\n")
    if rendered.cut:
        remark(invocation, "the text is long: only its beginning is shown")


@click.command("similar", cls=Verb, examples=("byheart similar $ID --threshold 0.7 --limit 5",))
@click.argument("memory_id")
@flag(
    "--limit",
    "-n",
    type=int,
    default=10,
    show_default=True,
    metavar="N",
    help="The largest number of results.",
)
@flag(
    "--threshold",
    type=float,
    default=0.5,
    show_default=True,
    metavar="0-1",
    help="The least similarity; 1 is identical.",
)
@flag("--session-id", "-s", metavar="ID", help="Only memories that this session can see.")
@click.pass_obj
def similar_command(invocation: Invocation, /, memory_id: str, **given: Any) -> None:
    """Find the memories nearest to one in meaning, best first."""
    with open_store(invocation) as store:
        found = store.views.similar(whole_id(store, memory_id), **given)
        names = shown_ids(store, [each.memory_id for each in found.similar])
    if invocation.json:
        print_json(found)
        return
    warn(invocation, found.degraded)
    if not found.similar:
        click.echo("No memory is that similar.")
        return
    screen = open_screen()
    screen.table(
        (
            Column("SIMILARITY", right=True),
            Column("ID", style="dim"),
            Column("TEXT", wide=True, style="name"),
        ),
        [
            (f"{each.similarity:.2f}", names[each.memory_id], one_line(each.summary))
            for each in found.similar
        ],
    )


@click.command(
    "versions",
    cls=Verb,
    examples=("byheart versions $ID", "byheart versions $ID --json"),
)
@click.argument("memory_id")
@page(limit=10)
@click.pass_obj
def versions_command(invocation: Invocation, /, memory_id: str, **given: Any) -> None:
    """Print the texts that a memory has had, the current one first.

    byheart history shows who changed what, and why.
    """
    with open_store(invocation) as store:
        found = store.views.versions(whole_id(store, memory_id), **given)
    if invocation.json:
        print_json(found)
        return
    screen = open_screen()
    for each in found.versions:
        until = screen.moment(each.replaced_at) or "now"
        screen.line(
            Part(f"version {each.version}", "name"),
            Part(f"{screen.moment(each.since_at)} to {until}", "dim"),
            Part(each.title or ""),
        )
        screen.passage(each.content)
    if found.has_more:
        seen = given["offset"] + len(found.versions)
        point_on(invocation, seen, found.total, f"byheart versions {memory_id}")


@click.command("map", cls=Verb, examples=("byheart map", "byheart map --kind fact --json"))
@flag(
    "--limit",
    "-n",
    type=int,
    default=20_000,
    show_default=True,
    metavar="N",
    help="The largest number of points.",
)
@filters
@click.pass_obj
def map_command(invocation: Invocation, /, **given: Any) -> None:
    """Name the regions of a map of memories by meaning, largest first.

    The web page draws the map; --json prints its points. The terms of a region are frequent in it
    and rare elsewhere. They are a hint: the map shows two dimensions of many.
    """
    with open_store(invocation) as store:
        drawn = store.views.map(**given)
    if invocation.json:
        print_json(drawn)
        return
    warn(invocation, drawn.degraded)
    if not drawn.memory_ids:
        click.echo("No memory has vectors yet, so there is no map.")
        return
    screen = open_screen()
    screen.table(
        (Column("MEMORIES", right=True), Column("TERMS", wide=True, style="name")),
        [
            (f"{each.memories:,}", ", ".join(each.terms) or "-")
            for each in sorted(drawn.regions, key=lambda each: (-each.memories, each.region))
        ],
    )
    if len(drawn.memory_ids) < drawn.total:
        remark(
            invocation, f"{len(drawn.memory_ids):,} of {count(drawn.total, 'memory')} on the map"
        )


@click.command(
    "timeline",
    cls=Verb,
    examples=("byheart timeline", "byheart timeline --kind fact --created-after 2026-01-01"),
)
@page(limit=20)
@flag(
    "--utc-offset-minutes",
    type=int,
    default=0,
    metavar="MINUTES",
    help="Begin days at midnight so far east of UTC.",
)
@filters
@click.pass_obj
def timeline_command(invocation: Invocation, /, **given: Any) -> None:
    """Count memories by day and kind, and list sessions over time.

    --limit and --offset are about sessions. --as-of shows the store as it was.
    """
    with open_store(invocation) as store:
        found = store.views.timeline(**given)
    if invocation.json:
        print_json(found)
        return
    if not found.memories:
        click.echo("No memories here.")
        return
    screen = open_screen()
    most = max(each.memories for each in found.days)
    screen.table(
        (Column("DAY"), Column("MEMORIES", right=True), Column(""), Column("KINDS", wide=True)),
        [(each.day, f"{each.memories:,}", _bar(each, most), _kinds(each)) for each in found.days],
    )
    if found.sessions:
        screen.line("")
        screen.table(
            (
                Column("FIRST"),
                Column("LAST"),
                Column("MEMORIES", right=True),
                Column("TURNS", right=True),
                Column("SESSION", wide=True, style="name"),
            ),
            [
                (
                    screen.moment(each.first_at),
                    screen.moment(each.last_at),
                    f"{each.memories:,}",
                    f"{each.turns:,}",
                    each.session_id,
                )
                for each in found.sessions
            ],
        )
    if found.has_more:
        seen = given["offset"] + len(found.sessions)
        point_on(invocation, seen, found.sessions_total, "byheart timeline")


def _bar(day: Day, most: int) -> str:
    return "▇" * max(1, round(_WIDEST_BAR * day.memories / most))


def _kinds(day: Day) -> str:
    return ", ".join(f"{kind} {number:,}" for kind, number in sorted(day.kinds.items()))
