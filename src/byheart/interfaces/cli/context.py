"""Define `context`, `pin` and `unpin`, which control what goes into the prompt."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import click

from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import flag, read_query, search_mode, session_filters
from byheart.interfaces.cli.screen import (
    Part,
    count,
    open_screen,
    print_json,
    print_text,
    qualify,
    remark,
)
from byheart.interfaces.cli.store import open_store, whole_id
from byheart.interfaces.cli.update import who
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import ContextAnswer, Memory

_ASKED_NOTHING = (
    "nothing was asked, and the session {} has no turns, summary or pins yet: "
    "give a QUERY behind it, or log turns"
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
    metavar="N",
    help="The token budget; by default the setting context_max_tokens.",
)
@flag(
    "--recent",
    type=int,
    metavar="N",
    help="The number of recent turns; by default the setting context_recent.",
)
@flag(
    "--top-k",
    type=int,
    metavar="N",
    help="The number of passages to retrieve; by default the setting context_top_k.",
)
@flag(
    "--include-task",
    metavar="CODE",
    help="Also retrieve memories of any session with this task code.",
)
@search_mode()
@flag("--preview", is_flag=True, help="Leave no trace: count nothing as given, store no receipt.")
@session_filters
@click.pass_obj
def context_command(
    invocation: Invocation, /, session_id: str, query: tuple[str, ...], **given: Any
) -> None:
    """Print the context for a session's prompt, within a token budget.

    The identity files, the running summary and pinned memories come first; these bytes stay the
    same until they change. Passages about QUERY (by default the last user message) follow, then the
    recent turns. The filters apply to the passages. Only the block itself goes to stdout; --json
    adds the receipt.
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
        remark(invocation, _FOUND_NOTHING if asked else _ASKED_NOTHING.format(repr(session_id)))
    unrelated = sum(each.reason == "unrelated" for each in answer.receipt.left_out)
    if unrelated and not any(each.part == "retrieved" for each in answer.receipt.items):
        remark(invocation, f"nothing here seems to answer this: {unrelated} unrelated left out")
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
    """Include a memory at the top of every context.

    A session's memory is included in that session only, a global one everywhere.
    """
    with open_store(invocation) as store:
        memory = store.pin(whole_id(store, memory_id), who)
    _show(invocation, memory, "pinned")


@click.command("unpin", cls=Verb, examples=('byheart unpin "$ID"',))
@click.argument("memory_id", metavar="ID")
@who
@click.pass_obj
def unpin_command(invocation: Invocation, memory_id: str, who: str) -> None:
    """Undo pin: include the memory only if it is relevant."""
    with open_store(invocation) as store:
        memory = store.unpin(whole_id(store, memory_id), who)
    _show(invocation, memory, "no longer pinned:")


def _show(invocation: Invocation, memory: Memory, done: str) -> None:
    if invocation.json:
        print_json(memory)
    elif sys.stdout.isatty():
        open_screen().line(Part("✓", "good"), done, Part(memory.memory_id, "name"))
    else:
        open_screen().line(memory.memory_id)
