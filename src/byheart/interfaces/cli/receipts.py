"""Define `receipts` and `receipt`, which show what went into prompts."""

from __future__ import annotations

from typing import Any

import click

from byheart.interfaces.cli.options import flag, page
from byheart.interfaces.cli.screen import (
    Column,
    Part,
    Screen,
    count,
    one_line,
    open_screen,
    point_on,
    print_json,
)
from byheart.interfaces.cli.store import open_store, whole_id
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import StoredReceipt


@click.command(
    "receipts",
    cls=Verb,
    examples=("byheart receipts --session-id s1", "byheart receipts --memory-id $ID"),
)
@page(limit=20)
@flag("--session-id", "-s", metavar="ID", help="Only receipts of this session.")
@flag("--memory-id", metavar="ID", help="Only receipts of contexts that this memory is in.")
@click.pass_obj
def receipts_command(invocation: Invocation, /, memory_id: str | None = None, **given: Any) -> None:
    """List the receipts of contexts, the latest first.

    context and the hooks store a receipt for as many days as the setting receipt_days says.
    """
    with open_store(invocation) as store:
        name = None if memory_id is None else whole_id(store, memory_id)
        found = store.receipts.list(memory_id=name, **given)
    if invocation.json:
        print_json(found)
        return
    if not found.receipts:
        off = "" if found.kept_days else " They are switched off: the setting receipt_days is 0."
        click.echo(f"No receipts here.{off}")
        return
    screen = open_screen()
    screen.table(
        (
            Column("RECEIPT", style="dim"),
            Column("AT"),
            Column("SESSION"),
            Column("GIVEN", right=True),
            Column("LEFT OUT", right=True),
            Column("TOKENS", right=True),
            Column("QUESTION", wide=True, style="name"),
        ),
        [
            (
                each.receipt_id,
                screen.moment(each.at),
                each.session_id,
                f"{each.items:,}",
                f"{each.left_out:,}",
                f"{each.used_tokens:,}",
                one_line(each.query),
            )
            for each in found.receipts
        ],
    )
    if found.has_more:
        seen = given["offset"] + len(found.receipts)
        point_on(invocation, seen, found.total, "byheart receipts")


@click.command("receipt", cls=Verb, examples=("byheart receipt $RECEIPT",))
@click.argument("receipt_id")
@flag("--session-id", "-s", metavar="ID", help="Only if it is a receipt of this session.")
@click.pass_obj
def receipt_command(invocation: Invocation, /, receipt_id: str, session_id: str | None) -> None:
    """Show what went into a prompt, what did not, and why."""
    with open_store(invocation) as store:
        found = store.receipts.get(receipt_id, session_id)
    if invocation.json:
        print_json(found)
    else:
        _show(open_screen(), found)


def _show(screen: Screen, found: StoredReceipt) -> None:
    screen.line(
        Part(found.verb, "name"),
        f"session {found.session_id}",
        Part(screen.moment(found.at), "dim"),
        f"{found.used_tokens:,} of {count(found.max_tokens, 'token')}",
    )
    screen.passage(one_line(found.query))
    for item in found.receipt.items:
        named = item.title or item.path or item.kind
        screen.line(
            Part("given", "good"),
            item.part,
            Part(item.memory_id or item.path or "", "dim"),
            one_line(named),
            Part(count(item.tokens, "token") + ", cut" * item.cut, "dim"),
        )
    for left in found.receipt.left_out:
        screen.line(
            Part("left out", "number"),
            left.part,
            Part(left.chunk_id or left.memory_id, "dim"),
            left.tells,
        )
