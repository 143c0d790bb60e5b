"""Define `context`, `pin` and `unpin`, which control what goes into the prompt."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import click

from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import flag, read_query, session_filters
from byheart.interfaces.cli.screen import (
    Part,
    count,
    open_screen,
    print_json,
    print_text,
    qualify,
    remark,
)
from byheart.interfaces.cli.store import open_store
from byheart.interfaces.cli.update import who
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import MODES, ContextAnswer, Memory

_ASKED_NOTHING = (
    "nothing was asked, and this session has no turns, summary or pins yet: "
    "give a QUERY, or log turns"
)
_FOUND_NOTHING = "nothing is known of this session yet: log turns, or save memories"


@click.command(
    "context",
    cls=Verb,
    examples=(
        "byheart context s1",
        'byheart context s1 "where is the deploy key?" --max-tokens 1000',
        "byheart context s1 --recent 4 --top-k 3 --kind fact --json",
    ),
)
@click.argument("session_id")
@click.argument("query", nargs=-1)
@flag(
    "--max-tokens",
    type=int,
    default=2000,
    show_default=True,
    metavar="N",
    help="How many tokens it may take.",
)
@flag(
    "--recent",
    type=int,
    default=10,
    show_default=True,
    metavar="N",
    help="How many of the last turns it should hold.",
)
@flag(
    "--top-k",
    type=int,
    default=8,
    show_default=True,
    metavar="N",
    help="How many passages should be retrieved.",
)
@flag(
    "--include-task",
    metavar="CODE",
    help="Retrieve what any session kept under this task code as well.",
)
@flag(
    *("--mode", "-m"),
    type=click.Choice(MODES),
    default="hybrid",
    show_default=True,
    help="By meaning and keyword, by meaning, or by keyword.",
)
@session_filters
@click.pass_obj
def context_command(
    invocation: Invocation, /, session_id: str, query: tuple[str, ...], **given: Any
) -> None:
    """Print what goes into the prompt of a session, within a token budget.

    First identity files, the running summary and what is pinned: the same bytes until they change.
    Then what answers QUERY (by default the last user message), then the recent messages. The
    filters hold for what is retrieved. Only the block itself goes to stdout; --json adds the
    receipt.
    """
    asked = read_query(query) if query else None
    with open_embedding_store(invocation) as store:
        answer = store.context(session_id, asked, **given)
    if invocation.json:
        print_json(answer)
        return
    qualify(invocation, answer.degraded, answer.remark)
    print_text(answer.text)
    if not answer.receipt.items and not answer.receipt.left_out:
        remark(invocation, _FOUND_NOTHING if asked else _ASKED_NOTHING)
    if sys.stdout.isatty():
        _tell(invocation, answer)


def _tell(invocation: Invocation, answer: ContextAnswer) -> None:
    """Say which parts the context has, and what did not fit."""
    receipt = answer.receipt
    if not receipt.items:
        return
    parts = Counter(item.part for item in receipt.items)
    made = ", ".join(f"{number} {part}" for part, number in parts.items())
    tokens = f"{answer.tokens_used:,} of {count(receipt.max_tokens, 'token')} ({receipt.counter})"
    remark(invocation, f"{made}; {tokens}; stable part {answer.stable_hash[:12]}")
    dropped = sum(each.reason == "budget" for each in receipt.left_out)
    if dropped:
        remark(invocation, f"{dropped} did not fit: allow more with --max-tokens N")


@click.command("pin", cls=Verb, examples=('byheart pin "$ID"',))
@click.argument("memory_id", metavar="ID")
@who
@click.pass_obj
def pin_command(invocation: Invocation, memory_id: str, who: str) -> None:
    """Have a memory stand first in every context that may see it.

    A memory of a session is seen there, any other everywhere.
    """
    with open_store(invocation) as store:
        memory = store.pin(memory_id, who)
    _show(invocation, memory, "pinned")


@click.command("unpin", cls=Verb, examples=('byheart unpin "$ID"',))
@click.argument("memory_id", metavar="ID")
@who
@click.pass_obj
def unpin_command(invocation: Invocation, memory_id: str, who: str) -> None:
    """Let a memory come into contexts like any other again."""
    with open_store(invocation) as store:
        memory = store.unpin(memory_id, who)
    _show(invocation, memory, "no longer pinned:")


def _show(invocation: Invocation, memory: Memory, done: str) -> None:
    if invocation.json:
        print_json(memory)
    elif sys.stdout.isatty():
        open_screen().line(Part("✓", "good"), done, Part(memory.memory_id, "name"))
    else:
        open_screen().line(memory.memory_id)
