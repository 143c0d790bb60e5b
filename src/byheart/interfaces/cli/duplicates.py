"""Define `dedupe` and `merge`, which find and merge near duplicates."""

from __future__ import annotations

from typing import Any

import click

from byheart.interfaces.cli.options import flag, own_filters
from byheart.interfaces.cli.screen import (
    Part,
    Screen,
    count,
    one_line,
    open_screen,
    print_json,
    remark,
    warn,
)
from byheart.interfaces.cli.store import open_store, whole_id
from byheart.interfaces.cli.update import reason, who
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Dedupe, MergeProposal


@click.command(
    "dedupe",
    cls=Verb,
    examples=(
        "byheart dedupe",
        "byheart dedupe --kind fact --threshold 0.9",
        "byheart dedupe --kind fact --apply",
    ),
)
@flag(
    "--threshold",
    type=float,
    default=0.95,
    show_default=True,
    metavar="0.8-1",
    help="The least similarity; 1 is identical.",
)
@flag(
    "--limit",
    "-n",
    type=int,
    default=20,
    show_default=True,
    metavar="N",
    help="The number of proposals.",
)
@flag("--apply", is_flag=True, help="Merge the memories shown; restore undoes it.")
@flag("--who", metavar="NAME", default="dedupe", help="The author, for the history.")
@own_filters
@click.pass_obj
def dedupe_command(invocation: Invocation, /, **given: Any) -> None:
    """Propose merges of memories that are almost the same.

    Only memories of the same kind and session are compared. Pairs that differ in a name, a number
    or a "not" are left out. Read before you --apply: similar texts can contradict each other.
    """
    with open_store(invocation) as store:
        answer = store.admin.dedupe(**given)
    if invocation.json:
        print_json(answer)
        return
    warn(invocation, answer.degraded)
    screen = open_screen()
    for place, proposal in enumerate(answer.proposals):
        if place:
            screen.line("")
        _show(screen, proposal, answer.applied)
    _close(invocation, answer)


def _show(screen: Screen, proposal: MergeProposal, applied: bool) -> None:
    screen.line(
        Part("kept" if applied else "keep", "good"),
        Part(proposal.keep, "name"),
        Part(f"({proposal.why})", "dim"),
    )
    screen.passage(one_line(proposal.summary))
    for other in proposal.others:
        screen.line(
            Part("merged" if applied else "merge", "number"),
            Part(other.memory_id, "name"),
            Part(f"similarity {other.similarity:.2f}", "dim"),
        )
        screen.passage(one_line(other.summary))


def _close(invocation: Invocation, answer: Dedupe) -> None:
    if not answer.proposals:
        click.echo(f"Nothing is stored twice at a similarity of {answer.threshold:g}.")
    elif answer.applied:
        remark(invocation, "to undo: byheart restore ID")
    else:
        shown = f"{len(answer.proposals):,} of {count(answer.total, 'merge')}"
        remark(invocation, f"{shown}; nothing was changed: add --apply, or byheart merge KEEP ID")
    if answer.left_out:
        pairs = count(answer.left_out, "pair")
        remark(invocation, f'{pairs} left out: as near, but with another name, number or "not"')


@click.command(
    "merge",
    cls=Verb,
    examples=('byheart merge "$ID" "$(byheart save "Slow queries and long locks in March.")"',),
)
@click.argument("keep", metavar="KEEP")
@click.argument("others", metavar="ID...", nargs=-1, required=True)
@reason
@who
@click.pass_obj
def merge_command(
    invocation: Invocation, /, keep: str, others: tuple[str, ...], reason: str | None, who: str
) -> None:
    """Merge several memories into one.

    The first one gets the tags, entities and accesses of the others. The others are hidden; byheart
    restore brings them back.
    """
    with open_store(invocation) as store:
        kept, *merging = (whole_id(store, each) for each in (keep, *others))
        merged = store.admin.merge(kept, merging, reason=reason, who=who)
    if invocation.json:
        print_json(merged)
        return
    open_screen().line(
        Part("✓", "good"),
        f"merged {count(len(merged.merged), 'memory')} into",
        Part(merged.memory_id, "name"),
    )
