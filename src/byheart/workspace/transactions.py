"""Carry out each change of a workspace in one transaction: read, decide, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from byheart.contracts import (
    FileChange,
    FileStamp,
    FileStatus,
    FoundWorkspace,
    KnownFile,
    MemoryState,
    Model,
    Storage,
    Writer,
    key_of,
    one_transaction,
)
from byheart.embedding import stored_vectors
from byheart.errors import NotFound
from byheart.memory import expiry, versions
from byheart.memory import transactions as memory_transactions
from byheart.model import Workspace
from byheart.system import clock
from byheart.workspace import file_life
from byheart.workspace.file_life import WHO, Fate


@one_transaction
def roots(storage: Storage, space: str) -> list[Workspace]:
    """List the workspaces of a space, sorted by root."""
    with storage.reading(space) as reader:
        return reader.workspaces.roots(space)


@one_transaction
def add(storage: Storage, space: str, root: str) -> int:
    """Add a folder as a workspace, unless it is one already; give its number."""
    with storage.writing(space) as writer:
        return writer.workspaces.add(space, root)


@one_transaction
def apply(
    storage: Storage,
    space: str,
    workspace_no: int,
    changes: Sequence[FileChange],
    model: Model | None,
) -> list[FileStatus]:
    """Record files as they are now; report the status of each."""
    with storage.writing(space) as writer:
        files = _Files(writer, workspace_no)
        model = stored_vectors.adopt(writer.models, model)
        return [files.apply(each, model) for each in changes]


@one_transaction
def hide(storage: Storage, space: str, workspace_no: int, missing: Mapping[str, FileStamp]) -> int:
    """Hide and count the memories of missing files that still have the stamp in `missing`."""
    with storage.writing(space) as writer:
        files = _Files(writer, workspace_no)
        return sum(files.miss(path, stamp) for path, stamp in missing.items())


@one_transaction
def finish(storage: Storage, space: str, workspace_no: int, at: datetime) -> None:
    """Record that the whole workspace was scanned."""
    with storage.writing(space) as writer:
        writer.workspaces.change(workspace_no, {"indexed_at": at}, {})


@one_transaction
def drop(storage: Storage, space: str, workspace_no: int) -> int:
    """Remove a workspace; hide and count its memories."""
    with storage.writing(space) as writer:
        _require(writer, workspace_no)
        files = writer.workspaces.files(workspace_no, "")
        ids = file_life.present_memories(files.values())
        reason = file_life.DROPPED
        hidden = memory_transactions.hide(writer.memories, ids, space, WHO, reason)
        writer.workspaces.remove(workspace_no)
    return len(hidden)


@one_transaction
def claim(
    storage: Storage, space: str, workspace_no: int, watcher: str, stale_seconds: float
) -> bool:
    """Claim the watch of a workspace, unless it was dropped or another process watches it."""
    with storage.writing(space) as writer:
        found, now = _require(writer, workspace_no), writer.workspaces.now()
        if not file_life.may_claim(found, watcher, stale_seconds, now):
            return False
        expected = {"watcher": found.watcher, "beat_at": found.beat_at}
        return writer.workspaces.change(workspace_no, file_life.claimed(watcher, now), expected)


@one_transaction
def beat(
    storage: Storage, space: str, workspace_no: int, watcher: str, behind: int, trouble: str | None
) -> bool:
    """Renew the claim on a workspace; return `False` if another process has taken over."""
    with storage.writing(space) as writer:
        fields = {"beat_at": writer.workspaces.now(), "behind": behind, "trouble": trouble}
        return writer.workspaces.change(workspace_no, fields, {"watcher": watcher})


@one_transaction
def release(storage: Storage, space: str, workspace_no: int, watcher: str) -> None:
    """Release the claim on a workspace, so that another process may watch it."""
    with storage.writing(space) as writer:
        writer.workspaces.change(workspace_no, file_life.released(), {"watcher": watcher})


def purge(storage: Storage, grace: timedelta, limit: int) -> int:
    """Erase and count some memories whose files were found to be missing a grace period ago."""
    with storage.reading() as reader:
        if not expiry.is_due(reader.expiry, expiry.MISSING_FILE, grace):
            return 0
    return len(expiry.prune(storage, expiry.MISSING_FILE, grace, limit, _remove_files))


def _remove_files(writer: Writer, memory_ids: Sequence[str], space: str) -> None:
    writer.workspaces.remove_files(memory_ids, space)


class _Files:
    """Change the files of one workspace, and their memories, within one transaction."""

    def __init__(self, writer: Writer, workspace_no: int) -> None:
        self._memories = writer.memories
        self._tombstones = writer.tombstones
        self._rows = writer.workspaces
        self._number = workspace_no
        self._workspace = _require(writer, workspace_no)

    def apply(self, change: FileChange, model: Model | None) -> FileStatus:
        """Record a file as it is now; report its status."""
        fate = self._decide(change)
        draft = change.draft
        if fate.deed == "insert":
            assert draft is not None
            memory_transactions.insert(self._memories, draft, model)
        elif fate.deed == "replace":
            assert draft is not None
            assert fate.memory is not None
            self._show(fate.memory)
            revision = file_life.new_text(fate.memory, draft)
            memory_transactions.replace_text(self._memories, fate.memory, revision, model)
            self._memories.remove_text(fate.memory.memory_no)
        self._carry_out(change.path, fate)
        return fate.status

    def miss(self, path: str, stamp: FileStamp) -> bool:
        """Hide the memory of a missing file; say whether it was visible."""
        known = self._known(path)
        fate = file_life.miss(path, stamp, known, self._memory(known), clock.now())
        self._carry_out(path, fate)
        return fate.status == "removed"

    def _decide(self, change: FileChange) -> Fate:
        known = self._known(change.path)
        if file_life.is_overtaken(change, known, clock.now()):
            return Fate("unchanged")
        if change.trouble is not None:
            return file_life.fail(change, known)
        if change.moved_from is not None:
            source = self._known(change.moved_from)
            return file_life.move(change, known, source, self._memory(source))
        key = None if change.draft is None else key_of(change.draft.memory)
        is_erased = key is not None and bool(self._tombstones.find([key.text]))
        if known is not None and known.memory_id is not None:
            return file_life.follow(change, known, self._memory(known), is_erased=is_erased)
        if key is None or key.client_id is None:
            return file_life.begin(change, [], is_erased=is_erased)
        named = self._memories.named(key.space, key.session_id, key.client_id)
        return file_life.begin(change, named, is_erased=is_erased)

    def _carry_out(self, path: str, fate: Fate) -> None:
        """Show, hide or rename the memory of a file, and set the state of the file."""
        memory = fate.memory
        if memory is not None and fate.deed == "show":
            self._show(memory)
        elif memory is not None and fate.deed == "rename":
            self._show(memory)
            whole = self._memories.memory(memory.memory_no)
            place = f"{self._workspace.root.rstrip('/')}/{path}"
            revision = file_life.new_path(whole, place, clock.now())
            memory_transactions.amend(self._memories, memory, revision, None)
        elif memory is not None and fate.deed == "hide":
            hidden = versions.forget(memory, clock.now(), WHO, fate.reason)
            self._memories.change([] if hidden is None else [hidden])
        if fate.removed is not None:
            self._rows.put_file(self._number, fate.removed, None)
        if fate.file is not None:
            self._rows.put_file(self._number, path, fate.file)

    def _show(self, memory: MemoryState) -> None:
        if memory.forgotten_at is not None:
            memory_transactions.show(self._memories, memory, WHO)

    def _known(self, path: str) -> KnownFile | None:
        return self._rows.files(self._number, path).get(path)

    def _memory(self, known: KnownFile | None) -> MemoryState | None:
        if known is None or known.memory_id is None:
            return None
        found = self._memories.held([known.memory_id], self._workspace.space)
        return found[0] if found else None


def _require(writer: Writer, workspace_no: int) -> FoundWorkspace:
    found = writer.workspaces.find(workspace_no)
    if found is None:
        raise NotFound("the workspace was dropped meanwhile", "index it again")
    return found
