"""Look up and change the rows of models and vectors.

Vectors of a model that is not in use are added without an entry in the `changes` log, because no
search reads them. A switch is one change of the store like any other: the index and the embedder of
every process follow it at the next search. Rows of `models` are never removed, so that a number
always means the same model.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from byheart.contracts import (
    EmbedderSpec,
    KnownModel,
    Model,
    Models,
    PendingChunk,
    VectorCounts,
    Vectors,
    Window,
)
from byheart.startup.late_numpy import np
from byheart.storage.sql import writing
from byheart.storage.sql.changes import record_change, record_switch
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import CHUNK, UNEMBEDDED_TYPES, text_list, to_chunk
from byheart.storage.sql.store_values import SET_VALUE

# The name of the model in use, or NULL, as a value in a statement.
NAME_IN_USE = "(SELECT value FROM store WHERE key = 'model')"
_NUMBER = "SELECT model_no FROM models WHERE name = ? AND dimensions = ?"
_KEYS = {"active": "model", "next": "next_model", "previous": "previous_model"}
_READ = """
    SELECT key, value, NULL, NULL, NULL FROM store
    WHERE key IN ('model', 'next_model', 'previous_model')
    UNION ALL SELECT NULL, name, dimensions, spec, model_no FROM models ORDER BY 5"""
_LACKS = f"""c.chunk_type NOT IN {UNEMBEDDED_TYPES} AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.chunk_no = c.chunk_no AND v.model_no =
    ({_NUMBER}))"""
_LACKING = f"SELECT c.chunk_no FROM chunks c WHERE {_LACKS}"
_LACKING_OF = f"""
    SELECT c.chunk_no FROM memories CROSS JOIN chunks c USING (memory_no)
    WHERE memory_id IN (SELECT value FROM json_each(?)) AND {_LACKS}"""
# The chunks of `pending_vectors` are those that lack vectors of the model in use.
_WAITING = "SELECT c.chunk_no FROM pending_vectors c WHERE 1 = 1"
# The waiting chunks of some memories: found through their chunks, however many others wait.
_WAITING_OF = """
    SELECT c.chunk_no FROM memories CROSS JOIN chunks c USING (memory_no)
    CROSS JOIN pending_vectors USING (chunk_no)
    WHERE memory_id IN (SELECT value FROM json_each(?))"""
_WAITING_BY_NUMBER = """
    SELECT c.chunk_no FROM pending_vectors c
    WHERE c.chunk_no IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"""
_TO_EMBED = f"""
    SELECT {CHUNK}, m.title, m.memory_id, m.space, c.memory_no
    FROM chunks c JOIN memories m USING (memory_no) WHERE c.chunk_no IN (%s
        AND c.chunk_no > ? AND c.chunk_no NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?))
        ORDER BY c.chunk_no LIMIT ?)
    ORDER BY c.chunk_no"""
_CHUNK_AT = f"SELECT {CHUNK} FROM chunks c WHERE memory_no = ? AND chunk_index = ?"


class SqlModelRows:
    """Look up and change models and vectors within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self) -> Models:
        """Give the models of the store."""
        names, known = {}, []
        for key, value, dimensions, spec, _ in self._connection.all(_READ):
            if key is not None:
                names[key] = value
            else:
                known.append(KnownModel(value, dimensions, _to_spec(spec)))
        return Models(tuple(known), **{each: names.get(key) for each, key in _KEYS.items()})

    def lacking(
        self,
        model: Model | None,
        limit: int,
        after: int = 0,
        of: Sequence[str] = (),
        without: Sequence[int] = (),
    ) -> list[PendingChunk]:
        """List chunks without vectors of a model, or of the model in use, by their numbers."""
        chosen, values = self._lacking(model, of)
        values = (*values, after, json.dumps(list(without)), limit)
        rows = self._connection.all(_TO_EMBED % chosen, values)
        return list(self._to_embed(rows))

    def waiting(self, chunk_nos: Sequence[int]) -> list[PendingChunk]:
        """Read chunks by their numbers; leave out those that wait for vectors no longer."""
        values = (json.dumps(list(chunk_nos)), 0, "[]", len(chunk_nos))
        return list(self._to_embed(self._connection.all(_TO_EMBED % _WAITING_BY_NUMBER, values)))

    def _to_embed(self, rows: Sequence[Any]) -> Iterable[PendingChunk]:
        """Read rows of `_TO_EMBED`; add the previous chunk to each."""
        chunks = [to_chunk(row[1:10]) for row in rows]
        places = ((row[13], chunk.index - 1) for row, chunk in zip(rows, chunks, strict=True))
        before = self._connection.get_many(_CHUNK_AT, places)
        for row, chunk, previous in zip(rows, chunks, before, strict=True):
            yield PendingChunk(row[0], chunk, previous and to_chunk(previous[1:]), *row[10:13])

    def count_lacking(self, model: Model | None, of: Sequence[str] = ()) -> int:
        """Count chunks without vectors of a model, or of the model in use."""
        if model is None and not of and not self._own_numbers():
            # SQLite counts a whole table without reading its rows.
            return int(self._connection.get("SELECT count(*) FROM pending_vectors"))
        chosen, values = self._lacking(model, of)
        return int(self._connection.get(f"SELECT count(*) FROM ({chosen}) AS lacking", values))

    def any_waiting(self) -> bool:
        """Say whether a chunk lacks vectors of the model in use."""
        chosen, values = self._lacking(None, ())
        return self._connection.get(f"{chosen} LIMIT 1", values) is not None

    def _lacking(self, model: Model | None, of: Sequence[str]) -> tuple[str, tuple[object, ...]]:
        """Give the query, and its parameters, for chunks of all or some memories without vectors.

        A transaction of one space sees only chunks of that space, whatever others are in its part.
        """
        own = self._own_numbers()
        condition, bounds = (" AND c.chunk_no BETWEEN ? AND ?", own) if own else ("", ())
        values = (text_list(of),) if of else ()
        if model is None:
            chosen = _WAITING_OF if of else _WAITING
            return chosen + condition, (*values, *bounds)
        chosen = _LACKING_OF if of else _LACKING
        return chosen + condition, (*values, *model, *bounds)

    def _own_numbers(self) -> tuple[int, ...]:
        """Give the first and last number of the space of this transaction.

        Give nothing if the spaces share all numbers, or if the transaction is of the whole store.
        """
        numbers = self._connection.numbers
        return (numbers.start, numbers[-1]) if numbers.start > 0 else ()

    def counts(self) -> VectorCounts:
        """Count all chunks, and the vectors of each model."""
        chunks = int(self._connection.get("SELECT count(*) FROM chunks"))
        # The index covers this query, so that SQLite need not read the large rows.
        rows = self._connection.all(
            "SELECT name, held FROM (SELECT model_no, count(*) AS held FROM vectors "
            "INDEXED BY vectors_by_chunk GROUP BY model_no) AS counted JOIN models USING (model_no)"
        )
        return VectorCounts(chunks, dict(rows))

    def vectors_of(self, model: Model, text_hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Find the vectors of texts that were embedded before."""
        held = self._connection.get_many(
            "SELECT embedding FROM vectors JOIN models USING (model_no) "
            "WHERE text_hash = ? AND name = ? AND dimensions = ? LIMIT 1",
            ((text_hash, *model) for text_hash in text_hashes),
        )
        return {
            text_hash: np.frombuffer(embedding, "<f4")
            for text_hash, embedding in zip(text_hashes, held, strict=True)
            if embedding is not None
        }

    def write(self, models: Models) -> None:
        """Write the models of the store. If another one is in use now, searches follow it."""
        before = self.read()
        self._connection.run_many(
            "INSERT INTO models (name, dimensions, spec) VALUES (?, ?, ?) ON CONFLICT (name) "
            "DO UPDATE SET dimensions = excluded.dimensions, spec = excluded.spec",
            ((*each.model, _spec_json(each.spec)) for each in models.known),
        )
        for each, key in _KEYS.items():
            self._set(key, getattr(models, each))
        active = models.in_use()
        if active is not None and models.active != before.active:
            for _ in self._connection.parts():
                self._connection.run("DELETE FROM pending_vectors")
                self._connection.run(f"INSERT INTO pending_vectors (chunk_no) {_LACKING}", active)
            # No index holds vectors of a store that used no model before.
            if before.active is not None:
                record_switch(self._connection)

    def _set(self, key: str, value: str | None) -> None:
        if value is None:
            self._connection.run("DELETE FROM store WHERE key = ?", (key,))
        else:
            self._connection.run(SET_VALUE, (key, value))

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add vectors of a known model to chunks that lack them, and count these chunks."""
        is_active = number_in_use(self._connection, model) is not None
        model_no = self._connection.get(_NUMBER, model)
        added = [
            chunk_no
            for chunk_no, windows in made.items()
            if all(window.vector is not None for window in windows)
            and self._take(chunk_no, model, is_active)
            and writing.insert_vectors(self._connection, chunk_no, model_no, windows)
        ]
        if is_active:
            record_change(self._connection, self._owners(added))
        return len(added)

    def _take(self, chunk_no: int, model: Model, is_active: bool) -> bool:
        """Say whether a chunk still lacks vectors of a model, and end its wait for them."""
        if is_active:
            waited = "DELETE FROM pending_vectors WHERE chunk_no = ?"
            return self._connection.count(waited, (chunk_no,)) > 0
        lacks = f"SELECT 1 FROM chunks c WHERE c.chunk_no = ? AND {_LACKS}"
        return bool(self._connection.get(lacks, (chunk_no, *model)))

    def _owners(self, chunk_nos: Iterable[int]) -> list[int]:
        select = "SELECT memory_no FROM chunks WHERE chunk_no = ?"
        return sorted(set(self._connection.get_many(select, ((each,) for each in chunk_nos))))

    def drop_vectors(self, models: Collection[str], after: int, limit: int) -> list[int]:
        """Remove some vectors of models, by their names; give the number of each one's chunk."""
        rows = self._connection.all(
            "SELECT chunk_no, vector_no FROM vectors INDEXED BY vectors_by_chunk "
            "WHERE chunk_no >= ? AND model_no IN (SELECT model_no FROM models "
            "WHERE name IN (SELECT value FROM json_each(?))) ORDER BY chunk_no LIMIT ?",
            (after, text_list(sorted(models)), limit),
        )
        self._connection.run_many(
            "DELETE FROM vectors WHERE vector_no = ?", ((row[1],) for row in rows)
        )
        return [row[0] for row in rows]


def number_in_use(connection: Connection, model: Model | None) -> int | None:
    """Give the number of a model if it is the one in use."""
    if model is None:
        return None
    return connection.get(f"{_NUMBER} AND name = {NAME_IN_USE}", model)  # type: ignore[no-any-return]


def _to_spec(text: str | None) -> EmbedderSpec | None:
    known = json.loads(text) if text else None
    if not isinstance(known, dict):
        return None
    return EmbedderSpec(str(known.get("provider", "")), str(known.get("model", "")))


def _spec_json(spec: EmbedderSpec | None) -> str | None:
    return None if spec is None else json.dumps(spec._asdict())
