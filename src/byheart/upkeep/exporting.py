"""Exporting: everything a store holds, into one file for programs or a folder for people."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from byheart.contracts import Dump, EntityRecord, MemoryRecord, Record
from byheart.errors import ByheartError, InvalidInput
from byheart.model import Exported, TransferProgress
from byheart.upkeep import jsonl, vault

Format = Literal["jsonl", "markdown"]
FORMATS: tuple[Format, ...] = ("jsonl", "markdown")
OnProgress = Callable[[TransferProgress], None]
_PROGRESS_EVERY = 64


def export(
    dump: Dump,
    path_or_file: str | Path | BinaryIO,
    *,
    format: Format,
    vectors: bool,
    all_spaces: bool,
    overwrite: bool,
    on_progress: OnProgress | None,
) -> Exported:
    """Write a dump out and say what was in it."""
    path = Path(path_or_file).expanduser() if isinstance(path_or_file, str | Path) else None
    counts = dict.fromkeys(("memories", "entities", "tombstones"), 0)
    if format == "markdown":
        if path is None or vectors:
            raise InvalidInput(
                "a Markdown export is a folder of texts, without vectors", "give a folder's path"
            )
        with _explained(path):
            written = vault.write(dump, path, by_space=all_spaces, overwrite=overwrite)
            counts["memories"] = _count(written, dump, on_progress)["memories"]
    else:
        with _opened(path_or_file, path, overwrite) as out:
            written = jsonl.write(dump, out, vectors=vectors)
            counts = _count(written, dump, on_progress)
    return Exported(None if path is None else str(path), format, **counts, vectors=vectors)


def _count(written: Iterable[Record], dump: Dump, on_progress: OnProgress | None) -> dict[str, int]:
    memories = entities = tombstones = 0
    for record in written:
        if isinstance(record, MemoryRecord):
            memories += 1
            if on_progress is not None and memories % _PROGRESS_EVERY == 0:
                on_progress(TransferProgress(memories, memories, dump.memory_count))
        elif isinstance(record, EntityRecord):
            entities += 1
        else:
            tombstones += 1
    if on_progress is not None:
        on_progress(TransferProgress(memories, memories, dump.memory_count))
    return {"memories": memories, "entities": entities, "tombstones": tombstones}


@contextmanager
def _opened(
    path_or_file: str | Path | BinaryIO, path: Path | None, overwrite: bool
) -> Iterator[BinaryIO]:
    """Open a file under another name first: one that has its own name is whole.

    Links are followed, and what is no ordinary file (a device, a pipe) is written to as it is.
    """
    if path is None:
        assert not isinstance(path_or_file, str | Path)
        yield path_or_file
        return
    refuse_existing(path, overwrite, ordinary=False)
    if path.exists() and not path.is_file():
        with _explained(path), path.open("wb") as out:
            yield out
        return
    target = path.resolve()
    partial = target.with_name(f"{target.name}.partial")
    with _explained(path):
        try:
            with partial.open("wb") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            partial.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def refuse_existing(path: Path, overwrite: bool, *, ordinary: bool = True) -> None:
    """Leave what is there alone, unless told otherwise."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder", "name a file")
    if path.exists() and not overwrite:
        raise InvalidInput(
            f"{path} exists already", "choose another name, or allow it with overwrite=True"
        )
    if ordinary and path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is a device or a pipe, not a file", "name a file")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ByheartError(
            f"cannot write {path}: {error.strerror or error}",
            "choose a place that exists and that you may write to",
        ) from error
