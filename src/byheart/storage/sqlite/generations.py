"""Store the vectors of several models, and which model searches use.

Vectors of the next model are added without an entry in the `changes` log, because no search reads
them. The switch is one change of the store like any other: the index and the embedder of every
process follow it at the next search. Rows of `models` are never removed, so that a number always
means the same model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from byheart.contracts import EmbedderSpec, Model, PendingChunk, Window
from byheart.errors import Conflict, Do, Hint
from byheart.storage.sqlite import writing
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.rows import CHUNK, to_chunk

# Dropped vectors are overwritten: this many take the write lock for some hundredths of a second.
_DROPPED_AT_A_TIME = 2000

_LACKS = """c.chunk_type NOT IN ('aside', 'echo') AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.chunk_no = c.chunk_no AND v.model_no =
    (SELECT model_no FROM models WHERE name = ? AND dimensions = ?))"""
_LACKING = f"""
    SELECT {CHUNK}, m.title, c.memory_no, m.memory_id
    FROM chunks c JOIN memories m USING (memory_no)
    WHERE c.chunk_no > ? AND {_LACKS} ORDER BY c.chunk_no LIMIT ?"""
_CHUNK_AT = f"SELECT {CHUNK} FROM chunks c WHERE memory_no = ? AND chunk_index = ?"


class Generations:
    """Add vectors of another model beside those in use, and switch between models."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def spec_of(self, model: Model) -> EmbedderSpec | None:
        """Describe how to open the embedder of a model again, if that was recorded."""
        with self._database.reading() as connection:
            spec = connection.execute(
                "SELECT spec FROM models WHERE name = ? AND dimensions = ?", model
            ).get
        known = json.loads(spec) if spec else None
        if not isinstance(known, dict):
            return None
        return EmbedderSpec(str(known.get("provider", "")), str(known.get("model", "")))

    def note(self, model: Model, spec: EmbedderSpec | None) -> None:
        """Record a model, and how to open its embedder again."""
        with self._database.writing() as connection:
            _note(connection, model, spec)

    def begin(self, model: Model) -> None:
        """Record which model comes next, so that its vectors do not count as unused."""
        with self._database.writing() as connection:
            _refuse_other_dimensions(connection, model)
            _note(connection, model, None)
            _set(connection, "next_model", None if _active(connection) == model else model.name)

    def lacking(self, model: Model, after: int, limit: int) -> list[PendingChunk]:
        """List chunks without vectors of a model, in order of their numbers, after `after`."""
        with self._database.reading() as connection:
            rows = connection.execute(_LACKING, (after, *model, limit)).fetchall()
            return list(to_embed(connection, rows))

    def count_lacking(self, model: Model) -> tuple[int, int]:
        """Count the chunks without vectors of a model, and all chunks."""
        with self._database.reading() as connection:
            total = int(connection.execute("SELECT count(*) FROM chunks").get)
            return _count_lacking(connection, model), total

    def add(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add vectors of a model to chunks that have none, and count these chunks."""
        with self._database.writing() as connection:
            if _active(connection) in (None, model):
                return writing.add_vectors(connection, model, made)
            model_no = _number(connection, model)
            return sum(
                writing.insert_vectors(connection, chunk_no, model_no, windows)
                for chunk_no, windows in made.items()
                if _lacks(connection, chunk_no, model)
            )

    def switch(self, model: Model, most_lacking: int | None) -> int | None:
        """Search by another model from now on, unless too many chunks lack vectors of that model.

        Return how many chunks wait for vectors now, or `None` if the model was not switched.
        """
        with self._database.writing() as connection:
            active = _active(connection)
            if active == model:
                # A store without vectors has adopted the first model that came.
                waiting: int = connection.execute("SELECT count(*) FROM pending_vectors").get
                return waiting if most_lacking is None or waiting <= most_lacking else None
            lacking = _count_lacking(connection, model)
            if most_lacking is not None and lacking > most_lacking:
                return None
            _set(connection, "model", model.name)
            _set(connection, "previous_model", active and active.name)
            _set(connection, "next_model", None)
            connection.execute("DELETE FROM pending_vectors")
            connection.execute(
                f"INSERT INTO pending_vectors SELECT chunk_no FROM chunks c WHERE {_LACKS}", model
            )
            writing.record_switch(connection)
            return lacking

    def previous(self) -> Model | None:
        """Name the model that was in use before the last switch, if its vectors are still kept."""
        with self._database.reading() as connection:
            return _named(connection, "previous_model")

    def count_unused(self) -> int:
        """Count the vectors of all models but the one in use."""
        with self._database.reading() as connection:
            unused = json.dumps(_unused(connection, next_too=True))
            # The index covers this query, so that SQLite need not read the large rows.
            return int(
                connection.execute(
                    "SELECT count(*) FROM vectors INDEXED BY vectors_by_chunk "
                    "WHERE model_no IN (SELECT value FROM json_each(?))",
                    (unused,),
                ).get
            )

    def drop_unused(self, *, next_too: bool) -> int:
        """Remove and count vectors of models not in use; with `next_too`, of the next one too."""
        dropped, last_chunk = 0, 0
        while True:
            with self._database.writing() as connection:
                # Look up the models each time: another process may have switched meanwhile.
                unused = _unused(connection, next_too=next_too)
                _set(connection, "previous_model", None)
                if next_too:
                    _set(connection, "next_model", None)
                rows: list[Any] = connection.execute(
                    "SELECT chunk_no, vector_no FROM vectors INDEXED BY vectors_by_chunk "
                    "WHERE chunk_no >= ? AND model_no IN (SELECT value FROM json_each(?)) "
                    "ORDER BY chunk_no LIMIT ?",
                    (last_chunk, json.dumps(unused), _DROPPED_AT_A_TIME),
                ).fetchall()
                connection.executemany(
                    "DELETE FROM vectors WHERE vector_no = ?", ((row[1],) for row in rows)
                )
            if not rows:
                return dropped
            dropped, last_chunk = dropped + len(rows), rows[-1][0]


def to_embed(connection: apsw.Connection, rows: Iterable[Any]) -> Iterable[PendingChunk]:
    """Read rows of `CHUNK`, title and memory (number, id); add the previous chunk to each."""
    for row in rows:
        chunk = to_chunk(row[1:10])
        before = connection.execute(_CHUNK_AT, (row[11], chunk.index - 1)).get
        yield PendingChunk(row[0], chunk, before and to_chunk(before[1:]), row[10], row[12])


def _active(connection: apsw.Connection) -> Model | None:
    return _named(connection, "model")


def _named(connection: apsw.Connection, key: str) -> Model | None:
    row = connection.execute(
        "SELECT name, dimensions FROM models WHERE name = (SELECT value FROM store WHERE key = ?)",
        (key,),
    ).get
    return None if row is None else Model(*row)


def _number(connection: apsw.Connection, model: Model) -> int | None:
    return connection.execute(  # type: ignore[no-any-return]
        "SELECT model_no FROM models WHERE name = ? AND dimensions = ?", model
    ).get


def _note(connection: apsw.Connection, model: Model, spec: EmbedderSpec | None) -> None:
    connection.execute(
        "INSERT INTO models (name, dimensions, spec) VALUES (?, ?, ?) ON CONFLICT (name) "
        "DO UPDATE SET spec = ifnull(excluded.spec, spec) WHERE dimensions = excluded.dimensions",
        (*model, None if spec is None else json.dumps(spec._asdict())),
    )


def _refuse_other_dimensions(connection: apsw.Connection, model: Model) -> None:
    row = connection.execute(
        "SELECT model_no, dimensions FROM models WHERE name = ?", (model.name,)
    ).get
    if row is None or row[1] == model.dimensions:
        return
    held = connection.execute("SELECT 1 FROM vectors WHERE model_no = ? LIMIT 1", (row[0],)).get
    if held:
        raise Conflict(
            f"the store holds vectors of {row[1]} dimensions under the name {model.name}, and "
            f"this one makes {model.dimensions}: the name must tell them apart",
            Hint("if they are not in use, drop them with: ", Do("doctor", optimize=True)),
        )
    connection.execute(
        "UPDATE models SET dimensions = ? WHERE model_no = ?", (model.dimensions, row[0])
    )


def _lacks(connection: apsw.Connection, chunk_no: int, model: Model) -> bool:
    """Say whether a chunk still exists and has no vectors of a model."""
    return bool(
        connection.execute(
            f"SELECT 1 FROM chunks c WHERE c.chunk_no = ? AND {_LACKS}", (chunk_no, *model)
        ).get
    )


def _count_lacking(connection: apsw.Connection, model: Model) -> int:
    return int(connection.execute(f"SELECT count(*) FROM chunks c WHERE {_LACKS}", model).get)


def _unused(connection: apsw.Connection, *, next_too: bool) -> list[int]:
    kept = ["model"] if next_too else ["model", "next_model"]
    rows = connection.execute(
        "SELECT model_no FROM models WHERE name NOT IN "
        "(SELECT value FROM store WHERE key IN (SELECT value FROM json_each(?)))",
        (json.dumps(kept),),
    )
    return [row[0] for row in rows]


def _set(connection: apsw.Connection, key: str, value: str | None) -> None:
    if value is None:
        connection.execute("DELETE FROM store WHERE key = ?", (key,))
    else:
        connection.execute("INSERT OR REPLACE INTO store VALUES (?, ?)", (key, value))
