"""Define `forget` and `cleanup`, which remove memories from search."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from byheart.errors import Hint, NotFound
from byheart.interfaces.cli.errors import FAILURE
from byheart.interfaces.cli.hints import for_terminal
from byheart.interfaces.cli.options import flag, own_filters
from byheart.interfaces.cli.screen import Part, count, one_line, open_screen, print_json, remark
from byheart.interfaces.cli.store import open_store, whole_id
from byheart.interfaces.cli.update import reason, who
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Forgotten

if TYPE_CHECKING:
    from byheart.store import MemoryStore

_SHOWN_IDS = 10

yes = flag("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


@click.command(
    "forget",
    cls=Verb,
    examples=(
        'byheart forget "$ID" --reason "no longer true"',
        'byheart forget "$ID" --hard',
        "byheart forget --session-id s1 --older-than 30d",
        "byheart forget --kind tool_output --older-than 2w --yes",
    ),
)
@click.argument("memory_ids", metavar="[ID]...", nargs=-1)
@flag("--hard", is_flag=True, help="Erase every trace from the store; cannot be undone.")
@flag("--dry-run", is_flag=True, help="Only count; change nothing.")
@flag("--older-than", metavar="AGE", help="Only memories older than this: 12h, 30d, 2w, 6m, 1y.")
@yes
@reason
@who
@own_filters
@click.pass_context
def forget_command(
    ctx: click.Context,
    /,
    memory_ids: tuple[str, ...],
    hard: bool,
    dry_run: bool,
    older_than: str | None,
    yes: bool,
    reason: str | None,
    who: str,
    **given: Any,
) -> None:
    """Hide memories until they are restored, or erase them with --hard.

    With a filter, the command counts the memories first and asks before it continues. --session-id
    selects that session's own memories only. --hard keeps a hash of the text, so that a later
    import or index refuses it.
    """
    invocation: Invocation = ctx.obj
    chosen = given_filters(ctx, given)
    about = {"reason": reason, "hard": hard, "older_than": older_than, "who": who, **chosen}
    with open_store(invocation) as store:
        if memory_ids:
            memory_ids = tuple(whole_id(store, each) for each in memory_ids)
            asked = hard and not yes and not dry_run and sys.stdin.isatty()
            if asked and not _confirmed(store, memory_ids, hard):
                return
            done = store.forget(memory_ids, dry_run=dry_run, **about)
        else:
            done = store.forget(dry_run=True, **about)
            if done.count and not dry_run:
                if not agreed(invocation, store, done, yes):
                    return
                done = store.forget(dry_run=False, **about)
    show_end(ctx, done)


@click.command(
    "cleanup",
    cls=Verb,
    examples=("byheart cleanup", "byheart cleanup --days-old 365 --kind tool_output --yes"),
)
@flag(
    "--days-old",
    type=float,
    default=90,
    show_default=True,
    metavar="DAYS",
    help="Only memories not changed or recalled for this many days.",
)
@flag("--dry-run", is_flag=True, help="Only count; change nothing.")
@flag("--hard", is_flag=True, help="Erase every trace from the store; cannot be undone.")
@yes
@flag("--who", metavar="NAME", default="cleanup", help="The author, for the history.")
@own_filters
@click.pass_context
def cleanup_command(
    ctx: click.Context,
    /,
    days_old: float,
    dry_run: bool,
    hard: bool,
    yes: bool,
    who: str,
    **given: Any,
) -> None:
    """Forget memories that were not used for long.

    Expired memories are forgotten as well. The command counts first, and asks before it continues.
    """
    invocation: Invocation = ctx.obj
    about = {"hard": hard, "who": who, **given_filters(ctx, given)}
    with open_store(invocation) as store:
        done = store.admin.cleanup(days_old, **about)
        if done.count and not dry_run:
            if not agreed(invocation, store, done, yes):
                return
            done = store.admin.cleanup(days_old, dry_run=False, **about)
    show_end(ctx, done)


def given_filters(ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """Return the filters that the user named, without defaults."""
    return {
        name: value
        for name, value in given.items()
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT and value is not None
    }


def agreed(invocation: Invocation, store: MemoryStore, done: Forgotten, yes: bool) -> bool:
    """Check whether the user agrees: with --yes, or by confirming the list shown."""
    if yes:
        return True
    if invocation.json or not sys.stdin.isatty():
        _show(invocation, done)
        remark(invocation, "nothing was forgotten yet: add --yes to do it")
        return False
    return _confirmed(store, done.memory_ids, done.hard)


def _confirmed(store: MemoryStore, memory_ids: Sequence[str], hard: bool) -> bool:
    """Show the memories, then ask."""
    for memory_id in memory_ids[:_SHOWN_IDS]:
        with suppress(NotFound):  # already hidden: nothing to show
            memory = store.get(memory_id)
            click.echo(f"   {memory_id}  {one_line(memory.title or memory.summary)}", err=True)
    if len(memory_ids) > _SHOWN_IDS:
        click.echo(f"   and {len(memory_ids) - _SHOWN_IDS:,} more", err=True)
    how = ", with every trace and for good" if hard else ""
    if click.confirm(f"Forget {count(len(memory_ids), 'memory')}{how}?", err=True):
        return True
    click.echo("nothing was forgotten", err=True)
    return False


def show_end(ctx: click.Context, done: Forgotten) -> None:
    """Show the result; exit with a failure if anything that should be gone remains."""
    _show(ctx.obj, done)
    removal = done.removal
    if done.still_found or (removal and (removal.traces or removal.unfinished)):
        ctx.exit(FAILURE)


def _show(invocation: Invocation, done: Forgotten) -> None:
    if invocation.json:
        print_json(done)
        return
    screen = open_screen()
    would = "would forget" if done.dry_run else "forgot"
    screen.line(Part("✓", "good"), f"{would} {count(done.count, 'memory')}", _span(done))
    show_ids(done.memory_ids)
    if done.expired:
        screen.line(Part(f"{done.expired:,} of them had expired", "dim"), indent=1)
    if done.removal is not None:
        _show_removal(done)


def show_ids(memory_ids: Sequence[str]) -> None:
    """List the first of some ids, and count the others."""
    screen = open_screen()
    for memory_id in memory_ids[:_SHOWN_IDS]:
        screen.line(Part(memory_id, "name"), indent=1)
    if len(memory_ids) > _SHOWN_IDS:
        screen.line(Part(f"and {len(memory_ids) - _SHOWN_IDS:,} more", "dim"), indent=1)


def _span(done: Forgotten) -> Part:
    if done.oldest is None or done.newest is None:
        return Part("", "dim")
    return Part(f"(made {done.oldest:%Y-%m-%d} to {done.newest:%Y-%m-%d})", "dim")


def _show_removal(done: Forgotten) -> None:
    screen, removal = open_screen(), done.removal
    assert removal is not None
    screen.line(
        Part("removed", "dim"),
        f"{count(removal.texts, 'text')}, {count(removal.chunks, 'chunk')}, "
        f"{count(removal.vectors, 'vector')}, {count(removal.history, 'history entry')}",
    )
    for path in removal.files_removed:
        screen.line(Part("removed", "dim"), f"the backup {path}")
    if removal.traces or done.still_found:
        for path in removal.traces:
            screen.line(Part("✗", "bad"), f"{path} still holds some of it: close other programs")
            screen.line(Part("that use the store, then run: byheart doctor --optimize", "dim"))
        for memory_id in done.still_found:
            screen.line(Part("✗", "bad"), f"a search still finds {memory_id}")
        return
    if removal.unfinished is not None:
        screen.line(Part("✗", "bad"), for_terminal(Hint("not finished: ", removal.unfinished)))
    places = "file" if removal.unproved is None else "place"
    looked = f"searched {count(len(removal.files_searched), places)} of the store for its text"
    screen.line(Part("checked", "dim"), f"{looked} and asked for it in every mode: nothing found")
    if removal.unproved is not None:
        screen.line(Part("not proved", "dim"), for_terminal(removal.unproved))
