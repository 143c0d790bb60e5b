"""Export, import and copy a store."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from byheart.conversation.turns import check_turn
from byheart.embedding import stored_vectors
from byheart.errors import InvalidInput, NotFound
from byheart.model import Backup, Exported, Imported, TransferProgress
from byheart.model import checks as check
from byheart.startup.dataclass_types import dataclass
from byheart.verbs.engine import Engine

if TYPE_CHECKING:
    from byheart.transfer.importing import Importer, OnError

File = str | Path | BinaryIO
Show = Callable[[TransferProgress], None] | None

# The functions import the exporter and the importer, because saving and searching need neither.


@dataclass(frozen=True, slots=True)
class Part:
    """Name the part of a store that is exported: a space, all of them, or some memories."""

    space: str | None = None
    all_spaces: bool = False
    memory_id: object = None


def export(
    engine: Engine,
    path_or_file: File,
    part: Part,
    vectors: bool,
    format: str,
    overwrite: bool,
    on_progress: Show,
) -> Exported:
    """Write a part of the store to a file or folder."""
    from byheart.transfer import exporting

    check.check_callback("on_progress", on_progress)
    _refuse_itself(engine, path_or_file)
    space = None if check.check_bool("all_spaces", part.all_spaces) else engine.space(part.space)
    if space is None and not (part.space is None and part.memory_id is None):
        raise InvalidInput(
            "all_spaces and space (or memory_id) were both given",
            "leave out all_spaces, or leave out the others",
        )
    ids = None
    if part.memory_id is not None:
        ids = list(dict.fromkeys(check.check_ids("memory_id", part.memory_id)))
    check.check_bool("vectors", vectors)
    with engine.storage.reading(space) as reader:
        dump = reader.dump(space, vectors=vectors, memory_ids=ids)
        if ids is not None and dump.memory_count < len(ids):
            raise NotFound(
                f"the space {space!r} has only {dump.memory_count} of the {len(ids)} memories "
                "named by memory_id",
                "check the ids: a missing memory was erased, or is in another space",
            )
        return exporting.export(
            dump,
            path_or_file,
            format=check.check_choice("format", format, exporting.FORMATS),
            vectors=vectors,
            all_spaces=part.all_spaces,
            overwrite=check.check_bool("overwrite", overwrite),
            on_progress=on_progress,
        )


def import_file(
    engine: Engine,
    path_or_file: File,
    on_error: str,
    force: bool,
    format: str | None,
    embed: bool,
    dry_run: bool,
    on_progress: Show,
) -> Imported:
    """Take in a file or folder, then make the vectors."""
    from byheart.transfer.importing import IMPORT_FORMATS, ON_ERROR

    check.check_callback("on_progress", on_progress)
    _refuse_itself(engine, path_or_file)
    importer = _importer(
        engine,
        force=check.check_bool("force", force),
        on_error=check.check_choice("on_error", on_error, ON_ERROR),
        on_progress=on_progress,
        dry_run=check.check_bool("dry_run", dry_run),
    )
    chosen = None if format is None else check.check_choice("format", format, IMPORT_FORMATS)
    check.check_bool("embed", embed)
    with engine.saver.long_run():
        result = importer.run(path_or_file, chosen)
    if dry_run:
        return result
    _observe(engine, result)

    def show(made: int, waiting: int) -> None:
        if on_progress is not None:
            on_progress(TransferProgress(importer.progress.memories, made, waiting, made))

    reason = engine.embed_waiting(show) if embed else None
    return replace(
        result, pending_vectors=stored_vectors.count_waiting(engine.storage), degraded=reason
    )


def follow(engine: Engine, path: str | Path, format: str) -> Imported:
    """Import the lines that were added to a transcript."""
    from byheart.transfer.importing import GROWING

    chosen = check.check_choice("format", format, GROWING)
    _refuse_itself(engine, path)
    importer = _importer(engine, on_error="skip")
    result = importer.go_on(check.check_path("path", path).absolute(), chosen)
    _observe(engine, result)
    return replace(result, pending_vectors=stored_vectors.count_waiting(engine.storage))


def _importer(
    engine: Engine,
    *,
    on_error: OnError,
    force: bool = False,
    on_progress: Show = None,
    dry_run: bool = False,
) -> Importer:
    from byheart.transfer.importing import Importer

    return Importer(
        engine.storage,
        engine.saver,
        engine.changer.update,
        engine.settings,
        check_turn=check_turn,
        keep_turns=engine.recorder.keep,
        force=force,
        on_error=on_error,
        on_progress=on_progress,
        dry_run=dry_run,
    )


def _observe(engine: Engine, imported: Imported) -> None:
    space = engine.settings.space
    engine.observer.saved(space, "created", imported.imported)
    engine.observer.saved(space, "unchanged", imported.unchanged)
    engine.observer.saved(space, "updated", imported.updated)


def back_up(engine: Engine, path: str | Path, overwrite: bool) -> Backup:
    """Copy the whole store to one file."""
    from byheart.transfer.atomic_files import refuse_existing

    target = check.check_path("path", path).resolve()
    check.check_text("path", str(target), longest=1 << 16)  # SQLite names files in UTF-8
    refuse_existing(target, check.check_bool("overwrite", overwrite))
    _refuse_itself(engine, target)
    if engine.storage.back_up(target):
        return Backup(str(target), target.stat().st_size)
    # A database server has no file to copy: write everything that an import takes in again.
    export(engine, target, Part(all_spaces=True), True, "jsonl", overwrite, None)
    return Backup(str(target), target.stat().st_size, "export")


def _refuse_itself(engine: Engine, path_or_file: File) -> None:
    """Refuse a path that is the store's own file under any name.

    Writing would replace the store, and opening the file beside SQLite would drop its locks.
    """
    if isinstance(path_or_file, io.TextIOBase):
        raise InvalidInput("a stream of text was given", "open the file in binary mode")
    if not hasattr(path_or_file, "read") and not hasattr(path_or_file, "write"):
        path, store = check.check_path("path", path_or_file), Path(engine.storage.location)
        if path.exists() and store.exists() and path.samefile(store):
            raise InvalidInput(f"{path} is the store itself", "choose another name")
