"""SqliteStorage: the `Storage` socket over one SQLite file and the index derived from it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from byheart.contracts import (
    DedupKey,
    Draft,
    Model,
    PendingChunk,
    Reader,
    Vectors,
    Window,
)
from byheart.model import Finding, SaveResult, Status
from byheart.storage.sqlite import examination, writing
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.index.index import Index, last_change
from byheart.storage.sqlite.migrations import migrate
from byheart.storage.sqlite.reading import AheadOfSnapshot, SqliteReader
from byheart.storage.sqlite.rows import CHUNK, to_chunk

_MOST_ATTEMPTS = 50
_PENDING = f"""
    SELECT {CHUNK}, m.title, c.memory_no
    FROM pending_vectors JOIN chunks c USING (chunk_no) JOIN memories m USING (memory_no)
    ORDER BY chunk_no LIMIT ?"""
_CHUNK_AT = f"SELECT {CHUNK} FROM chunks c WHERE memory_no = ? AND chunk_index = ?"


class SqliteStorage:
    """Keep memories in one SQLite file that many processes may have open."""

    def __init__(self, path: Path, *, busy_timeout_seconds: float = 30) -> None:
        self._database = Database(path, busy_timeout_seconds)
        self.schema_version = migrate(self._database)
        index_path = path.with_name(path.name + "-index")
        self._index = Index(index_path, self._database)

    @property
    def location(self) -> str:
        """Name the file."""
        return str(self._database.path)

    @property
    def writable(self) -> bool:
        """Say whether the store takes writes."""
        return self._database.writable

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open a consistent view of everything committed so far, by any process."""
        with self._database.reading() as connection:
            yield SqliteReader(connection, self._index)

    @contextmanager
    def searching(self) -> Iterator[Reader]:
        """Open such a view with the index at its very moment, for ranking and counting."""
        with self._attached() as reader:
            yield reader
        if self._index.unpublished():
            self._index.publish_in_background()

    @contextmanager
    def _attached(self) -> Iterator[Reader]:
        with contextlib.ExitStack() as stack:
            for attempt in itertools.count():
                connection = stack.enter_context(self._database.reading())
                reader = SqliteReader(connection, self._index)
                try:
                    reader.attach()
                    break
                except AheadOfSnapshot:
                    # Another thread moved the index on meanwhile: look from its moment or later.
                    stack.close()
                    if attempt == _MOST_ATTEMPTS:
                        # Or the file was replaced by an older one: then the index is of another.
                        self._index.start_anew()
            yield reader

    def write(self, drafts: Sequence[Draft], model: Model | None) -> list[SaveResult]:
        """Write memories; a text already there in its space, session and kind is left as it is."""
        results = []
        with self._database.writing() as connection:
            for draft in drafts:
                memory = draft.memory
                key = DedupKey(memory.space, memory.session_id, memory.kind, memory.content_hash)
                same = writing.find_same(connection, key)
                results.append(same or writing.insert(connection, draft, model))
        return results

    def remove(self, memory_ids: Sequence[str], space: str) -> int:
        """Remove memories with everything that belongs to them, and count them."""
        removed = 0
        with self._database.writing() as connection:
            for memory_id in memory_ids:
                memory_no = connection.execute(
                    "SELECT memory_no FROM memories WHERE memory_id = ? AND space = ?",
                    (memory_id, space),
                ).get
                if memory_no is not None:
                    writing.remove(connection, memory_no)
                    removed += 1
        return removed

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

    def pending(self, limit: int) -> list[PendingChunk]:
        """List chunks that still lack vectors, oldest first."""
        with self._database.reading() as connection:
            found = []
            rows: list[Any] = connection.execute(_PENDING, (limit,)).fetchall()
            for row in rows:
                chunk = to_chunk(row[1:10])
                before = connection.execute(_CHUNK_AT, (row[11], chunk.index - 1)).get
                found.append(PendingChunk(row[0], chunk, before and to_chunk(before[1:]), row[10]))
        return found

    def count_pending(self) -> int:
        """Count the chunks that still lack vectors, in all spaces."""
        with self._database.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM pending_vectors").get)

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add the vectors of pending chunks that are still there, and count the chunks."""
        with self._database.writing() as connection:
            return writing.add_vectors(connection, model, made)

    def status(self, space: str) -> Status:
        """Describe the store."""
        with self.searching() as reader, self._database.reading() as connection:
            vectors, spaces, sessions = connection.execute(
                "SELECT (SELECT count(*) FROM memories m JOIN chunks USING (memory_no) "
                "JOIN vectors USING (chunk_no) WHERE m.space = ?1), "
                "(SELECT count(DISTINCT space) FROM memories), "
                "(SELECT count(DISTINCT session_id) FROM memories WHERE space = ?1)",
                (space,),
            ).get
            return Status(
                store=self.location,
                space=space,
                schema_version=self.schema_version,
                index=reader.state(space),
                vectors=vectors,
                spaces=spaces,
                sessions=sessions,
                size_bytes=_size(self._database.path) + _size(_beside(self._database.path, "-wal")),
                index_bytes=_size(self._index.path),
                writable=self.writable,
                degraded=None,
            )

    def refresh(self) -> None:
        """Bring the index up to date, and its file if that has fallen behind far enough."""
        with self._attached():
            pass
        if self._index.unpublished():
            self._publish()

    def examine(self) -> list[Finding]:
        """Check the store and everything derived from it."""
        return examination.examine(self._database, self._index)

    def rebuild(self) -> None:
        """Make everything derived anew from text, metadata and vectors."""
        with self._database.writing() as connection:
            examination.rebuild_words(connection)
            examination.rebuild_pending(connection)
        self._index.discard()
        with self._attached():
            pass
        self._publish()

    def optimize(self) -> None:
        """Compact the database and its indexes."""
        with self._database.writing() as connection:
            connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('optimize')")
            # The last change stays: it is where every index, and its file, says it is.
            connection.execute(
                "DELETE FROM changes WHERE change_no < ? - 10000", (last_change(connection)[0],)
            )
        with self._database.maintaining() as connection:
            for statement in ("VACUUM", "PRAGMA optimize", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.execute(statement).fetchall()
        with self._attached():
            pass
        self._publish()

    def _publish(self) -> None:
        # The file saves time and holds no truth: a full disk must not fail what asked for it.
        with contextlib.suppress(OSError):
            self._index.publish()

    def close(self) -> None:
        """Release files, connections and memory; leave an index file for whoever comes next."""
        if self._index.unpublished():
            self._publish()
        self._database.close()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
