"""Decide what happens to a file of a workspace, and to the memory that mirrors it.

A new text of a file replaces the old one, which is not kept. When a file is missing, its memory is
hidden with its vectors, so that it is available at once when the file comes back; the memory of a
file that stays missing is erased later. A memory that a user forgot stays forgotten.

Every function here takes values and gives values. `workspace/transactions.py` reads and writes
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from byheart.contracts import (
    Draft,
    FileChange,
    FileStamp,
    FileStatus,
    FoundWorkspace,
    KnownFile,
    MemoryState,
    Revision,
)
from byheart.model import Memory, client_id_of
from byheart.model.workspaces import WORKSPACE_AUTHOR
from byheart.startup.dataclass_types import dataclass

# The author of these changes in the history, and their reasons.
WHO = WORKSPACE_AUTHOR
GONE = "the file is gone"
EMPTY = "the file holds no text to remember any more"
DROPPED = "the workspace was dropped"

Deed = Literal["nothing", "insert", "show", "replace", "rename", "hide"]


@dataclass(frozen=True, slots=True)
class Fate:
    """Say how a file fares: the status to report, its new state, and what its memory undergoes.

    `insert` makes a new memory; the other deeds change `memory`. `replace` and `rename` make a
    hidden memory visible first. `reason` says why a memory is hidden. Without `file`, the known
    state stays; the state of the file at the path `removed` is removed.
    """

    status: FileStatus
    deed: Deed = "nothing"
    memory: MemoryState | None = None
    file: KnownFile | None = None
    removed: str | None = None
    reason: str | None = None


def is_overtaken(change: FileChange, known: KnownFile | None, now: datetime) -> bool:
    """Say whether another process has read the file after this one did."""
    # A read time in the future is from before the clock was set back.
    return known is not None and change.read_at < known.read_at <= now


def fail(change: FileChange, known: KnownFile | None) -> Fate:
    """Record why a file cannot be read.

    Its memory stays: the last readable text of the file is better than none. The state keeps the
    hash of that text, so that the present text still counts as new when it is read.
    """
    memory_id, file_hash = (None, b"") if known is None else (known.memory_id, known.file_hash)
    return Fate("failed", file=_state(change, memory_id)._replace(file_hash=file_hash))


def begin(change: FileChange, named: Sequence[MemoryState], *, is_erased: bool) -> Fate:
    """Add a file without a memory; `named` are the memories with the client id of its path.

    Such a memory was imported, or it was hidden when the file was empty or the workspace was
    dropped. `is_erased` says that the text of the file was forgotten for good.
    """
    if change.draft is None:
        return Fate("unchanged", file=_state(change, None))
    if is_erased:
        return Fate("forgotten", file=_state(change, None))
    own = next((each for each in named if not is_forgotten(each)), None)
    if own is None:
        return Fate("indexed", "insert", file=_state(change, change.draft.memory.memory_id))
    return Fate("indexed", "replace", own, _state(change, own.memory_id))


def follow(
    change: FileChange, known: KnownFile, memory: MemoryState | None, *, is_erased: bool
) -> Fate:
    """Update the memory of a file to the file's present text.

    `memory` is `None` if it was erased. `is_erased` says that the present text was forgotten for
    good.
    """
    file = _state(change, known.memory_id)
    if memory is None or is_forgotten(memory):
        return Fate("forgotten", file=file)
    is_hidden = memory.forgotten_at is not None
    if known.file_hash == change.file_hash:
        if is_hidden:
            return Fate("restored", "show", memory, file)
        return Fate("unchanged", file=file)
    if change.draft is None and not change.no_text:
        return Fate("unchanged")  # another process saw another state: the next scan reads it again
    if change.draft is not None and not is_erased:
        return Fate("indexed", "replace", memory, file)
    file = _state(change, None)
    if change.draft is not None:
        return Fate("forgotten", "nothing" if is_hidden else "hide", memory, file, reason=EMPTY)
    if is_hidden:
        return Fate("unchanged", file=file)
    return Fate("removed", "hide", memory, file, reason=EMPTY)


def move(
    change: FileChange,
    known: KnownFile | None,
    source: KnownFile | None,
    memory: MemoryState | None,
) -> Fate:
    """Move a memory with its file to another path; keep its text and vectors.

    `source` is the known state at the old path, and `memory` is the memory of that file.
    """
    assert change.moved_from is not None
    is_taken = known is not None and known.memory_id is not None
    if is_taken or source is None or source.memory_id is None:
        return Fate("failed")  # another process was faster: the next scan corrects it
    if source.file_hash != change.file_hash:
        return Fate("failed")
    file = _state(change, source.memory_id)
    if memory is None or is_forgotten(memory):
        return Fate("moved", file=file, removed=change.moved_from)
    return Fate("moved", "rename", memory, file, change.moved_from)


def miss(
    path: str, stamp: FileStamp, known: KnownFile | None, memory: MemoryState | None, now: datetime
) -> Fate:
    """Hide the memory of a missing file that still has the stamp it was known by."""
    # Another process may have found the file meanwhile.
    if known is None or known.stamp != stamp or known.gone:
        return Fate("unchanged")
    if memory is None:
        return Fate("unchanged", removed=path)
    file = known._replace(gone_at=now)
    if memory.forgotten_at is not None:
        return Fate("unchanged", file=file)
    return Fate("removed", "hide", memory, file, reason=GONE)


def present_memories(files: Iterable[KnownFile]) -> list[str]:
    """List the memories of the files that are not missing."""
    return [each.memory_id for each in files if each.memory_id is not None and not each.gone]


def is_forgotten(memory: MemoryState) -> bool:
    """Say whether a memory is hidden for another reason than its file: a user forgot it."""
    return memory.forgotten_at is not None and memory.hidden_by != WHO


def new_text(memory: MemoryState, draft: Draft) -> Revision:
    """Give a memory the present text of its file."""
    after = replace(draft.memory, memory_id=memory.memory_id, created_at=memory.created_at)
    changes = {"content_hash": (memory.key.content_hash, after.content_hash)}
    text = (draft.chunks, draft.windows)
    return Revision(after, memory.version, draft.derived, WHO, changes, text)


def new_path(before: Memory, path: str, now: datetime) -> Revision:
    """Give a memory another path, and another title if its title is the name of its file."""
    names_file = before.title == _name(before.path or "")
    after = replace(
        before,
        path=path,
        title=_name(path) if names_file else before.title,
        client_id=client_id_of(path),
        updated_at=now,
    )
    changes = {
        name: (getattr(before, name), getattr(after, name))
        for name in ("path", "title")
        if getattr(before, name) != getattr(after, name)
    }
    return Revision(after, before.version, before.derived, WHO, changes, None)


def may_claim(workspace: FoundWorkspace, watcher: str, stale_seconds: float, now: datetime) -> bool:
    """Say whether a watcher may claim a workspace: it is free, or its watcher has died."""
    if workspace.watcher in (None, watcher):
        return True
    # A heartbeat in the future is from before the clock was set back: a watcher that is still
    # alive sends another one within seconds.
    beat_at = workspace.beat_at
    return beat_at is not None and abs(now - beat_at) > timedelta(seconds=stale_seconds)


def claimed(watcher: str, now: datetime) -> dict[str, Any]:
    """Give the fields of a workspace that a watcher has just claimed."""
    return {"watcher": watcher, "beat_at": now, "behind": 0, "trouble": None}


def released() -> dict[str, Any]:
    """Give the fields of a workspace that no process watches."""
    return {"watcher": None, "behind": 0, "trouble": None}


def _state(change: FileChange, memory_id: str | None) -> KnownFile:
    return KnownFile(
        memory_id, change.stamp, change.file_hash, change.read_at, change.trouble, change.may_pass
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]
