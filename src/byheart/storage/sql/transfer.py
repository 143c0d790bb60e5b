"""Transfer: whole memories out and in, as they are, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from byheart.contracts import (
    EntityRecord,
    Loaded,
    MemoryRecord,
    Model,
    Record,
    StoredText,
    TombstoneRecord,
    Window,
    key_of,
)
from byheart.model import UNEMBEDDED, HistoryEntry, Memory, text_id, to_wire
from byheart.model.ids import new_memory_id
from byheart.model.times import from_micros, now_micros, to_micros
from byheart.storage.sql import turn_order, versions, writing
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import (
    CHUNK,
    MEMORY,
    columns_of,
    life_of,
    to_chunk,
    to_memory,
)

_TEXT = f"SELECT m.memory_no, m.since_at, m.superseded_at, m.turn_no, {MEMORY} FROM memories m"
_CURRENT = f"{_TEXT} WHERE m.version_of IS NULL AND (?1 IS NULL OR m.space = ?1) ORDER BY memory_no"
_EARLIER = f"{_TEXT} WHERE m.version_of = ? AND m.space = ? ORDER BY m.version"
_CHUNKS = f"SELECT {CHUNK} FROM chunks c WHERE memory_no = ? ORDER BY chunk_index"
_VECTORS = """
    SELECT chunk_no, name, text_hash, embedding
    FROM chunks JOIN vectors USING (chunk_no) JOIN models USING (model_no)
    WHERE memory_no = ? ORDER BY chunk_no, model_no, window_index"""
_HISTORY = """
    SELECT operation, at, who, version, reason, changes FROM history
    WHERE memory_no = ? ORDER BY history_no"""
_ENTITIES = """
    SELECT space, name, (SELECT json_group_array(name) FROM
        (SELECT name FROM entity_aliases a WHERE a.entity_no = e.entity_no ORDER BY key))
    FROM entities e WHERE ?1 IS NULL OR space = ?1 ORDER BY entity_no"""
_TOMBSTONES = """
    SELECT space, lower(hex(content_hash)), at FROM tombstones
    WHERE ?1 IS NULL OR space = ?1 ORDER BY space, content_hash"""


class SqliteDump:
    """Read everything within one transaction; only the record at hand is in memory."""

    def __init__(self, connection: Connection, space: str | None, vectors: bool) -> None:
        self._connection = connection
        self._space = space
        self._vectors = vectors

    @cached_property
    def models(self) -> Sequence[Model]:
        """List the models in the order in which the store met them."""
        rows = self._connection.each("SELECT name, dimensions FROM models ORDER BY model_no")
        return [Model(*row) for row in rows]

    @cached_property
    def model(self) -> str | None:
        """Name the model that the store searches with."""
        return self._connection.get(  # type: ignore[no-any-return]
            "SELECT value FROM store WHERE key = 'model'"
        )

    @cached_property
    def memory_count(self) -> int:
        """Count the memories."""
        return int(
            self._connection.get(
                "SELECT count(*) FROM memories "
                "WHERE version_of IS NULL AND (?1 IS NULL OR space = ?1)",
                (self._space,),
            )
        )

    def records(self) -> Iterator[Record]:
        """Give entities, then memories, then tombstones.

        Entities come first so that they keep their order, tombstones last so that they do not
        stand in the way of the same text in another session.
        """
        return chain(self._entities(), self._memories(), self._tombstones())

    def _entities(self) -> Iterator[EntityRecord]:
        for space, name, aliases in self._connection.each(_ENTITIES, (self._space,)):
            yield EntityRecord(str(space), str(name), tuple(json.loads(str(aliases))))

    def _memories(self) -> Iterator[MemoryRecord]:
        rows: Any = self._connection.each(_CURRENT, (self._space,))
        for row in rows:
            text = self._text(row)
            memory = text.memory
            earlier: Any = ()
            if memory.version > 1:
                key = (memory.memory_id, memory.space)
                earlier = map(self._text, self._connection.all(_EARLIER, key))
            yield MemoryRecord(text, tuple(earlier), tuple(self._history(row[0])))

    def _text(self, row: Any) -> StoredText:
        memory_no, since_at, superseded_at, turn_no = row[:4]
        chunk_rows: Any = self._connection.all(_CHUNKS, (memory_no,))
        vectors: dict[int, dict[str, tuple[Window, ...]]] = {each[0]: {} for each in chunk_rows}
        if self._vectors:
            for chunk_no, model, text_hash, embedding in self._vector_rows(memory_no):
                window = Window(text_hash, np.frombuffer(embedding, "<f4"))
                made = vectors[chunk_no]
                made[model] = (*made.get(model, ()), window)
        return StoredText(
            memory=to_memory(row[4:]),
            since_at=from_micros(since_at),
            superseded_at=None if superseded_at is None else from_micros(superseded_at),
            chunks=tuple(to_chunk(each[1:]) for each in chunk_rows),
            vectors=tuple(vectors.values()),
            turn_no=turn_no,
        )

    def _vector_rows(self, memory_no: int) -> Any:
        return self._connection.each(_VECTORS, (memory_no,))

    def _history(self, memory_no: int) -> Iterator[HistoryEntry]:
        rows: Any = self._connection.each(_HISTORY, (memory_no,))
        for operation, at, who, version, reason, changes in rows:
            yield HistoryEntry(
                operation, from_micros(at), who, version, reason, json.loads(changes)
            )

    def _tombstones(self) -> Iterator[TombstoneRecord]:
        rows: Any = self._connection.each(_TOMBSTONES, (self._space,))
        for space, content_hash, at in rows:
            yield TombstoneRecord(space, content_hash, from_micros(at))


# --- In -----------------------------------------------------------------------------------------


def adopt_models(connection: Connection, models: Sequence[Model], active: str | None) -> None:
    """Make models known; a store that searches with none yet takes the active one."""
    connection.run_many("INSERT OR IGNORE INTO models (name, dimensions) VALUES (?, ?)", models)
    if active is not None:
        connection.run("INSERT OR IGNORE INTO store VALUES ('model', ?)", (active,))


class _KnownModel(NamedTuple):
    number: int
    dimensions: int
    active: bool


class Loader:
    """Write records within one transaction."""

    def __init__(
        self, connection: Connection, own_sessions: set[tuple[str, str]], *, force: bool
    ) -> None:
        self._connection = connection
        # The sessions that were empty when this import came to them, kept from batch to batch.
        self._own_sessions = own_sessions
        self._force = force
        rows: Any = connection.each(
            "SELECT name, model_no, dimensions, "
            "name IS (SELECT value FROM store WHERE key = 'model') FROM models"
        )
        self._models = {name: _KnownModel(*rest) for name, *rest in rows}

    def load(self, record: Record) -> Loaded:
        """Write one record, unless it is known or must not come back."""
        if isinstance(record, MemoryRecord):
            return self._load_memory(record)
        if isinstance(record, EntityRecord):
            return self._load_entity(record)
        added = self._connection.run(
            "INSERT INTO tombstones (space, content_hash, at) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (record.space, bytes.fromhex(record.content_hash), to_micros(record.at)),
        )
        return Loaded("imported" if added else "unchanged", "")

    def _load_entity(self, record: EntityRecord) -> Loaded:
        number = writing.entity_no(self._connection, record.space, record.name)
        # A spelling that is an entity of its own here stays one: nothing is merged unasked.
        self._connection.run_many(
            "INSERT OR IGNORE INTO entity_aliases (space, key, name, entity_no) "
            "SELECT ?1, ?2, ?3, ?4 "
            "WHERE NOT EXISTS (SELECT 1 FROM entities WHERE space = ?1 AND key = ?2)",
            ((record.space, alias.casefold(), alias, number) for alias in record.aliases),
        )
        return Loaded("imported", "")

    def _load_memory(self, record: MemoryRecord) -> Loaded:
        memory = record.text.memory
        known = self._find_known(memory)
        if known is not None:
            return Loaded("unchanged", known)
        if self._is_erased(memory):
            return Loaded("refused", memory.memory_id, 1)
        if is_taken(self._connection, memory.memory_id):
            # By a memory of another space: this one is a copy, and gets a name of its own.
            record = _rename(record, new_memory_id())
            memory = record.text.memory
        # The oldest goes in first: the order of numbers is the order of an export.
        erased = [each.memory.version for each in record.earlier if self._is_erased(each.memory)]
        turn_no = self._place(record.text)
        for each in record.earlier:
            if each.memory.version not in erased:
                stayed = each.memory.session_id == memory.session_id
                self._insert(each, turn_no if stayed else each.turn_no)
        number = self._insert(record.text, turn_no)
        self._connection.run_many(
            "INSERT INTO history (memory_no, operation, at, who, version, reason, changes) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (number, *_history_columns(_without_quotes(entry, erased)))
                for entry in record.history
            ),
        )
        return Loaded("imported", memory.memory_id, len(erased))

    def _find_known(self, memory: Memory) -> str | None:
        """Find a memory of the same space by its id, or else the one that holds its text here."""
        home = self._connection.get(
            "SELECT space FROM memories WHERE memory_id = ?", (memory.memory_id,)
        )
        if home == memory.space:
            return memory.memory_id
        key = key_of(memory)
        if memory.forgotten_at is not None and key.client_id is None:
            return None
        other = writing.find_live(self._connection, key)
        if other is None:
            return None
        ran_out = memory.expires_at is not None and to_micros(memory.expires_at) <= now_micros()
        if ran_out or writing.find_same(self._connection, key) is not None:
            return other[1]
        # The one here has run out, this one has not.
        versions.set_aside(self._connection, memory, memory.source)
        return None

    def _is_erased(self, memory: Memory) -> bool:
        place = (memory.space, bytes.fromhex(memory.content_hash))
        if not self._force:
            return is_tombstoned(self._connection, *place)
        self._connection.run("DELETE FROM tombstones WHERE space = ? AND content_hash = ?", place)
        return False

    def _place(self, text: StoredText) -> int | None:
        memory = text.memory
        at = to_micros(memory.created_at)
        turn_no = text.turn_no if self._is_own(memory) else None
        return turn_order.keep_place(self._connection, memory.space, memory.session_id, turn_no, at)

    def _is_own(self, memory: Memory) -> bool:
        """Tell whether this import alone fills the session of a memory."""
        if memory.session_id is None:
            return False
        session = memory.space, memory.session_id
        if session not in self._own_sessions and turn_order.is_empty(self._connection, *session):
            self._own_sessions.add(session)
        return session in self._own_sessions

    def _insert(self, text: StoredText, turn_no: int | None) -> int:
        row = {**_columns(text), "turn_no": turn_no}
        memory, memory_no = text.memory, writing.insert_row(self._connection, row)
        for chunk, vectors in zip(text.chunks, text.vectors, strict=True):
            chunk_no = writing.insert_chunk(self._connection, memory_no, chunk)
            writing.insert_words(self._connection, chunk_no, chunk, memory.title, memory.summary)
            embedded = self._insert_vectors(chunk_no, vectors)
            if not embedded and chunk.chunk_type not in UNEMBEDDED:
                self._connection.run("INSERT INTO pending_vectors VALUES (?)", (chunk_no,))
        writing.insert_labels(self._connection, memory_no, memory)
        writing.record_change(self._connection, [memory_no])
        return memory_no

    def _insert_vectors(self, chunk_no: int, vectors: Mapping[str, Sequence[Window]]) -> bool:
        """Write vectors of models that the store knows; say whether its own was among them."""
        complete = False
        for name, windows in vectors.items():
            model = self._models.get(name)
            if model is not None and _fits(windows, model.dimensions):
                made = writing.insert_vectors(self._connection, chunk_no, model.number, windows)
                complete = complete or (made and bool(model.active))
        return complete


def _fits(windows: Sequence[Window], dimensions: int) -> bool:
    return all(each.vector is not None and each.vector.size == dimensions for each in windows)


def _columns(text: StoredText) -> dict[str, Any]:
    memory = text.memory
    earlier = memory.replaced_at is not None
    return {
        **columns_of(memory, memory.derived),
        **life_of(text),
        "memory_id": text_id(memory.memory_id, memory.version if earlier else None),
        "version_of": memory.memory_id if earlier else None,
    }


def _rename(record: MemoryRecord, memory_id: str) -> MemoryRecord:
    texts = [
        replace(each, memory=replace(each.memory, memory_id=memory_id))
        for each in (record.text, *record.earlier)
    ]
    return replace(record, text=texts[0], earlier=tuple(texts[1:]))


def _without_quotes(entry: HistoryEntry, erased: Sequence[int]) -> HistoryEntry:
    """Keep what happened, but not what it changed, where that may quote a text left out."""
    quotes = bool(erased) and entry.version <= max(erased) + 1
    return replace(entry, changes={}) if quotes else entry


def _history_columns(entry: HistoryEntry) -> tuple[Any, ...]:
    changes = json.dumps(to_wire(entry.changes), ensure_ascii=False, sort_keys=True)
    return entry.operation, to_micros(entry.at), entry.who, entry.version, entry.reason, changes


def is_tombstoned(connection: Connection, space: str, content_hash: bytes) -> bool:
    """Say whether a text was forgotten for good."""
    return bool(
        connection.get(
            "SELECT 1 FROM tombstones WHERE space = ? AND content_hash = ?", (space, content_hash)
        )
    )


def is_taken(connection: Connection, memory_id: str) -> bool:
    """Say whether an id is in use, in any space, hidden or not."""
    return bool(connection.get("SELECT 1 FROM memories WHERE memory_id = ?", (memory_id,)))


def finish(
    connection: Connection, renamed: Mapping[str, str], entities: Sequence[EntityRecord]
) -> None:
    """Drop what no memory came to name, and point to memories by the ids they have here."""
    # Only what this import brought: another one's memories may still be on their way.
    connection.run_many(
        "DELETE FROM entities WHERE space = ? AND key = ? AND NOT EXISTS "
        "(SELECT 1 FROM memory_entities m WHERE m.entity_no = entities.entity_no)",
        ((each.space, each.name.casefold()) for each in entities),
    )
    if not renamed:
        return
    links: Any = connection.all(
        "SELECT memory_no, superseded_by FROM memories m WHERE superseded_by IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM memories t WHERE t.memory_id = m.superseded_by "
        "AND t.space = m.space)"
    )
    changed = [(renamed[target], number) for number, target in links if target in renamed]
    connection.run_many("UPDATE memories SET superseded_by = ? WHERE memory_no = ?", changed)
    writing.record_change(connection, [number for _, number in changed])
