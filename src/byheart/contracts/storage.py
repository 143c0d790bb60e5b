"""Where memories live, with the vectors of several models and the tokens beside them."""

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
from byheart.model import Entity, Finding, Inventory, Merged, Removal, SaveResult, Status, Token


class Generations(Protocol):
    """Vectors of several models side by side: one in use, one coming, those before it.

    Chunks count here whether they are found or not: earlier texts and forgotten ones come back.
    """

    def spec_of(self, model: Model) -> EmbedderSpec | None:
        """Say how an embedder of a model is opened again, if that was noted."""
        ...

    def note(self, model: Model, spec: EmbedderSpec | None) -> None:
        """Make a model known, and how its embedder is opened again."""
        ...

    def begin(self, model: Model) -> None:
        """Say which model comes next, so that its vectors do not look unused."""
        ...

    def lacking(self, model: Model, after: int, limit: int) -> list[PendingChunk]:
        """List chunks without vectors of a model, by number, behind the number `after`."""
        ...

    def count_lacking(self, model: Model) -> tuple[int, int]:
        """Count the chunks without vectors of a model, and all chunks."""
        ...

    def add(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add vectors of a model where there are none, and count the chunks."""
        ...

    def switch(self, model: Model, most_lacking: int | None) -> int | None:
        """Search by another model from now on, unless too many chunks lack vectors of it.

        Give how many wait for vectors now, or `None` if nothing was switched.
        """
        ...

    def previous(self) -> Model | None:
        """Name the model that was in use before the last switch, if its vectors are there."""
        ...

    def count_unused(self) -> int:
        """Count the vectors of all models but the one in use."""
        ...

    def drop_unused(self, *, next_too: bool) -> int:
        """Remove vectors of models not in use (what is coming only if asked), and count them."""
        ...


class Tokens(Protocol):
    """Who may come in over the network, by the hash of a secret; the secret is kept nowhere."""

    def add(self, token: Token, secret_hash: bytes) -> None:
        """Add a token, unless its name is taken."""
        ...

    def list(self, space: str | None) -> list[Token]:
        """List the tokens of a space, or of all, oldest first."""
        ...

    def find(self, secret_hash: bytes) -> Token | None:
        """Find the token whose secret has this hash, as every process has it at this moment."""
        ...

    def remove(self, token_id: str) -> bool:
        """Remove a token; say whether it was there."""
        ...

    def note_use(self, token_id: str, at: datetime) -> None:
        """Note when a token was used, now or a little later; never wait and never fail."""
        ...


class Bookmarks(Protocol):
    """How far files that grow were read; putting one off costs nothing but reading again."""

    def find(self, path: str, space: str) -> str | None:
        """Give the bookmark of a file, if there is one."""
        ...

    def put(self, path: str, space: str, mark: str) -> None:
        """Put the bookmark of a file where it belongs now."""
        ...


class Storage(Protocol):
    """Where memories live. Every write is one transaction: all of it or nothing."""

    @property
    def location(self) -> str:
        """Name the path or address, without secrets."""
        ...

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        ...

    def trouble(self) -> str | None:
        """Say that changes are missing which were made to the store, if that is so."""
        ...

    @property
    def generations(self) -> Generations:
        """Give the vectors of several models side by side."""
        ...

    @property
    def tokens(self) -> Tokens:
        """Give the tokens that let programs in over the network."""
        ...

    @property
    def workspaces(self) -> Workspaces:
        """Give the folders whose files are memories."""
        ...

    @property
    def bookmarks(self) -> Bookmarks:
        """Give the places up to which files were read."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        ...

    def searching(self) -> AbstractContextManager[Reader]:
        """Open such a view for ranking and counting as well."""
        ...

    def write(self, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
        """Write memories; a text already there in its space, session and kind is left as it is.

        A turn whose client id has another text is a `Conflict`: then nothing is written.
        """
        ...

    def revise(self, revision: Revision, model: Model | None) -> SaveResult:
        """Change a memory, unless it is no longer of the version the revision was made from."""
        ...

    def supersede(
        self, old: str, new: str | None, space: str, who: str, reason: str | None
    ) -> None:
        """Say which memory holds instead of another, or with `None` that it holds again."""
        ...

    def forget(
        self, memory_ids: Sequence[str], space: str, who: str, reason: str | None
    ) -> list[str]:
        """Hide memories with all their texts; give the ids of those that were not hidden before."""
        ...

    def restore(self, memory_id: str, space: str, who: str) -> bool:
        """Show a hidden memory again; say whether it had been hidden."""
        ...

    def restore_session(self, session_id: str, space: str, who: str) -> list[str]:
        """Show again what was hidden last of a session; give the ids."""
        ...

    def forget_emitted(self, space: str, session_id: str) -> None:
        """Let go of what was noted as given out to a session."""
        ...

    def merge(
        self, keep: str, others: Sequence[str], space: str, who: str, reason: str | None
    ) -> Merged:
        """Give one memory the labels and accesses of others as well, and hide those."""
        ...

    def pin(self, memory_id: str, space: str, who: str, *, pinned: bool) -> None:
        """Have a memory stand first in every prompt that it can be seen in, or no longer."""
        ...

    def rename_entity(self, name: str, new_name: str, space: str) -> Entity:
        """Give an entity another name; the old one stays an alias."""
        ...

    def merge_entities(self, names: Sequence[str], into: str, space: str) -> Entity:
        """Make one entity of several; the other names stay aliases."""
        ...

    def remove(self, memory_ids: Sequence[str], space: str, *, tombstones: bool) -> Removal:
        """Take memories out for good with every trace of them, and look whether any is left."""
        ...

    def prune(self, grace: timedelta, limit: int) -> int:
        """Erase some of the memories that were noticed to be expired a grace period ago.

        Count them. Time counts as far as the store has seen it pass: a wall clock that jumps ahead
        ends no grace period.
        """
        ...

    def count_accesses(self, memory_ids: Sequence[str], space: str) -> None:
        """Count that memories were given out; cheap, and made up for later while others write."""
        ...

    def note_emitted(self, chunk_ids: Sequence[str], space: str, session_id: str | None) -> None:
        """Note which passages, or whole memories, were given out for a prompt; never wait."""
        ...

    def settle_emitted(self) -> None:
        """See that what was noted so shows to readers, if nobody else writes just now."""
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

        Chunks whose numbers are given as `without` are left out.
        """
        ...

    def count_pending(self, of: Sequence[str] = ()) -> int:
        """Count the chunks that still lack vectors, of some memories, or in all spaces."""
        ...

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add the vectors of pending chunks that are still there, and count the chunks."""
        ...

    def dumping(self, space: str | None, *, vectors: bool) -> AbstractContextManager[Dump]:
        """Open everything that one space, or all of them, hold at this moment."""
        ...

    def adopt_models(self, models: Sequence[Model], active: str | None) -> None:
        """Make models known whose vectors will be loaded; a store without one takes `active`."""
        ...

    def load(self, records: Sequence[Record], *, force: bool) -> list[Loaded]:
        """Write records as they were in another store; what is known or was erased stays out."""
        ...

    def finish_loading(self, renamed: Mapping[str, str], entities: Sequence[EntityRecord]) -> None:
        """Drop entities that nothing names, and point to memories by the ids they have here."""
        ...

    def tombstoned(self, keys: Sequence[DedupKey]) -> set[DedupKey]:
        """Find which texts were forgotten for good."""
        ...

    def taken(self, memory_ids: Sequence[str]) -> set[str]:
        """Find which ids are in use, in any space, hidden or not."""
        ...

    def back_up(self, path: Path) -> None:
        """Copy the store to a file as it is at this moment, while others go on using it."""
        ...

    def refresh(self) -> None:
        """Bring what is derived up to date, so that the next search, in any process, is fast."""
        ...

    def status(self, space: str) -> Status:
        """Describe the store."""
        ...

    def inventory(self, space: str) -> Inventory:
        """Count what a space holds by kind, and what the store's files take."""
        ...

    @property
    def ledger(self) -> Ledger | None:
        """Give the place for counts; `None` where nothing can be written."""
        ...

    def report_work(self, to: Callable[[str, float], None]) -> None:
        """Have work on the index reported as it is done: what it was, and its seconds."""
        ...

    def inspect(self) -> list[Finding]:
        """Check what searches go by, in little time; change nothing."""
        ...

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and everything derived from it; mend what can be derived if asked to."""
        ...

    def rebuild(self) -> None:
        """Make everything derived anew from text, metadata and vectors."""
        ...

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        ...

    def close(self) -> None:
        """Release files, connections and memory."""
        ...
