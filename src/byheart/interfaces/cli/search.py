"""Define `search`, which shows hits as passages, sections or whole memories."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import click

from byheart.errors import InvalidInput
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
    Part,
    Screen,
    count,
    link_to,
    one_line,
    open_screen,
    print_json,
    qualify,
    remark,
    seen_from_here,
    validity,
)
from byheart.interfaces.cli.store import settings_of, shown_ids
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.interfaces.cli.verdict import Near, deny, doubt, explain_verdict, offer_nearest
from byheart.model import (
    FUSIONS,
    GRANULARITIES,
    ChunkHit,
    Explanation,
    Hit,
    MemoryHit,
    SearchAnswer,
    SectionHit,
)
from byheart.model.compat_names import other_flags
from byheart.model.workspaces import STALE
from byheart.settings import Settings


@click.command(
    "search",
    cls=Verb,
    examples=(
        'byheart search "what does Anna like to drink?"',
        "byheart search deploy key --mode fts --limit 3",
        "byheart search slow queries --granularity medium --kind report --full",
        "byheart search tea --session-id s1 --no-include-global --json",
        "byheart search --raw 'title:report AND (slow OR timeout*)'",
        "byheart search tea --explain",
    ),
)
@click.argument("query", nargs=-1)
@page(limit=10)
@search_mode(*other_flags("mode"))
@flag(
    *("--granularity", "-g"),
    type=click.Choice(GRANULARITIES),
    default="fine",
    show_default=True,
    help="Return passages, sections, or whole memories.",
)
@flag("--full", is_flag=True, help="Show the whole passage, section or memory.")
@flag("--explain", is_flag=True, help="Explain the rank of each hit.")
@flag("--raw", is_flag=True, help="Read QUERY as FTS5 syntax: phrases, AND, OR, NOT, prefix*.")
@flag(
    "--fusion",
    type=click.Choice(FUSIONS),
    default="evidence",
    show_default=True,
    help="How hybrid search combines its retrievers.",
)
@flag("--vector", metavar="JSON", help="The vector of QUERY, by the model of the store.")
@named_times()
@flag(
    *other_flags(None),
    type=float,
    metavar="0-1",
    help="Accepted for compatibility; has no effect.",
)
@filters
@click.pass_obj
def search_command(
    invocation: Invocation,
    /,
    query: tuple[str, ...],
    full: bool,
    vector: str | None,
    **given: Any,
) -> None:
    """Find the passages that answer a question, best first.

    QUERY is any text, joined by spaces; "-" reads it from stdin. With --granularity coarse it may
    be omitted: then all memories that match the filters are listed.
    """
    with open_embedding_store(invocation) as store:
        answer = store.search(read_query(query), vector=_read_vector(vector), **given)
        opposed = [name for each in answer.conflicts for name in (each.memory_id, each.other_id)]
        names = shown_ids(store, [*(hit.memory_id for hit in answer.results), *opposed])
    if invocation.json:
        print_json(answer)
        return
    qualify(invocation, answer.degraded, answer.remark)
    screen = open_screen()
    denied = answer.verdict == "none" and bool(answer.results)
    if denied and not given["explain"]:
        near = filter(_is_relevant, answer.results)
        offer_nearest(screen, [_near(hit, names[hit.memory_id]) for hit in near])
        return
    if denied:
        deny(screen, nearest=True)
    doubt(screen, answer, given["fusion"])
    for place, hit in enumerate(answer.results):
        if place or denied:
            screen.line("")
        _show_hit(screen, given["offset"] + place + 1, hit, names[hit.memory_id], full)
    explain_verdict(screen, answer)
    _show_conflicts(invocation, answer, names, given["offset"])
    _close(invocation, answer, given)


def _read_vector(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"--vector is not JSON: {error}", "give a list of numbers, as in: [0.12, -0.3]"
        ) from error


def _near(hit: Hit, name: str) -> Near:
    return Near(hit.snippet, name)


def _show_conflicts(
    invocation: Invocation, answer: SearchAnswer, names: Mapping[str, str], offset: int
) -> None:
    """Name hits that contradict each other on stderr; for a single pair, how to settle it."""
    ranks: dict[str, int] = {}
    for rank, hit in enumerate(answer.results, offset + 1):
        ranks.setdefault(hit.memory_id, rank)
    for each in answer.conflicts:
        newer, older = ranks[each.memory_id], ranks[each.other_id]
        differing = f"hits {newer} and {older} differ in a {each.differs}"
        remark(invocation, f"{differing}; hit {newer} is newer")
    if len(answer.conflicts) == 1:
        [pair] = answer.conflicts
        old, new = names[pair.other_id], names[pair.memory_id]
        replacing = f"byheart supersede {old} {new}"
        remark(invocation, f"if it replaces hit {ranks[pair.other_id]}: {replacing}")


def _is_relevant(hit: Hit) -> bool:
    """Return whether any retriever found the hit at all near."""
    return hit.score > 0 and (hit.similarity is None or hit.similarity > 0)


def _show_hit(screen: Screen, rank: int, hit: Hit, name: str, full: bool) -> None:
    header, *more = _names(hit)
    screen.line(
        Part(f"{rank}.", "number"),
        Part(header, "name"),
        *more,
        hit.kind,
        f"session {hit.session_id}" if hit.session_id else "",
        Part(screen.moment(hit.created_at), "dim"),
        Part(_score(hit), "dim"),
    )
    if full:
        screen.passage(_text(hit).strip("\n"))
    else:
        screen.passage(hit.snippet, hit.snippet_marks)
    if hit.path:
        screen.line(Part(_place(hit, hit.path), "dim", link_to(hit.path)), indent=1)
    screen.line(Part(_address(hit, name), "dim"), indent=1)
    if hit.stale:
        screen.line(Part(STALE, "bad"), indent=1)
    if hit.damaged:
        screen.line(Part("damaged: this is not the text that was saved", "bad"), indent=1)
    if hit.untrusted_at:
        screen.line(Part("untrusted: waits for review", "bad"), indent=1)
    if valid := validity(hit.valid_from, hit.valid_until):
        screen.line(Part(valid, "bad"), indent=1)
    if hit.superseded_by:
        screen.line(Part(f"superseded by {hit.superseded_by}", "bad"), indent=1)
    if hit.replaced_at:
        until = screen.moment(hit.replaced_at)
        screen.line(Part(f"version {hit.version}, the text until {until}", "dim"), indent=1)
    if hit.explanation:
        _explain(screen, hit.explanation)


def _names(hit: Hit) -> tuple[str, str]:
    """Return the name of a hit, and the place of the passage in it."""
    place = "" if isinstance(hit, MemoryHit) else hit.header_path
    if hit.title:
        # A document's title is often its first heading as well.
        return hit.title, place if place != hit.title else ""
    if place:
        return place, ""
    # A short text equals its summary, so it is not shown twice.
    summary = one_line(hit.summary)
    return ("" if one_line(hit.snippet).startswith(summary.rstrip("….")) else summary), ""


def _score(hit: Hit) -> str:
    """Format the score of an explained hit; without the explanation it would mean nothing."""
    if hit.explanation is None:
        return ""
    return f"score {hit.score:.4f}"


def _text(hit: Hit) -> str:
    if isinstance(hit, ChunkHit):
        return hit.chunk_content
    return hit.section_content if isinstance(hit, SectionHit) else hit.content


def _address(hit: Hit, name: str) -> str:
    """Return the id to copy, the size of the hit and, if explained, its similarity to the query."""
    if isinstance(hit, MemoryHit) and hit.source_type == "scoped":
        return f"{name}  {count(hit.total_chunks, 'chunk')}"
    explained = hit.explanation is not None and hit.similarity is not None
    near = f"  similarity {hit.similarity:.2f}" if explained else ""
    if isinstance(hit, ChunkHit):
        return f"{hit.chunk_id.replace(hit.memory_id, name)}  {_lines(hit)}{near}"
    if isinstance(hit, SectionHit):
        matched = f"{hit.matched_chunks} of {count(hit.chunks_in_section, 'chunk')} matched"
        return f"{name}  {_lines(hit)}  {matched}{near}"
    matched = f"{hit.matching_chunks} of {count(hit.total_chunks, 'chunk')} matched"
    return f"{name}  {matched}{near}"


def _place(hit: Hit, path: str) -> str:
    """Format the file and line, as `byheart get` and editors accept them."""
    shown = seen_from_here(path)
    return shown if isinstance(hit, MemoryHit) else f"{shown}:{hit.start_line}"


def _lines(hit: ChunkHit | SectionHit) -> str:
    if hit.start_line == hit.end_line:
        return f"line {hit.start_line}"
    return f"lines {hit.start_line}-{hit.end_line}"


def _explain(screen: Screen, explanation: Explanation) -> None:
    for name, found in (("fts", explanation.fts), ("vector", explanation.vector)):
        if found is None:
            screen.line(Part(f"{name:6}  did not find it", "dim"), indent=1)
            continue
        terms = ", ".join(f"{term} {weight:.3f}" for term, weight in found.terms.items())
        screen.line(
            Part(
                f"{name:6}  {_rank(found.rank)}  score {found.score:.4f}  "
                f"adds {found.contribution:.6f}" + (f"  ({terms})" if terms else ""),
                "dim",
            ),
            indent=1,
        )
    if explanation.neighbours:
        beside = f"turns around it add {explanation.neighbours:.6f}"
        screen.line(Part(beside, "dim"), indent=1)
    if explanation.form != 1:
        factor = f"the form of the turn multiplies by {explanation.form:.3f}"
        screen.line(Part(factor, "dim"), indent=1)
    if explanation.file != 1:
        factor = f"a test or generated file: multiplies by {explanation.file:.3f}"
        screen.line(Part(factor, "dim"), indent=1)
    if explanation.time_alone:
        added = f"the time, which is all that is asked for, adds {explanation.time_alone:.6f}"
        screen.line(Part(added, "dim"), indent=1)
    if explanation.time != 1:
        factor = f"the time in the question multiplies by {explanation.time:.3f}"
        screen.line(Part(factor, "dim"), indent=1)
    if explanation.feedback != 1:
        factor = f"feedback multiplies by {explanation.feedback:.3f}"
        screen.line(Part(factor, "dim"), indent=1)
    if explanation.reranker is not None:
        again = explanation.reranker
        moved = f"reranker  {_rank(again.rank_before)} before  score {again.score:.4f}"
        screen.line(Part(f"{moved}  ({again.elapsed_ms:.0f} ms for all)", "dim"), indent=1)
    final = f"{explanation.fusion}  final score {explanation.final_score:.6f}"
    screen.line(Part(final, "dim"), indent=1)


def _rank(rank: int | None) -> str:
    return "not among its first" if rank is None else f"rank {rank + 1}"


def _nothing_saved(invocation: Invocation) -> str:
    """Say that the space is empty; name it if it is not the usual one, since it may be mistyped."""
    usual, space = Settings().space, settings_of(invocation).space
    if space == usual:
        return "Nothing found: there is nothing in this space yet. Try: byheart save TEXT"
    asked = f" --space {shlex.quote(space)}" if invocation.space else ""
    return (
        f"Nothing found: there is nothing in the space {space} yet. "
        f"Try: byheart{asked} save TEXT, or another space: byheart --space NAME search …"
    )


def _close(invocation: Invocation, answer: SearchAnswer, given: Mapping[str, Any]) -> None:
    """Say if an answer is empty, or if there are more hits."""
    if answer.has_more:
        following = given["offset"] + answer.total_results
        remark(invocation, f"more: byheart search … --offset {following}")
    if answer.results:
        return
    held = answer.index
    if not held.memories:
        click.echo(_nothing_saved(invocation))
        return
    if given["offset"] and answer.confidence > 0:
        click.echo(f"There are no results after the first {given['offset']:,}.")
        return
    where = f"in {count(held.memories, 'memory')} ({count(held.chunks, 'chunk')})"
    other = ", or --mode hybrid" if given["mode"] != "hybrid" else ""
    click.echo(f"Nothing found {where}. Try other words or fewer filters{other}.")
