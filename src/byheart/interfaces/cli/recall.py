"""Define `recall`, which returns knowledge about a subject within a token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import (
    filters,
    flag,
    named_times,
    page,
    read_query,
    search_mode,
)
from byheart.interfaces.cli.screen import (
    Column,
    Part,
    Screen,
    count,
    one_line,
    open_screen,
    print_json,
    qualify,
    remark,
    validity,
)
from byheart.interfaces.cli.store import shown_ids
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.interfaces.cli.verdict import Near, deny, doubt, explain_verdict, offer_nearest
from byheart.model import RecallAnswer, RecalledMemory, RecalledSummary, RecallExplanation
from byheart.model.workspaces import STALE

_PARTS = ("relevance", "importance", "recency", "frequency", "score")


@click.command(
    "recall",
    cls=Verb,
    examples=(
        'byheart recall "what does Anna like?"',
        "byheart recall deploy key --max-tokens 300 --kind fact",
        "byheart recall slow queries --min-importance 6 --explain",
        "byheart recall tea --session-id s1 --json",
    ),
)
@click.argument("query", nargs=-1)
@flag(
    "--max-tokens",
    type=int,
    metavar="N",
    help="The token budget of the answer; by default the setting recall_max_tokens.",
)
@page(limit=20)
@search_mode()
@flag("--explain", is_flag=True, help="Show the parts of each score.")
@flag("--raw", is_flag=True, help="Read QUERY as FTS5 syntax: phrases, AND, OR, NOT, prefix*.")
@named_times()
@filters
@click.pass_obj
def recall_command(invocation: Invocation, /, query: tuple[str, ...], **given: Any) -> None:
    """Recall the most important memories for a question, within a token budget.

    QUERY is any text, joined by spaces; "-" reads it from stdin. Memories are ranked by relevance,
    importance, recency and frequency of use. As many as fit are shown in full; the others are
    listed below them. A relevant memory that is shown in full counts as used.
    """
    with open_embedding_store(invocation) as store:
        answer = store.recall(read_query(query), **given)
        names = shown_ids(store, [each.id for each in answer.index])
        budget = given["max_tokens"] or store.settings.recall_max_tokens
    if invocation.json:
        print_json(answer)
        return
    qualify(invocation, answer.degraded, answer.remark)
    if not answer.total_count:
        click.echo("Nothing comes to mind. Try other words, fewer filters, or --mode hybrid.")
        return
    if answer.verdict == "none" and answer.index and not given["explain"]:
        near = [Near(each.summary, names[each.id]) for each in answer.index]
        offer_nearest(open_screen(), near)
        remark(invocation, "all that fits, with scores: --explain")
        return
    _show(answer, names, budget)
    if answer.has_more:
        _point_on(invocation, answer, given["offset"], given["limit"])


def _show(answer: RecallAnswer, names: Mapping[str, str], max_tokens: int) -> None:
    screen = open_screen()
    if answer.verdict == "none" and answer.index:
        deny(screen, nearest=True)
    doubt(screen, answer)
    why = {each.id: _parts(each) for each in answer.explanations or ()}
    for number, memory in enumerate(answer.details):
        if number:
            screen.line("")
        _show_memory(screen, memory, names[memory.id], why.get(memory.id))
    given = {each.id for each in answer.details}
    listed = [each for each in answer.index if each.id not in given]
    if listed:
        if answer.details:
            screen.line("")
        _show_others(screen, listed, names, why)
    explain_verdict(screen, answer)
    if answer.index or answer.grounds is not None:
        screen.line("")
    shown = f"{len(given)} in full, {len(listed)} listed"
    tokens = f"{answer.tokens_used:,} of {count(max_tokens, 'token')}"
    screen.line(Part(f"{shown}, of {count(answer.total_count, 'memory')}; {tokens}", "dim"))


def _show_others(
    screen: Screen,
    listed: Sequence[RecalledSummary],
    names: Mapping[str, str],
    why: Mapping[str, list[str]],
) -> None:
    screen.table(
        (
            Column("ID", style="dim"),
            *(Column(name.upper(), right=True) for name in (_PARTS if why else ())),
            Column("TEXT", wide=True, style="name"),
        ),
        [(names[each.id], *why.get(each.id, ()), one_line(each.summary)) for each in listed],
    )


def _parts(why: RecallExplanation) -> list[str]:
    return [f"{getattr(why, name):.3f}" for name in _PARTS]


def _show_memory(screen: Screen, memory: RecalledMemory, name: str, why: list[str] | None) -> None:
    screen.line(
        Part(one_line(memory.title or ""), "name"),
        memory.kind,
        f"session {memory.session_id}" if memory.session_id else "",
        f"importance {memory.importance:.1f}",
        Part(screen.moment(memory.created_at), "dim"),
    )
    screen.passage(memory.content.strip("\n"))
    superseded = f"superseded by {memory.superseded_by}" if memory.superseded_by else ""
    untrusted = "untrusted: waits for review" if memory.untrusted_at else ""
    stale = STALE if memory.stale else ""
    valid = validity(memory.valid_from, memory.valid_until)
    marks = (Part(each, "bad") for each in (superseded, valid, untrusted, stale))
    screen.line(Part(name, "dim"), *marks, indent=1)
    if why is not None:
        parts = ", ".join(f"{name} {each}" for name, each in zip(_PARTS, why, strict=True))
        screen.line(Part(parts, "dim"), indent=1)


def _point_on(invocation: Invocation, answer: RecallAnswer, offset: int, limit: int) -> None:
    """Say how to get the memories that the answer leaves out."""
    listed = len(answer.index)
    if offset >= answer.total_count:
        return
    if not listed:
        remark(invocation, "nothing fits: allow more with --max-tokens N")
        return
    whole = listed == min(limit, answer.total_count - offset)
    also = "" if whole else ", or allow more with --max-tokens N"
    remark(invocation, f"more: byheart recall … --offset {offset + listed}{also}")
