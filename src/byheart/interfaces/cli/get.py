"""Define `get` and `expand`, which show the text of an id."""

from __future__ import annotations

import os
import sys

import click

from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import (
    Part,
    count,
    open_screen,
    print_json,
    print_text,
    size,
)
from byheart.interfaces.cli.store import open_store, whole_id
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import ChunkWindow
from byheart.startup.late_patterns import late_pattern

# The end of PATH:LINE, also as editors write it: PATH:LINE:COLUMN.
_LINE = late_pattern(r"[^#]:\d+(?:[-:]\d+)?$")


@click.command(
    "get",
    cls=Verb,
    examples=(
        'byheart get "$ID"',
        'byheart get "$ID" --json',
        "byheart get src/app.py:42",
        'byheart get "$ID" --output copy.md --no-include-metadata --overwrite',
    ),
)
@click.argument("memory_id", metavar="ID|PATH[:LINE]")
@flag("--output", "-o", metavar="FILE", help="Write the text to this file; - is stdout.")
@flag("--overwrite", is_flag=True, help="With --output: overwrite an existing file.")
@flag(
    "--include-metadata/--no-include-metadata",
    default=True,
    help="With --output: add front matter (the default).",
)
@click.pass_obj
def get_command(
    invocation: Invocation,
    memory_id: str,
    output: str | None,
    overwrite: bool,
    include_metadata: bool,
) -> None:
    """Print a memory's text exactly as it was saved.

    ID is the id of a memory or chunk, or its first letters. PATH is the path of an indexed file;
    with LINE, only the passage around that line is printed.
    """
    with open_store(invocation) as store:
        memory_id = whole_id(store, memory_id)
        if output not in (None, "-"):
            written = store.write_to_file(memory_id, output, include_metadata, overwrite)
            if invocation.json:
                print_json(written)
            else:
                place = f"{written.file_path} ({size(written.file_size_bytes)})"
                open_screen().line(Part("wrote", "good"), place)
            return
        if _LINE.search(memory_id) and not os.path.exists(memory_id):  # noqa: PTH110 - never raises
            _show_window(invocation, store.expand(memory_id, around=0))
            return
        memory = store.get(memory_id)
    if invocation.json:
        print_json(memory)
    else:
        print_text(memory.content)


@click.command(
    "expand",
    cls=Verb,
    examples=('byheart expand "$ID#0"', 'byheart expand "$ID#0" --around 1 --json'),
)
@click.argument("chunk_id")
@flag(
    "--around",
    type=int,
    default=2,
    show_default=True,
    metavar="N",
    help="The number of chunks before and after it.",
)
@click.pass_obj
def expand_command(invocation: Invocation, chunk_id: str, around: int) -> None:
    """Print a chunk and its neighbours.

    CHUNK_ID is a memory's id, # and a number, as search shows it; or PATH:LINE of a file.
    """
    with open_store(invocation) as store:
        window = store.expand(whole_id(store, chunk_id), around)
    _show_window(invocation, window)


def _show_window(invocation: Invocation, window: ChunkWindow) -> None:
    if invocation.json:
        print_json(window)
    elif sys.stdout.isatty():
        _show(window)
    else:
        print_text(window.expanded_content)


def _show(window: ChunkWindow) -> None:
    screen = open_screen()
    for chunk in window.chunks:
        target = chunk.index == window.target_chunk_index
        screen.line(
            Part(f"#{chunk.index}", "number" if target else "dim"),
            Part(chunk.header_path, "name" if target else "dim"),
            Part(f"lines {chunk.start_line}-{chunk.end_line}", "dim"),
        )
        screen.passage(chunk.content.strip("\n"))
    screen.line(Part(f"{window.memory_id}  {count(window.chunks_returned, 'chunk')}", "dim"))
