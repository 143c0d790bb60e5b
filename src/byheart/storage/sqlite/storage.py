"""Implement the `Storage` contract over one SQLite file and the index derived from it."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np

from byheart.contracts import (
    DedupKey,
    Draft,
    Dump,
    EntityRecord,
    Ledger,
    Loaded,
    Model,
    PendingChunk,
    Reader,
    Record,
    Revision,
    Vectors,
    Window,
    key_of,
)
from byheart.errors import StoreUnreachable
from byheart.index.index import Index
from byheart.model import Entity, Finding, Inventory, Merged, Removal, SaveResult, Status
from byheart.storage.sqlite import (
    conversation,
    copying,
    doctor_checks,
    entities,
    files,
    merging,
    pruning,
    repairs,
    sessions,
    shown_passages,
    transfer,
    versions,
    writing,
)
from byheart.storage.sqlite.accesses import Accesses
from byheart.storage.sqlite.api_keys import SqliteApiKeys
from byheart.storage.sqlite.bookmarks import SqliteBookmarks
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.erasing import erase
from byheart.storage.sqlite.generations import Generations, to_embed
from byheart.storage.sqlite.index_source import SqliteIndexedDatabase, SqliteIndexSource
from byheart.storage.sqlite.ledger import SqliteLedger
from byheart.storage.sqlite.migrations import migrate
from byheart.storage.sqlite.reading import AheadOfSnapshot, SqliteReader
from byheart.storage.sqlite.rows import CHUNK
from byheart.storage.sqlite.shown_passages import ShownPassages
from byheart.storage.sqlite.workspaces import SqliteWorkspaces

_MOST_ATTEMPTS = 50
# The waiting chunks of some memories: found through their chunks, however many others wait.
_PENDING_OF = """
    SELECT chunk_no FROM memories CROSS JOIN chunks USING (memory_no)
    CROSS JOIN pending_vectors USING (chunk_no)
    WHERE memory_id IN (SELECT value FROM json_each(?))"""
_PENDING = f"""
    SELECT {CHUNK}, m.title, c.memory_no, m.memory_id
    FROM chunks c JOIN memories m USING (memory_no) WHERE chunk_no IN (%s
        AND chunk_no NOT IN (SELECT value FROM json_each(?)) ORDER BY chunk_no LIMIT ?)
    ORDER BY chunk_no"""


class SqliteStorage:
    """Keep memories in one SQLite file that many processes may have open."""

    def __init__(self, path: Path, *, busy_timeout_seconds: float = 30) -> None:
        # Resolve links: otherwise the log, the index and the counts would be beside the link.
        try:
            path = path.resolve()
        except (OSError, RuntimeError) as error:  # circular links
            raise StoreUnreachable(f"{path} leads nowhere: {error}", "check the links") from error
        self._database = Database(path, busy_timeout_seconds)
        # Read the mark before opening the store, so that the store can only be newer.
        known = self._database.change_mark.read()
        try:
            self.schema_version = migrate(self._database)
            with self._database.reading() as connection:
                self._database.change_mark.check(connection, known)
        except BaseException:
            self._database.close()
            raise
        index_path = path.with_name(path.name + "-index")
        self._index = Index(index_path, SqliteIndexedDatabase(self._database))
        self.generations = Generations(self._database)
        self.api_keys = SqliteApiKeys(self._database)
        self.workspaces = SqliteWorkspaces(self._database)
        self.bookmarks = SqliteBookmarks(self._database)
        self._accesses = Accesses(self._database)
        self._own_sessions: set[tuple[str, str]] = set()
        self._emissions = ShownPassages(self._database)
        self._ledger = SqliteLedger(path.with_name(path.name + "-stats"), path)

    @property
    def location(self) -> str:
        """Name the file."""
        return str(self._database.path)

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        return self._database.writable

    def trouble(self) -> str | None:
        """Report that committed changes are missing from the store, if they are."""
        return self._database.change_mark.trouble()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        with self._database.reading() as connection:
            yield SqliteReader(connection, self._index)

    @contextmanager
    def searching(self) -> Iterator[Reader]:
        """Open a consistent view with the index at the same moment, for ranking and counting."""
        with self._attached() as reader:
            yield reader
        if self._index.unpublished():
            self._index.publish_in_background()

    @contextmanager
    def _attached(self) -> Iterator[SqliteReader]:
        with contextlib.ExitStack() as stack:
            for attempt in itertools.count():
                connection = stack.enter_context(self._database.reading())
                reader = SqliteReader(connection, self._index)
                try:
                    _ = reader.index
                    break
                except AheadOfSnapshot:
                    # Another thread updated the index meanwhile: begin a newer transaction.
                    stack.close()
                    if attempt == _MOST_ATTEMPTS:
                        # Perhaps an older file replaced the store: discard the index.
                        self._index.start_anew()
            yield reader

    def write(self, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
        """Write memories; leave a text alone that its space, session and kind already hold."""
        results = []
        with self._database.writing() as connection:
            for draft in drafts:
                same = writing.find_same(connection, key_of(draft.memory))
                writing.refuse_other_words(draft.memory, same)
                if same is None:
                    versions.set_aside(connection, draft.memory, draft.who)
                results.append(same or writing.insert(connection, draft, model))
        return results

    def revise(self, revision: Revision, model: Model | None) -> SaveResult:
        """Change a memory, unless its version is no longer the one the revision was made from."""
        with self._database.writing() as connection:
            return versions.revise(connection, revision, model)

    def supersede(
        self, old: str, new: str | None, space: str, who: str, reason: str | None
    ) -> None:
        """Record which memory supersedes another; with `None`, make the memory valid again."""
        with self._database.writing() as connection:
            versions.supersede(connection, old, new, space, who, reason)

    def forget(
        self, memory_ids: Sequence[str], space: str, who: str, reason: str | None
    ) -> list[str]:
        """Hide memories with all their texts; give the ids of those that were not hidden before."""
        with self._database.writing() as connection:
            return versions.forget(connection, memory_ids, space, who, reason)

    def restore(self, memory_id: str, space: str, who: str) -> bool:
        """Restore a hidden memory; say whether it had been hidden."""
        with self._database.writing() as connection:
            return versions.restore(connection, memory_id, space, who)

    def restore_session(self, session_id: str, space: str, who: str) -> list[str]:
        """Restore the memories of a session that were hidden last; give their ids."""
        with self._database.writing() as connection:
            return sessions.restore(connection, session_id, space, who)

    def forget_emitted(self, space: str, session_id: str) -> None:
        """Remove the record of passages that were given to a session."""
        with self._database.writing() as connection:
            shown_passages.forget(connection, space, session_id)

    def pin(self, memory_id: str, space: str, who: str, *, pinned: bool) -> None:
        """Pin a memory to the top of every prompt that may contain it, or remove the pin."""
        with self._database.writing() as connection:
            conversation.pin(connection, memory_id, space, who, pinned=pinned)

    def merge(
        self, keep: str, others: Sequence[str], space: str, who: str, reason: str | None
    ) -> Merged:
        """Add the labels and accesses of other memories to one memory, and hide the others."""
        with self._database.writing() as connection:
            return merging.merge(connection, keep, others, space, who, reason)

    def rename_entity(self, name: str, new_name: str, space: str) -> Entity:
        """Give an entity another name; the old name stays as an alias."""
        with self._database.writing() as connection:
            return entities.rename(connection, name, new_name, space)

    def merge_entities(self, names: Sequence[str], into: str, space: str) -> Entity:
        """Merge several entities into one; the other names stay as aliases."""
        with self._database.writing() as connection:
            return entities.merge(connection, names, into, space)

    def remove(self, memory_ids: Sequence[str], space: str, *, tombstones: bool) -> Removal:
        """Remove memories permanently with every trace of them, and search for remaining traces."""
        return erase(self._database, self._index, memory_ids, space, tombstones=tombstones)

    def prune(self, grace: timedelta, limit: int) -> int:
        """Erase and count some of the memories found to be expired a grace period ago."""
        return len(pruning.prune(self._database, pruning.EXPIRED, grace, limit))

    def count_accesses(self, memory_ids: Sequence[str], space: str) -> None:
        """Count accesses of memories; never wait: while others write, add the counts later."""
        self._accesses.count(memory_ids, space)

    def note_emitted(self, chunk_ids: Sequence[str], space: str, session_id: str | None) -> None:
        """Record which passages, or whole memories, were given out for a prompt; never wait."""
        self._emissions.add(chunk_ids, space, session_id)

    def settle_emitted(self) -> None:
        """Make recorded emissions visible to readers, unless another process is writing now."""
        self._emissions.settle()

    def known(self, keys: Sequence[DedupKey]) -> dict[DedupKey, SaveResult]:
        """Find which texts are stored already."""
        with self._database.reading() as connection:
            found = {key: writing.find_same(connection, key) for key in keys}
        return {key: result for key, result in found.items() if result is not None}

    def model(self) -> Model | None:
        """Name the model whose vectors this store holds."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT name, dimensions FROM models "
                "WHERE name = (SELECT value FROM store WHERE key = 'model')"
            ).get
        return None if row is None else Model(*row)

    def vectors_of(self, model: Model, text_hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Find the vectors of texts that were embedded before."""
        found: dict[bytes, Vectors] = {}
        with self._database.reading() as connection:
            for text_hash in text_hashes:
                row = connection.execute(
                    "SELECT embedding FROM vectors JOIN models USING (model_no) "
                    "WHERE text_hash = ? AND name = ? AND dimensions = ? LIMIT 1",
                    (text_hash, *model),
                ).get
                if row is not None:
                    found[text_hash] = np.frombuffer(row, "<f4")
        return found

    def pending(
        self, limit: int, of: Sequence[str] = (), without: Sequence[int] = ()
    ) -> list[PendingChunk]:
        """List chunks that still lack vectors, oldest first: of some memories, or of all."""
        chosen, values = _pending(of)
        values = (*values, json.dumps(list(without)), limit)
        with self._database.reading() as connection:
            rows = connection.execute(_PENDING % chosen, values).fetchall()
            return list(to_embed(connection, rows))

    def count_pending(self, of: Sequence[str] = ()) -> int:
        """Count the chunks that still lack vectors, of some memories, or in all spaces."""
        chosen, values = _pending(of)
        with self._database.reading() as connection:
            return int(connection.execute(f"SELECT count(*) FROM ({chosen})", values).get)

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add the vectors of pending chunks that are still there, and count the chunks."""
        with self._database.writing() as connection:
            return writing.add_vectors(connection, model, made)

    def status(self, space: str) -> Status:
        """Describe the store."""
        with self._attached() as reader:
            state = reader.index.state(space)
            _, vectors = reader.index.inventory(space)
            spaces, sessions = reader.count_scopes(space)
        sizes = files.sizes(self._database.path)
        return Status(
            store=self.location,
            space=space,
            schema_version=self.schema_version,
            index=state,
            vectors=vectors,
            spaces=spaces,
            sessions=sessions,
            size_bytes=sizes.store_bytes + sizes.log_bytes,
            index_bytes=sizes.index_bytes,
            writable=self.writable,
            degraded=None,
        )

    @contextmanager
    def dumping(self, space: str | None, *, vectors: bool) -> Iterator[Dump]:
        """Open the whole contents of one space, or of all spaces, at this moment."""
        with self._database.reading() as connection:
            yield transfer.SqliteDump(connection, space, vectors)

    def adopt_models(self, models: Sequence[Model], active: str | None) -> None:
        """Record models whose vectors will be loaded; a store without a model adopts `active`."""
        with self._database.writing() as connection:
            transfer.adopt_models(connection, models, active)

    def load(self, records: Sequence[Record], *, force: bool) -> list[Loaded]:
        """Write records as they were in another store; leave out known and erased texts."""
        with self._database.writing() as connection:
            loader = transfer.Loader(connection, self._own_sessions, force=force)
            return [loader.load(record) for record in records]

    def finish_loading(self, renamed: Mapping[str, str], entities: Sequence[EntityRecord]) -> None:
        """Drop entities that no memory names, and change references to the ids of this store."""
        with self._database.writing() as connection:
            transfer.finish(connection, renamed, entities)
        self._own_sessions.clear()

    def tombstoned(self, keys: Sequence[DedupKey]) -> set[DedupKey]:
        """Find which texts were forgotten for good."""
        with self._database.reading() as connection:
            return {
                key
                for key in keys
                if transfer.is_tombstoned(connection, key.space, bytes.fromhex(key.content_hash))
            }

    def taken(self, memory_ids: Sequence[str]) -> set[str]:
        """Find which ids are in use, in any space, hidden or not."""
        with self._database.reading() as connection:
            return {each for each in memory_ids if transfer.is_taken(connection, each)}

    def back_up(self, path: Path) -> None:
        """Copy the store to a file as it is at this moment; other processes can keep using it."""
        copying.copy(self._database, path)

    def inventory(self, space: str) -> Inventory:
        """Count the contents of a space by kind, and the sizes of the store's files."""
        with self._attached() as reader:
            state = reader.index.state(space)
            kinds, vectors = reader.index.inventory(space)
        return Inventory(state, kinds, vectors, files.sizes(self._database.path))

    @property
    def ledger(self) -> Ledger | None:
        """Give the ledger for counts; `None` if nothing can be written."""
        return self._ledger if self.writable else None

    def report_work(self, to: Callable[[str, float], None]) -> None:
        """Report work on the index to a callback when it is done."""
        self._index.on_work = to

    def refresh(self) -> None:
        """Update the index, and write its file if the file has fallen behind far enough."""
        with self._attached():
            pass
        if self._index.unpublished():
            self._publish()

    def inspect(self) -> list[Finding]:
        """Check the data that searches use, in little time; change nothing."""
        return doctor_checks.inspect(self._database, self._index)

    def examine(self, fix: bool = False) -> list[Finding]:
        """Check the store and all derived data; with `fix`, repair what can be derived."""
        return doctor_checks.examine(self._database, self._index, self.schema_version, fix)

    def rebuild(self) -> None:
        """Rebuild all derived data from text, metadata and vectors."""
        with self._database.writing() as connection:
            repairs.rebuild_words(connection)
            repairs.drop_unused_entities(connection)
            repairs.rebuild_pending(connection)
            repairs.rebuild_indexes(connection)
        self._index.discard()
        with self._attached():
            pass
        self._publish()

    def optimize(self) -> None:
        """Compact the database and its indexes, and drop vectors of models no longer in use."""
        self.generations.drop_unused(next_too=False)
        with self._database.writing() as connection:
            connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('optimize')")
            # Keep the last change: every index and index file refers to it.
            last = SqliteIndexSource(connection).last_change().number
            connection.execute("DELETE FROM changes WHERE change_no < ? - 10000", (last,))
        with self._database.maintaining() as connection:
            for statement in ("VACUUM", "PRAGMA optimize", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.execute(statement).fetchall()
        with self._attached():
            pass
        self._publish()

    def _publish(self) -> None:
        # The file only saves time: a full disk must not make the caller fail.
        with contextlib.suppress(OSError):
            self._index.publish()

    def close(self) -> None:
        """Release files, connections and memory; leave an index file for the next process."""
        self._accesses.flush()
        self._emissions.flush()
        self.api_keys.flush()
        if self._index.unpublished():
            self._publish()
        self._database.close()


def _pending(of: Sequence[str]) -> tuple[str, tuple[object, ...]]:
    """Give the query, and its parameters, for chunks of all or some memories without vectors."""
    if of:
        return _PENDING_OF, (json.dumps(list(of)),)
    return "SELECT chunk_no FROM pending_vectors WHERE 1", ()
