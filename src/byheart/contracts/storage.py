"""Define the storage interface: memories, the vectors of several models, and API keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from byheart.contracts.embedders import EmbedderSpec, Model, Vectors
from byheart.contracts.ledger import Ledger
from byheart.contracts.reader import Reader
from byheart.contracts.records import (
    DedupKey,
    Draft,
    Dump,
    EntityRecord,
    Loaded,
    PendingChunk,
    Record,
    Revision,
    Window,
)
from byheart.contracts.workspaces import Workspaces
from byheart.model import ApiKey, Entity, Finding, Inventory, Merged, Removal, SaveResult, Status


class Generations(Protocol):
    """Keep the vectors of several models: the one in use, the next one, and earlier ones.

    All chunks count here, even if no search finds them: earlier and forgotten texts can come back.
    """

    def spec_of(self, model: Model) -> EmbedderSpec | None:
        """Describe how to open the embedder of a model again, if that was recorded."""
        ...

    def note(self, model: Model, spec: EmbedderSpec | None) -> None:
        """Record a model, and how to open its embedder again."""
        ...

    def begin(self, model: Model) -> None:
        """Record which model comes next, so that its vectors do not count as unused."""
        ...

    def lacking(self, model: Model, after: int, limit: int) -> list[PendingChunk]:
        """List chunks without vectors of a model, in order of their numbers, after `after`."""
        ...

    def count_lacking(self, model: Model) -> tuple[int, int]:
        """Count the chunks without vectors of a model, and all chunks."""
        ...

    def add(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add vectors of a model to chunks that have none, and count these chunks."""
        ...

    def switch(self, model: Model, most_lacking: int | None) -> int | None:
        """Search by another model from now on, unless too many chunks lack vectors of that model.

        Return how many chunks wait for vectors now, or `None` if the model was not switched.
        """
        ...

    def previous(self) -> Model | None:
        """Name the model that was in use before the last switch, if its vectors are still kept."""
        ...

    def count_unused(self) -> int:
        """Count the vectors of all models but the one in use."""
        ...

    def drop_unused(self, *, next_too: bool) -> int:
        """Remove and count vectors of models not in use; with `next_too`, of the next one too."""
        ...


class ApiKeys(Protocol):
    """Keep API keys by the hash of their secrets; the secrets themselves are never stored."""

    def add(self, key: ApiKey, secret_hash: bytes) -> None:
        """Add an API key, unless its name is taken."""
        ...

    def list(self, space: str | None) -> list[ApiKey]:
        """List the API keys of a space, or of all spaces, oldest first."""
        ...

    def find(self, secret_hash: bytes) -> ApiKey | None:
        """Find the API key whose secret has this hash; every process sees the same keys at once."""
        ...

    def remove(self, token_id: str) -> bool:
        """Remove an API key; say whether it existed."""
        ...

    def note_use(self, token_id: str, at: datetime) -> None:
        """Record when an API key was used, now or a little later; never wait and never fail."""
        ...


class Bookmarks(Protocol):
    """Record how far growing files were read; a lost bookmark only means reading them again."""

    def find(self, path: str, space: str) -> str | None:
        """Give the bookmark of a file, or `None`."""
        ...

    def put(self, path: str, space: str, mark: str) -> None:
        """Set the bookmark of a file."""
        ...


class Storage(Protocol):
    """Store memories. Every write is one transaction: it is done completely or not at all."""

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        ...

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        ...

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the store, if they are."""
        ...

    @property
    def generations(self) -> Generations:
        """Give access to the vectors of several models."""
        ...

    @property
    def api_keys(self) -> ApiKeys:
        """Give access to the API keys."""
        ...

    @property
    def workspaces(self) -> Workspaces:
        """Give the folders whose files are memories."""
        ...

    @property
    def bookmarks(self) -> Bookmarks:
        """Give access to the bookmarks of growing files."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        ...

    def searching(self) -> AbstractContextManager[Reader]:
        """Open a consistent view for ranking and counting as well."""
        ...

    def write(self, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
        """Write memories; leave a text alone that its space, session and kind already hold.

        If the client id of a turn already has another text, raise `Conflict` and write nothing.
        """
        ...

    def revise(self, revision: Revision, model: Model | None) -> SaveResult:
        """Change a memory, unless its version is no longer the one the revision was made from."""
        ...

    def supersede(
        self, old: str, new: str | None, space: str, who: str, reason: str | None
    ) -> None:
        """Record which memory supersedes another; with `None`, make the memory valid again."""
        ...

    def forget(
        self, memory_ids: Sequence[str], space: str, who: str, reason: str | None
    ) -> list[str]:
        """Hide memories with all their texts; give the ids of those that were not hidden before."""
        ...

    def restore(self, memory_id: str, space: str, who: str) -> bool:
        """Restore a hidden memory; say whether it had been hidden."""
        ...

    def restore_session(self, session_id: str, space: str, who: str) -> list[str]:
        """Restore the memories of a session that were hidden last; give their ids."""
        ...

    def forget_emitted(self, space: str, session_id: str) -> None:
        """Remove the record of passages that were given to a session."""
        ...

    def merge(
        self, keep: str, others: Sequence[str], space: str, who: str, reason: str | None
    ) -> Merged:
        """Add the labels and accesses of other memories to one memory, and hide the others."""
        ...

    def pin(self, memory_id: str, space: str, who: str, *, pinned: bool) -> None:
        """Pin a memory to the top of every prompt that may contain it, or remove the pin."""
        ...

    def rename_entity(self, name: str, new_name: str, space: str) -> Entity:
        """Give an entity another name; the old name stays as an alias."""
        ...

    def merge_entities(self, names: Sequence[str], into: str, space: str) -> Entity:
        """Merge several entities into one; the other names stay as aliases."""
        ...

    def remove(self, memory_ids: Sequence[str], space: str, *, tombstones: bool) -> Removal:
        """Remove memories permanently with every trace of them, and search for remaining traces."""
        ...

    def prune(self, grace: timedelta, limit: int) -> int:
        """Erase and count some of the memories found to be expired a grace period ago.

        Only time that the store has seen pass counts: a wall clock that jumps ahead ends no grace
        period.
        """
        ...

    def count_accesses(self, memory_ids: Sequence[str], space: str) -> None:
        """Count accesses of memories; never wait: while others write, add the counts later."""
        ...

    def note_emitted(self, chunk_ids: Sequence[str], space: str, session_id: str | None) -> None:
        """Record which passages, or whole memories, were given out for a prompt; never wait."""
        ...

    def settle_emitted(self) -> None:
        """Make recorded emissions visible to readers, unless another process is writing now."""
        ...

    def known(self, keys: Sequence[DedupKey]) -> dict[DedupKey, SaveResult]:
        """Find which texts are stored already."""
        ...

    def model(self) -> Model | None:
        """Name the model whose vectors the store holds; `None` until it holds any."""
        ...

    def vectors_of(self, model: Model, text_hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Find the vectors of texts that were embedded before."""
        ...

    def pending(
        self, limit: int, of: Sequence[str] = (), without: Sequence[int] = ()
    ) -> list[PendingChunk]:
        """List chunks that still lack vectors, oldest first: of some memories, or of all.

        Leave out the chunks whose numbers are in `without`.
        """
        ...

    def count_pending(self, of: Sequence[str] = ()) -> int:
        """Count the chunks that still lack vectors, of some memories, or in all spaces."""
        ...

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add the vectors of pending chunks that are still there, and count the chunks."""
        ...

    def dumping(self, space: str | None, *, vectors: bool) -> AbstractContextManager[Dump]:
        """Open the whole contents of one space, or of all spaces, at this moment."""
        ...

    def adopt_models(self, models: Sequence[Model], active: str | None) -> None:
        """Record models whose vectors will be loaded; a store without a model adopts `active`."""
        ...

    def load(self, records: Sequence[Record], *, force: bool) -> list[Loaded]:
        """Write records as they were in another store; leave out known and erased texts."""
        ...

    def finish_loading(self, renamed: Mapping[str, str], entities: Sequence[EntityRecord]) -> None:
        """Drop entities that no memory names, and change references to the ids of this store."""
        ...

    def tombstoned(self, keys: Sequence[DedupKey]) -> set[DedupKey]:
        """Find which texts were forgotten for good."""
        ...

    def taken(self, memory_ids: Sequence[str]) -> set[str]:
        """Find which ids are in use, in any space, hidden or not."""
        ...

    def back_up(self, path: Path) -> None:
        """Copy the store to a file as it is at this moment; other processes can keep using it."""
        ...

    def refresh(self) -> None:
        """Update all derived data, so that the next search, in any process, is fast."""
        ...

    def status(self, space: str) -> Status:
        """Describe the store."""
        ...

    def inventory(self, space: str) -> Inventory:
        """Count the contents of a space by kind, and the sizes of the store's files."""
        ...

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` where nothing can be written."""
        ...

    def report_work(self, to: Callable[[str, float], None]) -> None:
        """Report work on the index to a callback when it is done: its name and its seconds."""
        ...

    def inspect(self) -> list[Finding]:
        """Check the data that searches use, in little time; change nothing."""
        ...

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and all derived data; with `fix`, repair what can be derived."""
        ...

    def rebuild(self) -> None:
        """Rebuild all derived data from text, metadata and vectors."""
        ...

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        ...

    def close(self) -> None:
        """Release files, connections and memory."""
        ...
