"""Define `save`, which saves one text, files, or a stream of texts."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click

from byheart.errors import ByheartError, InvalidInput
from byheart.interfaces.cli.batches import (
    Watched,
    import_lines,
    warn_of_missing_vectors,
    warn_of_secrets,
)
from byheart.interfaces.cli.hints import for_terminal
from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import field_flag, flag, together
from byheart.interfaces.cli.screen import Part, count, one_line, open_screen, print_json, remark
from byheart.interfaces.cli.store import overrides, shown_ids
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import SaveResult
from byheart.model.fields import BY_NAME, SAVE_FIELDS
from byheart.settings import load_settings
from byheart.store import MemoryStore
from byheart.system.file_opening import open_to_read
from byheart.transfer.decoding import decode

ABOUT = "About the text"
# The number of contradicted or similar memories that a terminal shows.
_MOST_SHOWN = 3

fields = together(*(field_flag(name, ABOUT) for name in SAVE_FIELDS if BY_NAME[name].flag))


@click.command(
    "save",
    cls=Verb,
    examples=(
        'byheart save "Anna prefers tea to coffee." --kind fact --tags people,drinks',
        "byheart save --file report.md --session-id s1 --importance 8",
        "git log -1 | byheart save --kind note --title 'last commit'",
        "byheart save --jsonl facts.jsonl --tags imported",
    ),
)
@click.argument("text", nargs=-1)
@flag(
    "--file", "-f", "files", multiple=True, metavar="PATH", help="Save this file; can be repeated."
)
@flag("--jsonl", metavar="PATH", help="Save each line of a JSONL file (- is stdin).")
@fields
@click.pass_obj
def save_command(
    invocation: Invocation,
    /,
    text: tuple[str, ...],
    files: tuple[str, ...],
    jsonl: str | None,
    **given: Any,
) -> None:
    """Save a text: a fact, a note, a report, a file.

    TEXT is joined by spaces; "-", or no TEXT in a pipe, reads stdin. In a pipe only the id is
    printed: ID=$(byheart save "…"). With --jsonl, each line is an object with content and any of
    the fields below; the flags are the defaults for every line.
    """
    if sum(map(bool, (text, files, jsonl))) > 1:
        raise click.UsageError("text, --file and --jsonl were given together: give one of them")
    about = given_fields(given)
    if jsonl:
        import_lines(invocation, jsonl, about)
    elif files:
        _save_files(invocation, files, about)
    else:
        content = read_content(invocation, text)
        watched = Watched(invocation, at_once=False)
        with open_embedding_store(invocation, create=True) as store, watched:
            result = store.save(content, **about, on_progress=watched.show)
            names = _names(store, [result])
        if result.status == "unchanged" and about:
            change = f"byheart update {result.memory_id}"
            remark(invocation, f"it is there already; what was given besides is not: {change}")
        _show(invocation, [result], result, names)


def given_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were given."""
    about = {name: value for name, value in given.items() if value is not None}
    if "metadata" in about:
        try:
            about["metadata"] = json.loads(about["metadata"])
        except ValueError as error:
            raise InvalidInput(
                f"--metadata is not JSON: {error}", """give an object, as in: '{"key": "value"}'"""
            ) from error
    return about


def read_content(invocation: Invocation, text: Sequence[str]) -> str:
    """Read the text from the arguments, or from stdin."""
    if text and tuple(text) != ("-",):
        return " ".join(text)
    if sys.stdin.isatty() and not text:
        raise click.UsageError("there is nothing to save: give a text, --file, or a pipe")
    return _read(invocation, sys.stdin.buffer, "stdin")


def _names(store: MemoryStore, results: Sequence[SaveResult]) -> Mapping[str, str]:
    """Shorten the ids of saved memories and of those that resemble or contradict them."""
    ids = [result.memory_id for result in results]
    ids += [each.memory_id for result in results for each in result.conflicts]
    ids += [each.memory_id for result in results for each in result.similar]
    return shown_ids(store, ids)


def _show(
    invocation: Invocation,
    results: Sequence[SaveResult],
    answer: object,
    names: Mapping[str, str],
) -> None:
    warn_of_missing_vectors(invocation, results)
    warn_of_secrets(invocation, results)
    if invocation.json:
        print_json(answer)
        return
    screen, terminal = open_screen(), sys.stdout.isatty()
    for result in results:
        if terminal:
            screen.line(
                Part("✓", "good"),
                "already there" if result.status == "unchanged" else "saved",
                Part(result.memory_id, "name"),
                Part(f"({count(result.chunks, 'chunk')})", "dim"),
            )
        else:
            screen.line(result.memory_id)
        _show_similar(invocation, result, names)


def _show_similar(invocation: Invocation, result: SaveResult, names: Mapping[str, str]) -> None:
    """Name near duplicates and suggest what to do, on stderr; stdout is for the id alone.

    Only a single memory is offered for replacement: of several, most are about something else.
    """
    opposed = [each.memory_id for each in result.conflicts]
    alike = [each for each in result.similar if each.memory_id not in opposed]
    remarks = [
        f"contradicts {names[each.memory_id]}: {one_line(each.said_before)}"
        for each in result.conflicts
    ]
    for each in alike:
        name, summary = names[each.memory_id], one_line(each.summary)
        remarks.append(f"almost the same ({each.similarity:.2f}): {name}  {summary}")
    for told in remarks[:_MOST_SHOWN]:
        remark(invocation, told)
    if len(remarks) > _MOST_SHOWN:
        remark(invocation, f"and {len(remarks) - _MOST_SHOWN} more")
    named = opposed or [each.memory_id for each in alike]
    new = names[result.memory_id]
    if len(named) == 1:
        old = names[named[0]]
        remark(invocation, f"if the new one replaces it: byheart supersede {old} {new}")
    if named:
        remark(invocation, f"if it is not needed: byheart forget {new}")


# --- Files ------------------------------------------------------------------------------------


def _save_files(invocation: Invocation, files: Sequence[str], about: Mapping[str, Any]) -> None:
    if len(files) > 1:
        for name in {"title", "summary", "path"} & about.keys():
            raise click.UsageError(
                f"--{name} applies to one text, but {len(files)} files are given"
            )
    # Read all files first, so that an unreadable file leaves nothing half saved.
    items = [
        {"title": Path(name).name, "path": Path(name).absolute().as_posix(), **about}
        | {"content": read_file(invocation, name)}
        for name in files
    ]
    with open_embedding_store(invocation, create=True) as store, Watched(invocation) as watched:
        try:
            results = store.save_many(items, on_progress=watched.show)
            names = _names(store, results)
        except ByheartError as error:
            raise _renamed(error, files) from error
    _show(invocation, results, results[0] if len(files) == 1 else results, names)


def read_file(invocation: Invocation, name: str) -> str:
    """Read a file as UTF-8 text."""
    try:
        with open_to_read(name) as file:
            return _read(invocation, file, name)
    except IsADirectoryError as error:
        raise InvalidInput(f"{name} is a folder", f"name its files: --file {name}/…") from error
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}", "check the path") from error


def _read(invocation: Invocation, file: BinaryIO, name: str) -> str:
    """Read a text that can be saved; stop at the size limit, since a stream may never end."""
    longest = load_settings(overrides(invocation)).max_content_bytes
    data = file.read(longest + 1)
    if len(data) > longest:
        raise InvalidInput(
            f"{name} has more than {longest:,} bytes, which is the most that is allowed",
            "save it in parts, or raise max_content_bytes",
        )
    return decode(data, name)


def _renamed(error: ByheartError, names: Sequence[str]) -> ByheartError:
    """Replace an item's number in an error by the user's name for it."""
    number, _, message = for_terminal(error.message).removeprefix("item ").partition(": ")
    if number.isdigit() and int(number) < len(names):
        error.message = f"{names[int(number)]}: {message}"
    return error
