"""Read and write the postings of large spaces, which are rows of the part of each space.

Readers see the runs of their snapshot, whoever replaces runs meanwhile. One process at a time
replaces runs of a space: an advisory lock, which ends with the transaction, keeps others out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from byheart.contracts import (
    NUMBER_BITS,
    ChunkVectors,
    Numbers,
    PostingBlock,
    PostingChanges,
    PostingRun,
)
from byheart.startup.late_numpy import np
from byheart.storage.postgres.connection import PostgresConnection, Space, part_schema
from byheart.storage.postgres.database import Database

_THIS_STORE = "(SELECT value FROM {schema}store WHERE key = 'store_id')"
_COVERED = f"""
    SELECT coalesce(max(last_chunk_no), 0) FROM posting_runs
    WHERE space_no = ? AND store_id = {_THIS_STORE.format(schema="")}"""
_BLOCKS = """
    SELECT b.run_no, b.key, b.block FROM posting_runs r JOIN posting_blocks b
    ON b.space_no = r.space_no AND b.run_no = r.run_no AND b.key = ANY(CAST(? AS bigint[]))
    WHERE r.space_no = ?"""
_MEMBERS = """
    SELECT run_no, members FROM posting_runs
    WHERE space_no = ? AND run_no = ANY(CAST(? AS bigint[]))"""
# One row: a row for each vector would take the client longer. Sorting numbers here is faster than
# sorting rows there.
_VECTORS = """
    SELECT array_agg(chunk_no), array_agg(vector_no), string_agg(embedding, CAST('' AS bytea))
    FROM vectors
    WHERE chunk_no = ANY(CAST(? AS bigint[])) AND model_no = ? AND vector_no <= ?"""

_WRITE = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    "SET LOCAL lock_timeout = '60s'",
    # A hung process must not keep the lock for long.
    "SET LOCAL idle_in_transaction_session_timeout = '300s'",
)
_LOCK = "advisory_xact_lock(hashtextextended('byheart postings of {schema}', $1))"
_RETIRED_FOR = "1 hour"
# The number of chunks that are looked up at a time.
_LOOKED_UP = 50_000
# The number of blocks that are written at a time: a megabyte or so.
_WRITTEN = 500


class PostgresStoredPostings:
    """Read the postings of a space in the transaction of a search; implements `StoredPostings`."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._space_no = connection.numbers.start >> NUMBER_BITS
        self._expected: dict[tuple[int, ...], psycopg.Cursor[Any]] = {}

    def covered_to(self) -> int:
        """Give the last chunk whose postings are stored; 0 if there are no runs."""
        return int(self._connection.get(_COVERED, (self._space_no,)))

    def expect_blocks(self, keys: Sequence[int]) -> None:
        """Ask for blocks that `blocks` is about to give, without waiting for them."""
        values = (list(keys), self._space_no)
        self._expected[tuple(keys)] = self._connection.execute(_BLOCKS, values, binary=True)

    def blocks(self, keys: Sequence[int]) -> Sequence[PostingBlock]:
        """Give the blocks with some keys, of all runs."""
        if tuple(keys) not in self._expected:
            self.expect_blocks(keys)
        return [PostingBlock(*row) for row in self._expected.pop(tuple(keys)).fetchall()]

    def members(self, run_nos: Sequence[int]) -> dict[int, Numbers]:
        """List the chunks of runs, in order."""
        values = (self._space_no, list(run_nos))
        rows = self._connection.execute(_MEMBERS, values, binary=True).fetchall()
        return {run_no: _to_numbers(members) for run_no, members in rows}

    def vectors(self, chunk_nos: Numbers, model_no: int, last_vector_no: int) -> ChunkVectors:
        """Give a model's vectors of chunks up to a vector, by chunk and then by their numbers."""
        values = (chunk_nos.tolist(), model_no, last_vector_no)
        row = self._connection.execute(_VECTORS, values, binary=True).fetchone()
        if row is None or row[0] is None:
            return ChunkVectors(np.empty(0, np.int64), np.empty(0, np.float32))
        numbers, vector_nos = (np.array(each, np.int64) for each in row[:2])
        vectors = np.frombuffer(row[2], "<f4").reshape(len(numbers), -1)
        order = np.lexsort((vector_nos, numbers))
        return ChunkVectors(numbers.take(order), vectors.take(order, axis=0))


class PostgresPostingStore:
    """Change the postings of one space; implements `PostingStore`."""

    def __init__(self, database: Database, space: str, local_chunks: int) -> None:
        self._database = database
        self._space = space
        self._local_chunks = local_chunks

    @property
    def local_chunks(self) -> int:
        """Give the most chunks of a space whose postings are not stored."""
        return self._local_chunks

    @contextmanager
    def changing(self, *, wait: bool) -> Iterator[PostingChanges | None]:
        """Begin to change the runs; wait for another process that is doing so, or give `None`."""
        space = self._database.find(self._space)
        assert space is not None, "a space with chunks has a number"
        schema = self._database.schema
        with self._database.connected_alone() as connection, connection.transaction():
            cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
            for statement in _WRITE:
                cursor.execute(statement)
            lock = _LOCK.format(schema=schema)
            if wait:
                cursor.execute(f"SELECT pg_{lock}", (space.space_no,))
            elif not _value(cursor.execute(f"SELECT pg_try_{lock}", (space.space_no,))):
                yield None
                return
            changes = _Changes(cursor, part_schema(schema, space.part), space, schema)
            changes.remove_foreign()
            yield changes


class _Changes:
    """Change the runs of one space in a transaction that holds its lock."""

    def __init__(
        self, cursor: psycopg.RawCursor[Any], schema: str, space: Space, store_schema: str
    ) -> None:
        self._cursor = cursor
        self._schema = schema
        self._space_no = space.space_no
        self._store_id = _THIS_STORE.format(schema=f"{store_schema}.")

    def _run(self, statement: str, *values: object) -> psycopg.RawCursor[Any]:
        statement = statement.format(schema=self._schema)
        return self._cursor.execute(statement, (self._space_no, *values), binary=True)

    def remove_foreign(self) -> None:
        """Remove the runs of another store that was here before."""
        found = self._run(
            "SELECT run_no FROM {schema}.posting_runs "
            f"WHERE space_no = $1 AND store_id <> {self._store_id}"
        )
        self.remove([row[0] for row in found.fetchall()])

    def runs(self) -> list[PostingRun]:
        """List the runs in the order of their chunks."""
        found = self._run(
            "SELECT run_no, chunks, last_chunk_no FROM {schema}.posting_runs "
            "WHERE space_no = $1 ORDER BY last_chunk_no"
        )
        return [PostingRun(*row) for row in found.fetchall()]

    def members(self, run_no: int) -> Numbers:
        """List the chunks of a run, in order."""
        found = self._run(
            "SELECT members FROM {schema}.posting_runs WHERE space_no = $1 AND run_no = $2", run_no
        )
        return _to_numbers(_value(found))

    def blocks_between(self, run_no: int, first: int, last: int) -> Iterable[PostingBlock]:
        """Give the blocks of a run whose keys are in a range, both ends included."""
        found = self._run(
            "SELECT run_no, key, block FROM {schema}.posting_blocks "
            "WHERE space_no = $1 AND run_no = $2 AND key BETWEEN $3 AND $4",
            run_no,
            first,
            last,
        )
        return [PostingBlock(*row) for row in found.fetchall()]

    def existing(self, chunk_nos: Numbers) -> Numbers:
        """Keep the chunks that the database has, of numbers in order."""
        kept = [np.empty(0, np.int64)]
        for at in range(0, len(chunk_nos), _LOOKED_UP):
            some = chunk_nos[at : at + _LOOKED_UP]
            found = self._cursor.execute(
                f"SELECT array_agg(chunk_no) FROM {self._schema}.chunks "
                "WHERE chunk_no BETWEEN $1 AND $2",
                (int(some[0]), int(some[-1])),
                binary=True,
            )
            kept.append(np.intersect1d(some, np.array(_value(found) or (), np.int64)))
        return np.concatenate(kept)

    def add(self, members: Numbers, last_chunk_no: int) -> int:
        """Add a run without blocks, and give its number."""
        found = self._run(
            "INSERT INTO {schema}.posting_runs "
            "(space_no, chunks, last_chunk_no, members, store_id) "
            f"VALUES ($1, $2, $3, $4, {self._store_id}) RETURNING run_no",
            len(members),
            last_chunk_no,
            _to_bytes(members),
        )
        return int(_value(found))

    def add_blocks(self, run_no: int, blocks: Iterable[tuple[int, bytes]]) -> None:
        """Add blocks, with their keys, to a run that this transaction added."""
        left = iter(blocks)
        # Not by COPY, which row level security does not allow.
        while some := list(islice(left, _WRITTEN)):
            self._run(
                "INSERT INTO {schema}.posting_blocks (space_no, run_no, key, block) "
                "SELECT $1, $2, * FROM unnest($3::bigint[], $4::bytea[])",
                run_no,
                [key for key, _ in some],
                [block for _, block in some],
            )

    def remove(self, run_nos: Sequence[int]) -> None:
        """Remove runs with their blocks."""
        for table in ("posting_blocks", "posting_runs") if run_nos else ():
            self._run(
                f"DELETE FROM {{schema}}.{table} "
                "WHERE space_no = $1 AND run_no = ANY($2::bigint[])",
                list(run_nos),
            )

    def retire(self, retired: bool) -> None:
        """Mark the runs as no longer needed, or as needed again; remove them an hour later."""
        moment = "coalesce(retired_at, now())" if retired else "NULL"
        self._run(
            f"UPDATE {{schema}}.posting_runs SET retired_at = {moment} "
            f"WHERE space_no = $1 AND (retired_at IS NULL) = {retired}"
        )
        found = self._run(
            "SELECT run_no FROM {schema}.posting_runs WHERE space_no = $1 "
            f"AND retired_at < now() - interval '{_RETIRED_FOR}'"
        )
        self.remove([row[0] for row in found.fetchall()])


def _value(cursor: psycopg.Cursor[Any]) -> Any:
    row = cursor.fetchone()
    return None if row is None else row[0]


def _to_bytes(numbers: Numbers) -> bytes:
    """Write numbers in order by their distances, which the server compresses well."""
    gaps = np.diff(numbers).astype("<u4")
    return numbers[:1].astype("<i8").tobytes() + gaps.tobytes()


def _to_numbers(data: bytes) -> Numbers:
    numbers = np.empty(max(0, len(data) // 4 - 1), np.int64)
    if len(numbers):
        numbers[0] = np.frombuffer(data, "<i8", 1)[0]
        numbers[1:] = np.frombuffer(data, "<u4", offset=8)
        np.cumsum(numbers, out=numbers)
    return numbers
