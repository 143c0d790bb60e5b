"""Define `update`, `history`, `supersede`, `feedback` and `restore`, which change a memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from byheart.interfaces.cli.batches import warn_of_secrets
from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import field_flag, flag, name_list, together
from byheart.interfaces.cli.save import ABOUT, given_fields, read_content, read_file
from byheart.interfaces.cli.screen import Part, Screen, one_line, open_screen, print_json, warn
from byheart.interfaces.cli.store import open_store, whole_id
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import HistoryEntry, to_wire
from byheart.model.feedback import OUTCOMES
from byheart.model.fields import BY_NAME, UPDATE_FIELDS
from byheart.system import clock

_SHOWN_CHARS = 200

_fields = together(*(field_flag(name, ABOUT) for name in UPDATE_FIELDS if BY_NAME[name].flag))

who = flag("--who", metavar="NAME", default="manual", help="The author, for the history.")
reason = flag("--reason", metavar="TEXT", help="The reason, for the history.")


@click.command(
    "update",
    cls=Verb,
    examples=(
        'byheart update "$ID" "Anna prefers coffee by now."',
        'byheart update "$ID" --tags people,drinks --importance 8',
        'byheart update "$ID" --file report.md --expected-version 1',
        'byheart update "$ID" --clear ttl-days --clear title',
    ),
)
@click.argument("memory_id", metavar="ID")
@click.argument("text", nargs=-1)
@flag("--file", "-f", metavar="PATH", help="Read the new text from this file.")
@name_list("--clear", help="Clear these fields; without ttl-days, the memory never expires.")
@flag("--expected-version", type=int, metavar="N", help="Refuse the change if the version differs.")
@who
@_fields
@click.pass_obj
def update_command(
    invocation: Invocation,
    /,
    memory_id: str,
    text: tuple[str, ...],
    file: str | None,
    clear: list[str] | None,
    expected_version: int | None,
    who: str,
    **given: Any,
) -> None:
    """Change the given fields of a memory.

    TEXT replaces its text ("-" reads stdin). The old text stays in the history and is found by
    searches with --as-of. Summary, entities and importance are derived again unless given.
    """
    changed: dict[str, Any] = {name.replace("-", "_"): None for name in clear or ()}
    wanted = given_fields(given)
    for name in changed.keys() & wanted.keys():
        raise click.UsageError(f"--{name.replace('_', '-')} and --clear of it were given together")
    changed |= wanted
    if text and file:
        raise click.UsageError("a text and --file were given together: give one of them")
    if text:
        changed["content"] = read_content(invocation, text)
    elif file:
        changed["content"] = read_file(invocation, file)
    with open_embedding_store(invocation) as store:
        result = store.update(whole_id(store, memory_id), expected_version, who, **changed)
    warn_of_secrets(invocation, [result])
    if invocation.json:
        print_json(result)
        return
    done = "nothing to change in" if result.status == "unchanged" else "updated"
    version = Part(f"(version {result.version})", "dim")
    open_screen().line(Part("✓", "good"), done, Part(result.memory_id, "name"), version)


@click.command(
    "history",
    cls=Verb,
    examples=('byheart history "$ID"', 'byheart history "$ID" --json'),
)
@click.argument("memory_id", metavar="ID")
@click.pass_obj
def history_command(invocation: Invocation, memory_id: str) -> None:
    """Show all changes of a memory: who, when, from and to.

    To read an earlier text: byheart get ID@VERSION.
    """
    with open_store(invocation) as store:
        entries = store.history(whole_id(store, memory_id))
    if invocation.json:
        print_json(entries)
        return
    screen = open_screen()
    for entry in entries:
        _show(screen, entry)


def _show(screen: Screen, entry: HistoryEntry) -> None:
    screen.line(
        Part(f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}", "dim"),
        Part(entry.operation, "name"),
        f"by {entry.who}",
        Part(f"(version {entry.version})", "dim"),
        entry.reason or "",
    )
    for name, change in entry.changes.items():
        screen.line(Part(f"{name}:", "dim"), _brief(change), indent=1)


def _brief(change: Mapping[str, Any]) -> str:
    old, new = (_said(change[side]) for side in ("from", "to"))
    cut = (each if len(each) <= _SHOWN_CHARS else f"{each[:_SHOWN_CHARS]}…" for each in (old, new))
    return "  →  ".join(cut)


def _said(value: Any) -> str:
    if value in (None, []):
        return "nothing"
    wire = to_wire(value)
    return one_line(", ".join(map(str, wire)) if isinstance(wire, list) else str(wire))


@click.command(
    "supersede",
    cls=Verb,
    examples=('byheart supersede "$ID" "$NEW"', 'byheart supersede "$ID" --undo'),
)
@click.argument("memory_id", metavar="ID")
@click.argument("by", metavar="NEW", required=False)
@flag("--undo", is_flag=True, help="Make it valid again.")
@reason
@who
@click.pass_obj
def supersede_command(
    invocation: Invocation, memory_id: str, by: str | None, undo: bool, reason: str | None, who: str
) -> None:
    """Mark a memory as replaced by another.

    A superseded memory is still found, below all valid ones, and marked.
    """
    if bool(by) == undo:
        raise click.UsageError("give the memory that is valid now, or --undo")
    with open_store(invocation) as store:
        by = by and whole_id(store, by)
        memory = store.supersede(whole_id(store, memory_id), by, reason, who)
    if invocation.json:
        print_json(memory)
        return
    said = f"is superseded by {by}" if by else "is valid again"
    open_screen().line(Part("✓", "good"), Part(memory.memory_id, "name"), said)


@click.command(
    "feedback",
    cls=Verb,
    examples=(
        'byheart feedback "$ID" "where is the deploy key?" used',
        'byheart feedback "$ID" "which port?" wrong',
    ),
)
@click.argument("memory_id", metavar="ID")
@click.argument("query", metavar="QUERY")
@click.argument("outcome", metavar="OUTCOME", type=click.Choice(OUTCOMES))
@click.pass_obj
def feedback_command(invocation: Invocation, memory_id: str, query: str, outcome: str) -> None:
    """Say whether a memory found for a question was used, ignored or wrong.

    It moves the memory up or down for questions like QUERY, within fixed bounds, and counts less
    as time passes. byheart search --explain shows the factor.
    """
    with open_embedding_store(invocation) as store:
        result = store.feedback(whole_id(store, memory_id), query, outcome)
    if invocation.json:
        print_json(result)
        return
    open_screen().line(
        Part("✓", "good"), "noted:", Part(result.memory_id, "name"), f"was {outcome}"
    )


@click.command("restore", cls=Verb, examples=('byheart restore "$ID"', "byheart list --forgotten"))
@click.argument("memory_id", metavar="ID")
@who
@click.pass_obj
def restore_command(invocation: Invocation, memory_id: str, who: str) -> None:
    """Restore a forgotten memory.

    Memories erased with --hard cannot be restored.
    """
    with open_store(invocation) as store:
        memory = store.restore(whole_id(store, memory_id), who)
    if memory.expires_at is not None and memory.expires_at <= clock.now():
        ended = f"{memory.expires_at:%Y-%m-%d}"
        message = f"it expired on {ended}; to find it: byheart update {memory_id} --clear ttl-days"
        warn(invocation, message)
    if invocation.json:
        print_json(memory)
    elif sys.stdout.isatty():
        open_screen().line(Part("✓", "good"), "restored", Part(memory.memory_id, "name"))
    else:
        open_screen().line(memory.memory_id)
