"""Define `review`, the queue of memories that somebody should look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from byheart.interfaces.cli.options import filters_of_now, flag, page
from byheart.interfaces.cli.screen import (
    Part,
    Screen,
    count,
    one_line,
    open_screen,
    point_on,
    print_json,
    remark,
    warn,
)
from byheart.interfaces.cli.store import open_store, shown_ids, whole_id
from byheart.interfaces.cli.update import who
from byheart.interfaces.cli.verb import Invocation, VerbGroup
from byheart.model import REVIEW_REASONS, KeptItem, ReviewItem
from byheart.startup.late_patterns import late_pattern
from byheart.store import MemoryStore

_MEMORY_ID = late_pattern(r"(?<=[:+])[^@+:]+(?=@)")
# How each action is typed; the first memory of an item stays.
_COMMANDS = {
    "merge": "byheart merge {first} {others}",
    "supersede": "byheart supersede {others} {first}",
    "extend": "byheart update {first} --ttl-days 90",
    "trust": "byheart trust {first}",
    "forget": "byheart forget {last}",
    "keep": "byheart review keep {item_id}",
}


@click.group(
    "review",
    cls=VerbGroup,
    invoke_without_command=True,
    examples=("byheart review", "byheart review --reason expiring --limit 5"),
)
@flag("--reason", type=click.Choice(REVIEW_REASONS), help="Only items with this reason.")
@page(limit=20)
@filters_of_now
@click.pass_context
def review_command(ctx: click.Context, /, **given: Any) -> None:
    """List what needs a look, each with its reason; keep items.

    The reasons: secrets found, contradictions, untrusted memories, memories that expire within 14
    days, near duplicates, and memories that nobody changed or used for 180 days.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.obj, given)


@review_command.command("keep", examples=("byheart review keep unused:$ID@1",))
@click.argument("item_id")
@who
@click.pass_obj
def keep_item(invocation: Invocation, /, item_id: str, who: str) -> None:
    """Keep an item as it is: list it again only when a memory of it changes."""
    with open_store(invocation) as store:
        _tell(
            invocation,
            store.review.keep(_whole(store, item_id), who=who),
            "kept: undo it with review unkeep",
        )


@review_command.command("unkeep", examples=("byheart review unkeep unused:$ID@1",))
@click.argument("item_id")
@click.pass_obj
def unkeep_item(invocation: Invocation, /, item_id: str) -> None:
    """Undo keep: list an item again."""
    with open_store(invocation) as store:
        _tell(
            invocation,
            store.review.unkeep(_whole(store, item_id)),
            "listed again, if it still needs a look",
        )


def _whole(store: MemoryStore, item_id: str) -> str:
    """Complete the short ids in the name of an item."""
    return _with_names(item_id, lambda name: whole_id(store, name))


def _with_names(item_id: str, name_of: Callable[[str], str]) -> str:
    """Replace the memory ids in the name of an item."""
    return _MEMORY_ID.sub(lambda found: name_of(found[0]), item_id)


def _tell(invocation: Invocation, done: KeptItem, text: str) -> None:
    if invocation.json:
        print_json(done)
        return
    open_screen().line(Part("✓", "good"), text)


def _list(invocation: Invocation, given: dict[str, Any]) -> None:
    with open_store(invocation) as store:
        queue = store.review.queue(**given)
        names = shown_ids(store, [each.memory_id for item in queue.items for each in item.memories])
    if invocation.json:
        print_json(queue)
        return
    warn(invocation, queue.degraded)
    if not queue.items:
        click.echo("Nothing needs a look." if not queue.total else "No more items.")
        return
    screen = open_screen()
    for item in queue.items:
        _show(screen, item, names)
    told = ", ".join(f"{number:,} {reason}" for reason, number in queue.counts.items() if number)
    remark(invocation, f"{count(sum(queue.counts.values()), 'item')}: {told}")
    if queue.has_more:
        point_on(invocation, given["offset"] + len(queue.items), queue.total, "byheart review")


def _show(screen: Screen, item: ReviewItem, names: Mapping[str, str]) -> None:
    screen.line(Part(item.reason, "number"), item.why)
    ids = [names[each.memory_id] for each in item.memories]
    for name, memory in zip(ids, item.memories, strict=True):
        screen.line(Part(name, "name"), one_line(memory.title or memory.summary), indent=2)
    item_id = _with_names(item.item_id, lambda memory_id: names.get(memory_id, memory_id))
    parts = {"item_id": item_id, "first": ids[0], "last": ids[-1], "others": " ".join(ids[1:])}
    for action in item.actions:
        if action == "supersede" and len(ids) > 2:
            continue  # the command takes one memory at a time
        if command := _COMMANDS.get(action):
            screen.whole(Part(command.format(**parts), "dim"), indent=2)
    screen.line("")
