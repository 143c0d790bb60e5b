"""List the files of a store: side files, leftovers, and the processes that have them open."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from byheart.model import Sizes
from byheart.startup.late_patterns import late_pattern

# No file takes this long to write: an older partial file was left behind by a killed process.
_LONGEST_WRITE_SECONDS = 3600
_ENDINGS = ("-wal", "-shm", "-index", "-index-lock", "-stats", "-last")
_BACKUP = late_pattern(r"\.backup-schema-(\d+)")
_INDEX_PART = late_pattern(r"-index-[0-9a-f]{12}")
# Half-written copies of the store, and half-written index files.
_UNFINISHED = late_pattern(r"\.backup-schema-\d+\.partial|-index(-[0-9a-f]{12})?\.\w{8}")


def beside(store: Path, ending: str) -> Path:
    """Name a file beside the store."""
    return store.with_name(store.name + ending)


def size(path: Path) -> int:
    """Give the size of a file; 0 if the file does not exist."""
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def holds_store(path: Path) -> bool:
    """Tell whether there is a store; an empty file is one only if its change mark is there."""
    if path.is_file() and not size(path):
        return beside(path, "-last").exists()
    return path.exists()


def sizes(store: Path) -> Sizes:
    """Give the sizes of a store's files."""
    return Sizes(
        store_bytes=size(store),
        log_bytes=size(beside(store, "-wal")),
        index_bytes=sum(map(size, index_files(store))),
        stats_bytes=size(beside(store, "-stats")),
        backup_bytes=sum(size(path) for path, _ in backups(store)),
    )


def all_of(store: Path) -> list[Path]:
    """List the existing files of a store, with copies from before schema changes."""
    named = [store, *(beside(store, each) for each in _ENDINGS)]
    others = [*_index_parts(store), *(path for path, _ in backups(store))]
    return [path for path in named if path.exists()] + others


def index_files(store: Path) -> list[Path]:
    """Name the files of the index: its head, whether it exists or not, and its parts."""
    return [beside(store, "-index"), *_index_parts(store)]


def _index_parts(store: Path) -> list[Path]:
    return [path for path, _ in _beside_matching(store, _INDEX_PART)]


def backups(store: Path) -> list[tuple[Path, int]]:
    """List the copies that were made before schema changes, with the schema of each."""
    return [(path, int(match[1])) for path, match in _beside_matching(store, _BACKUP)]


def leftovers(store: Path) -> list[Path]:
    """List files that were left behind half-written."""
    return [
        path
        for path, _ in _beside_matching(store, _UNFINISHED)
        if age(path) > _LONGEST_WRITE_SECONDS
    ]


def remove_leftovers(store: Path) -> None:
    """Remove files that were left behind half-written."""
    for path in leftovers(store):
        with contextlib.suppress(OSError):
            path.unlink()


def age(path: Path) -> float:
    """Give the seconds since a file was written."""
    with contextlib.suppress(OSError):
        return time.time() - path.stat().st_mtime
    return 0.0


def _beside_matching(store: Path, ending: re.Pattern[str]) -> Iterator[tuple[Path, re.Match[str]]]:
    for path in sorted(store.parent.iterdir()):
        if path.name.startswith(store.name):
            match = ending.fullmatch(path.name, len(store.name))
            if match is not None:
                yield path, match


def processes_with(path: Path) -> list[str]:
    """Name the other processes that have a file open, where the system tells (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(process.name) != os.getpid() and any(
                link.readlink() == path for link in (process / "fd").iterdir()
            ):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                found.append(f"{name} (process {process.name})")
    return found
