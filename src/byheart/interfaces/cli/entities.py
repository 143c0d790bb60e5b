"""Define `entities`, which lists, renames and merges the entities of memories."""

from __future__ import annotations

from typing import Any

import click

from byheart.interfaces.cli.options import flag, page, together
from byheart.interfaces.cli.screen import Column, Part, count, open_screen, point_on, print_json
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.verb import Invocation, VerbGroup
from byheart.model import Entity

_listing = together(
    flag("--prefix", metavar="TEXT", help="Only entities whose name or alias begins with this."),
    page(100),
)


@click.group(
    "entities",
    cls=VerbGroup,
    invoke_without_command=True,
    examples=("byheart entities", "byheart entities --prefix post"),
)
@_listing
@click.pass_context
def entities_command(ctx: click.Context, /, **given: Any) -> None:
    """List, rename or merge the entities of memories, most used first.

    Without a subcommand, entities are listed. Forgotten and expired memories do not count.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.obj, given)


@entities_command.command(
    "list", examples=("byheart entities list", "byheart entities list --limit 10 --json")
)
@_listing
@click.pass_obj
def list_entities(invocation: Invocation, /, **given: Any) -> None:
    """List entities with the number of their memories, most used first."""
    _list(invocation, given)


@entities_command.command(
    "rename", examples=('byheart entities rename "Query Times" "Query Durations"',)
)
@click.argument("name", metavar="OLD")
@click.argument("new_name", metavar="NEW")
@click.pass_obj
def rename_entity(invocation: Invocation, /, name: str, new_name: str) -> None:
    """Rename an entity; the old name stays as an alias."""
    with open_store(invocation) as store:
        _show(invocation, store.entities.rename(name, new_name))


@entities_command.command(
    "merge", examples=('byheart entities merge "Query Times" Locks --into Database',)
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@flag("--into", required=True, metavar="NAME", help="The name of the merged entity; it may be new.")
@click.pass_obj
def merge_entities(invocation: Invocation, /, names: tuple[str, ...], into: str) -> None:
    """Merge entities into one; the old names stay as aliases.

    Memories saved later under an old name belong to the same entity.
    """
    with open_store(invocation) as store:
        _show(invocation, store.entities.merge(names, into))


def _list(invocation: Invocation, given: dict[str, Any]) -> None:
    with open_store(invocation) as store:
        found = store.entities.list(**given)
    if invocation.json:
        print_json(found)
        return
    if not found.entities:
        click.echo("No entities here." if not found.total else "No more entities.")
        return
    screen = open_screen()
    screen.table(
        (
            Column("ENTITY", style="name"),
            Column("MEMORIES", right=True),
            Column("FIRST"),
            Column("LATEST"),
            Column("ALSO", wide=True, style="dim"),
        ),
        [
            (
                entity.name,
                f"{entity.memories:,}",
                screen.moment(entity.first_seen),
                screen.moment(entity.last_seen),
                ", ".join(entity.aliases),
            )
            for entity in found.entities
        ],
    )
    if found.has_more:
        seen = given["offset"] + len(found.entities)
        point_on(invocation, seen, found.total, "byheart entities")


def _show(invocation: Invocation, entity: Entity) -> None:
    if invocation.json:
        print_json(entity)
        return
    open_screen().line(
        Part("✓", "good"),
        Part(entity.name, "name"),
        count(entity.memories, "memory"),
        Part(f"also {', '.join(entity.aliases)}" if entity.aliases else "", "dim"),
    )
