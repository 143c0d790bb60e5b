"""Update memories whose imported source or exported file has changed.

A memory that was also changed in the store keeps its state, unless `force` lets the file win.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from byheart.contracts import Storage
from byheart.errors import Conflict, Do, Hint, InvalidInput, Option, VersionConflict
from byheart.memory.save_requests import SaveRequest, check_request
from byheart.model import HistoryEntry, Memory, SaveResult, to_wire
from byheart.settings import Settings
from byheart.transfer import vault

# `Changer.update`: id, space, fields, the version they were compared with, and who changes them.
Update = Callable[[str, str, Mapping[str, Any], int | None, str], SaveResult]
Outcome = Literal["updated", "unchanged", "refused"]
# The fields that a memory copies from its source whenever the source changes.
_FOLLOWED = ("content", "title", "tags", "entities", "metadata")


def from_elsewhere(request: SaveRequest) -> SaveRequest:
    """Set the origin of a text to "import", unless the text states its origin."""
    return replace(request, origin=request.origin or "import")


class SourceSync:
    """Update memories from the files they belong to."""

    def __init__(
        self, storage: Storage, update: Update, settings: Settings, *, force: bool, dry_run: bool
    ) -> None:
        self._storage = storage
        self._update = update
        self._settings = settings
        self._force = force
        self._dry_run = dry_run
        self._files_by_id: dict[str, str] = {}

    # --- The source of a memory ---------------------------------------------------------------

    def follow(self, request: SaveRequest, held: SaveResult) -> Outcome:
        """Update a memory from its changed source, unless the memory was changed here too."""
        who = f"import of {request.source}"
        fields = {} if request.role is not None else self._differing(request, held, who)
        try:
            if fields and not self._dry_run:
                self._update(held.memory_id, request.space, fields, held.version, who)
        except VersionConflict:  # the memory was changed here a moment ago
            fields = {}
        return "updated" if fields else "unchanged"

    def _differing(self, request: SaveRequest, held: SaveResult, who: str) -> dict[str, Any]:
        """Return the fields that differ in the source, unless the memory was changed here too."""
        with self._storage.reading(request.space) as reader:
            memory = reader.memory(held.memory_id, request.space)
            if memory is None:  # the memory was forgotten
                return {}
            compared = [name for name in _FOLLOWED if getattr(request, name) is not None]
            fields = {
                name: getattr(request, name)
                for name in compared
                if _differs(getattr(memory, name), getattr(request, name))
            }
            entries = reader.history(held.memory_id, request.space) if fields else []
        changes = [entry for entry in entries if entry.changes]
        is_as_imported = not changes or changes[-1].who == who or self._force
        return fields if is_as_imported else {}

    # --- The exported file of a memory --------------------------------------------------------

    def take(self, file: vault.VaultFile, path: Path, folder: Path) -> SaveRequest | Outcome:
        """Return the request to save for a file, or update the memory that the file belongs to."""
        request = check_request(file.fields, self._settings)
        if file.memory_id is None:
            return from_elsewhere(request)
        request = replace(request, role=file.role, client_id=file.client_id)
        place = vault.place_of(path, folder)
        first = self._files_by_id.setdefault(file.memory_id, place)
        if first != place:
            raise InvalidInput(
                f"it has the same id as {first}: take the id line out of one of them"
            )
        with self._storage.reading() as reader:
            memory = reader.memory(file.memory_id, request.space)
            state = reader.states([file.memory_id], request.space).get(file.memory_id)
            hidden = None if state is None else state.forgotten_at
            taken = bool(reader.taken([file.memory_id]))
        if memory is not None:
            # A file name may be invalid UTF-8, but stored text must not be.
            name = os.fsencode(path.resolve()).decode(errors="replace")
            return self._revise(memory, file, request, f"import of {name}")
        if hidden is not None:
            raise Conflict(
                f"{file.memory_id} was forgotten here",
                Hint("bring it back with: ", Do("restore", file.memory_id), ", or remove the file"),
            )
        return replace(
            request,
            memory_id=None if taken else file.memory_id,
            created_at=file.created_at,
        )

    def _revise(
        self, memory: Memory, file: vault.VaultFile, request: SaveRequest, who: str
    ) -> Outcome:
        """Update a memory from its edited file, unless the memory was changed elsewhere too."""
        compared = [name for name in file.fields if name != "space"]
        differing = {
            name: file.fields[name]
            for name in compared
            if _differs(getattr(memory, name), getattr(request, name))
        }
        edited, moved_on = True, False
        if differing and not self._force:
            with self._storage.reading(memory.space) as reader:
                entries = reader.history(memory.memory_id, memory.space)
            exported, moved_on = _source(memory, entries, file, who)
            edited = exported is None or any(
                _differs(exported[name], getattr(request, name)) for name in compared
            )
        if not differing or not edited:
            # Either both are equal, or the file is merely older than the memory.
            return "unchanged"
        if moved_on:
            raise Conflict(
                f"{memory.memory_id} has changed since this file was written, and so has the file",
                Hint(
                    "export it again and make the change there, or let the file win with ",
                    Option("force", True),
                ),
            )
        if "content" in differing and not self._force and self._is_erased(request):
            return "refused"
        if not self._dry_run:
            self._update(memory.memory_id, memory.space, differing, memory.version, who)
        return "updated"

    def _is_erased(self, request: SaveRequest) -> bool:
        with self._storage.reading(request.space) as reader:
            return bool(reader.tombstoned([request.key.text]))


def _source(
    memory: Memory, entries: list[HistoryEntry], file: vault.VaultFile, who: str
) -> tuple[Mapping[str, Any] | None, bool]:
    """Return the fields a file was written from, and whether anyone else changed them since."""
    versions = dict(_versions(memory, entries))
    alike = [version for version, fields in versions.items() if _hash(fields) == file.content_hash]
    changes = [entry for entry in entries if entry.changes]
    own = bool(changes) and changes[-1].who == who
    if not alike:
        # Another store wrote the file, so only the times can be compared.
        newer = file.updated_at is not None and file.updated_at > memory.updated_at
        return None, not own and not (newer and len(versions) == 1)
    # Another store counts its versions differently.
    version = file.version if file.version in alike else max(alike)
    return versions[version], not own and version != memory.version


def _versions(
    memory: Memory, entries: list[HistoryEntry]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the fields of each version of a memory, from the last to the first."""
    fields = to_wire(memory)
    yield memory.version, dict(fields)
    for entry in reversed(entries):
        yield entry.version, dict(fields)
        fields.update({name: change["from"] for name, change in entry.changes.items()})


def _hash(fields: Mapping[str, Any]) -> str:
    return sha256((fields["content"] or "").encode()).hexdigest()


def _differs(old: Any, new: Any) -> bool:
    if isinstance(old, list | tuple):
        return set(old) != set(new or ())
    return bool(to_wire(old) != to_wire(new))
