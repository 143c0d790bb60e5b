"""Export a whole store to one file for programs or a folder for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from byheart.contracts import Dump, EntityRecord, MemoryRecord, Record
from byheart.errors import InvalidInput
from byheart.model import Exported, TransferProgress
from byheart.transfer import jsonl, vault
from byheart.transfer.atomic_files import explained, written_whole

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
    """Write a dump and return counts of its contents."""
    path = Path(path_or_file).expanduser() if isinstance(path_or_file, str | Path) else None
    counts = dict.fromkeys(("memories", "entities", "tombstones"), 0)
    damaged: list[str] = []
    if format == "markdown":
        if path is None or vectors:
            raise InvalidInput(
                "a Markdown export is a folder of texts, without vectors", "give a folder's path"
            )
        with explained(path):
            written = vault.write(dump, path, by_space=all_spaces, overwrite=overwrite)
            counts["memories"] = _count(written, dump, on_progress, damaged)["memories"]
    else:
        with _opened(path_or_file, path, overwrite) as out:
            written = jsonl.write(dump, out, vectors=vectors)
            counts = _count(written, dump, on_progress, damaged)
    where = None if path is None else str(path)
    return Exported(where, format, **counts, vectors=vectors, damaged=tuple(damaged))


def _count(
    written: Iterable[Record], dump: Dump, on_progress: OnProgress | None, damaged: list[str]
) -> dict[str, int]:
    memories = entities = tombstones = 0
    for record in written:
        if isinstance(record, MemoryRecord):
            memories += 1
            if any(each.memory.damaged for each in (record.text, *record.earlier)):
                damaged.append(record.text.memory.memory_id)
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
    if path is None:
        assert not isinstance(path_or_file, str | Path)
        yield path_or_file
        return
    with written_whole(path, overwrite) as out:
        yield out
