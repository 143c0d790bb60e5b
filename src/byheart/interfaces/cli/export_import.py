"""Define `export`, `import` and `backup`, which copy data out of and into the store."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import byheart
from byheart.errors import InvalidInput
from byheart.interfaces.cli.hints import for_terminal
from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import flag, name_list
from byheart.interfaces.cli.progress import Bar
from byheart.interfaces.cli.screen import (
    count,
    open_screen,
    print_json,
    remark,
    size,
    warn,
)
from byheart.interfaces.cli.store import open_store, settings_of, whole_id
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Exported, Imported, TransferProgress
from byheart.model.checks import check_path
from byheart.startup.late_patterns import late_pattern

if TYPE_CHECKING:  # keeps numpy out of the import of the help
    from byheart.store import MemoryStore

FORMATS = ("jsonl", "markdown")
# Formats of other programs; written out here, so that help does not load their readers.
FOREIGN = (
    *("claude-code", "codex", "chatgpt", "claude"),
    *("mem0", "mcp-memory", "letta", "vector-memory", "claude-mem", "mcp-memory-service"),
    *("memory-mcp", "silentclaw", "chroma", "basic-memory", "obsidian"),
)
_SHOWN_SKIPPED, _SHOWN_REMARKS = 20, 3
# Omitted items with a plural; other words of other programs stay unchanged.
_COUNTABLE = late_pattern(
    r"\b(?:attachment|branch|document|file|image|line|message|note|observation|output|part|record"
    r"|repetition|sidechain)(?=$| of | without )"
)

overwrite = flag("--overwrite", is_flag=True, help="Overwrite existing files.")


@click.command(
    "export",
    cls=Verb,
    examples=(
        "byheart export memories.jsonl",
        "byheart export - --vectors | gzip > memories.jsonl.gz",
        "byheart export vault --format markdown",
    ),
)
@click.argument("path_or_file", metavar="[PATH|-]", required=False)
@flag("--vectors", is_flag=True, help="Include vectors, so that an import need not embed again.")
@flag(
    "--format",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="A lossless JSONL file, or a folder of Markdown files.",
)
@flag("--all-spaces", is_flag=True, help="Export every space, not only this one.")
@name_list("--memory-id", help="Only these memories, by their ids.")
@overwrite
@click.pass_obj
def export_command(
    invocation: Invocation,
    /,
    path_or_file: str | None,
    memory_id: Sequence[str] | None,
    **given: Any,
) -> None:
    """Write memories to a JSONL file, or to a folder of Markdown.

    A JSONL export has everything: earlier texts, history, forgotten memories. Without PATH, or with
    "-", it goes to stdout. The Markdown folder has one file per memory, with front matter. Obsidian
    can open it, and byheart import reads changes to its files back.
    """
    to_stdout = path_or_file in (None, "-")
    if to_stdout and (invocation.json or given["format"] != "jsonl"):
        raise click.UsageError("name a PATH: stdout is taken by what is exported")
    if path_or_file is None and sys.stdout.isatty():
        raise click.UsageError("name a PATH, or write to the terminal with: byheart export -")
    with open_store(invocation) as store, Bar("exporting") as bar:

        def show(progress: TransferProgress) -> None:
            bar.show(progress.done, progress.total, count(progress.memories, "memory"))

        target: Any = sys.stdout.buffer if to_stdout else path_or_file
        ids = None if memory_id is None else [whole_id(store, each) for each in memory_id]
        exported = store.export(target, on_progress=show, memory_id=ids, **given)
    if invocation.json:
        print_json(exported)
    elif not to_stdout:
        open_screen().line(f"{_describe(exported)} to {exported.path}")
    if exported.damaged and not invocation.json:
        remark(invocation, f"damaged, so not to be imported again: {', '.join(exported.damaged)}")


def _describe(exported: Exported) -> str:
    vectors = ", with vectors" if exported.vectors else ""
    return f"exported {count(exported.memories, 'memory')}{vectors}"


@click.command(
    "import",
    cls=Verb,
    examples=(
        "byheart import facts.jsonl",
        "byheart export - | byheart --db other.db import -",
        "byheart import facts.jsonl --on-error skip --json",
        "byheart import ~/.claude/projects --dry-run",
        "byheart import chatgpt-export.zip",
    ),
)
@click.argument("path_or_file", metavar="PATH|-")
@flag(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="Stop at items that cannot be read, or skip them.",
)
@flag("--force", is_flag=True, help="Also import erased texts, and overwrite later changes.")
@flag(
    "--format",
    type=click.Choice((*FORMATS, *FOREIGN)),
    help="The format; by default detected from the content.",
)
@flag("--embed/--no-embed", default=True, help="Compute missing vectors at once (the default).")
@flag("--dry-run", is_flag=True, help="Count what would be imported, and write nothing.")
@click.pass_obj
def import_command(invocation: Invocation, /, path_or_file: str, **given: Any) -> None:
    """Import an export, notes, or the memories of other programs.

    PATH is a file or a folder: an export of Byheart, JSONL with the fields of save, Markdown,
    transcripts of Claude Code and Codex, exports of ChatGPT and Claude (the archive as it is),
    memories of mem0 and of the MCP memory server, vaults of basic-memory and Obsidian. A folder may
    have several formats. Parts that are not imported are counted.

    Existing memories stay unchanged, so an interrupted import continues when it is run again.
    Memories keep their ids and spaces. An edited Markdown file of byheart export updates its
    memory; any other Markdown file becomes a new note.
    """
    if path_or_file != "-" and not check_path("path", path_or_file).exists():
        # Checked before a store is created for it.
        raise InvalidInput(f"{path_or_file} cannot be read: it does not exist", "check the path")
    with _open(invocation, given) as store, Bar("importing") as bar:

        def show(progress: TransferProgress) -> None:
            note = count(progress.memories, "memory")
            if progress.embedded:
                note += f", {progress.embedded:,} of {progress.total:,} chunks embedded"
            bar.show(progress.done, progress.total, note)

        source: Any = sys.stdin.buffer if path_or_file == "-" else path_or_file
        try:
            imported = store.import_(source, on_progress=show, **given)
        except KeyboardInterrupt:
            bar.close()
            remark(invocation, "\ninterrupted: run the same command again to go on")
            raise
    if invocation.json:
        print_json(imported)
        return
    _show(invocation, imported)


@contextmanager
def _open(invocation: Invocation, given: Mapping[str, Any]) -> Iterator[MemoryStore]:
    from byheart.opening import store_exists  # imports numpy, which the help does not need

    settings = settings_of(invocation)
    if given["dry_run"] and not store_exists(settings):
        # A dry run writes nothing, not even an empty store.
        with tempfile.TemporaryDirectory() as folder:
            nowhere = replace(settings, db_path=str(Path(folder) / "memory.db"))
            with byheart.open(settings=nowhere) as store:
                yield store
    elif given["embed"] and not given["dry_run"]:
        with open_embedding_store(invocation, create=True) as store:
            yield store
    else:
        with byheart.open(settings=settings) as store:
            yield store


def _counted(number: int, what: str) -> str:
    """Format a number with its noun: `2 other files`; `thinking` has no plural."""
    many = _COUNTABLE.sub(lambda found: f"{found[0]}{'es' if found[0] == 'branch' else 's'}", what)
    return f"{number:,} {what if number == 1 else many}"


def _show(invocation: Invocation, imported: Imported) -> None:
    done = "would import" if imported.dry_run else "imported"
    parts = [f"{done} {count(imported.imported, 'memory')}"]
    if imported.turns or imported.memories:
        told = [count(imported.turns, "turn")] * bool(imported.turns)
        told += [f"of {count(imported.sessions, 'session')}"] * bool(imported.turns)
        told += [f"{'and ' * bool(told)}{count(imported.memories, 'memory')}"] * bool(
            imported.memories
        )
        formats = ", ".join(imported.files)
        parts = [f"{formats}: {' '.join(told)}; {done} {imported.imported:,}"]
    if imported.updated:
        parts.append(f"{imported.updated:,} changed")
    if imported.unchanged:
        parts.append(f"{imported.unchanged:,} there already")
    if imported.refused:
        parts.append(f"{imported.refused:,} refused: forgotten for good (--force takes them in)")
    if imported.skipped:
        parts.append(f"{len(imported.skipped):,} skipped")
    open_screen().line(", ".join(parts))
    if imported.redacted:
        secrets = count(imported.redacted, "secret")
        remark(invocation, f"{secrets} taken out")
    if imported.shortened:
        remark(invocation, f"{count(imported.shortened, 'long output')} kept in part")
    if imported.left_out:
        listed = (_counted(number, what) for what, number in sorted(imported.left_out.items()))
        remark(invocation, f"left out: {', '.join(listed)}")
    for what in dict.fromkeys(each.what for each in imported.remarks):
        reasons = {each.place: each.reason for each in imported.remarks if each.what == what}
        told = [f"{place} ({reason})" for place, reason in reasons.items()][:_SHOWN_REMARKS]
        told += ["… (see --json)"] * (len(reasons) > _SHOWN_REMARKS)
        warn(invocation, f"{what} in {count(len(reasons), 'note')}: {', '.join(told)}")
    for each in imported.skipped[:_SHOWN_SKIPPED]:
        warn(invocation, f"{each.place}: {for_terminal(each.reason)}")
    if len(imported.skipped) > _SHOWN_SKIPPED:
        warn(invocation, f"and {len(imported.skipped) - _SHOWN_SKIPPED:,} more: see --json")
    if imported.pending_vectors:
        because = f" ({for_terminal(imported.degraded)})" if imported.degraded else ""
        waiting = count(imported.pending_vectors, "chunk")
        warn(
            invocation,
            f"{waiting} can be found by keyword only, until byheart doctor --fix makes the "
            f"vectors{because}",
        )


@click.command(
    "backup",
    cls=Verb,
    examples=("byheart backup memory-backup.db", "byheart backup memory-backup.db --overwrite"),
)
@click.argument("path", metavar="PATH")
@overwrite
@click.pass_obj
def backup_command(invocation: Invocation, path: str, overwrite: bool) -> None:
    """Copy the whole store to one file, even while it is in use.

    The copy is a complete store: open it with --db PATH, or put it in the store's place. A store on
    PostgreSQL is exported: all spaces as JSONL with vectors, for import. API keys, workspaces and
    usage counts are not in it; pg_dump copies everything.
    """
    with open_store(invocation) as store:
        backup = store.admin.backup(path, overwrite=overwrite)
    if invocation.json:
        print_json(backup)
    else:
        how = "copied" if backup.kind == "store" else "exported all memories"
        open_screen().line(f"{how} to {backup.path} ({size(backup.size_bytes)})")
