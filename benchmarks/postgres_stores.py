"""The stores that postgres.py asks, and the server that two of them are on."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
import psutil
import psycopg
from pgvector.psycopg import register_vector

import byheart

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgres_server import private_server
from tests.round_trips import counting_round_trips

__all__ = [
    "Byheart",
    "Item",
    "Lance",
    "Question",
    "Server",
    "Statement",
    "Where",
    "copy_space",
    "counting_round_trips",
    "running_server",
]

# The settings that a user of a machine like this one would change.
SERVER_SETTINGS = {"shared_buffers": "1GB", "maintenance_work_mem": "1GB", "max_wal_size": "4GB"}

Where = Mapping[str, str]
Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its vector."""

    text: str
    vector: peers.Vectors


# --- The stores -------------------------------------------------------------------------------


class Byheart:
    """Byheart on one of its databases, with its default settings but for the embedder."""

    def __init__(self, address: str, cache: Path, space: str | None = None) -> None:
        self.store = byheart.open(
            address, space=space, embedding_provider="hash", cache_dir=str(cache)
        )

    def fill(self, items: Sequence[Item]) -> float | None:
        """Save the passages unless they are there; give memories per second."""
        if self.store.status().index.memories >= len(items):
            return None
        started = time.perf_counter()
        self.store.save_many(items)
        rate = len(items) / (time.perf_counter() - started)
        self.store.search("the first question builds the index")
        return rate

    def search(self, question: Question, where: Where) -> list[int]:
        return self._ask(question, where, "hybrid")

    def nearest(self, question: Question, where: Where) -> list[int]:
        return self._ask(question, where, "vector")

    def _ask(self, question: Question, where: Where, mode: Any) -> list[int]:
        answer = self.store.search(question.text, peers.LIMIT, mode=mode, **where)  # type: ignore[arg-type]
        assert answer.degraded is None, answer.degraded
        return [int(hit.task_code or -1) for hit in answer.results]

    def save(self, item: Item, vector: peers.Vectors) -> None:  # noqa: ARG002
        self.store.save(**item)

    def close(self) -> None:
        self.store.close()


STATEMENT = """
    WITH asked AS MATERIALIZED (SELECT {query} AS query),
    by_word AS (
        SELECT id, row_number() OVER (ORDER BY rank DESC) AS place FROM (
            SELECT id, ts_rank_cd(words, query) AS rank FROM memory, asked
            WHERE words @@ query {condition} ORDER BY rank DESC LIMIT {depth}) AS found),
    by_vector AS (
        SELECT id, row_number() OVER (ORDER BY distance) AS place FROM (
            SELECT id, embedding <=> %(vector)s AS distance FROM memory
            WHERE true {condition} ORDER BY distance LIMIT {depth}) AS found),
    fused AS (
        SELECT id, sum(1.0 / (60 + place)) AS score
        FROM (SELECT * FROM by_word UNION ALL SELECT * FROM by_vector) AS found
        GROUP BY id ORDER BY score DESC LIMIT {limit})
    SELECT id, content, kind, agent_id, score FROM fused JOIN memory USING (id) ORDER BY score DESC
"""
NEAREST = "SELECT id FROM memory WHERE true {condition} ORDER BY embedding <=> %(vector)s LIMIT 10"


class Statement:
    """One statement of pgvector (HNSW), tsvector (GIN, ts_rank_cd) and reciprocal ranks."""

    def __init__(self, address: str, *, any_word: bool) -> None:
        self.db = psycopg.connect(address, autocommit=True)
        self.db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(self.db)
        self.db.execute(f"SET hnsw.ef_search = {peers.DEPTH}")
        self.db.execute("SET hnsw.iterative_scan = relaxed_order")
        self._any_word = any_word

    def fill(self, items: Sequence[Item], vectors: peers.Vectors) -> float | None:
        """Load the rows in bulk, then make the indexes; give rows per second."""
        if self.db.execute("SELECT to_regclass('memory')").fetchone() != (None,):
            return None
        started = time.perf_counter()
        self.db.execute(
            "CREATE TABLE memory (id integer PRIMARY KEY, content text, kind text, agent_id text,"
            " words tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED,"
            f" embedding vector({vectors.shape[1]}))"
        )
        copy = "COPY memory (id, content, kind, agent_id, embedding) FROM STDIN (FORMAT binary)"
        with self.db.cursor().copy(copy) as rows:
            rows.set_types(["int4", "text", "text", "text", "vector"])
            for number, item in enumerate(items):
                rows.write_row((number, *(item[name] for name in peers.FIELDS), vectors[number]))
        for index in ("gin (words)", "hnsw (embedding vector_cosine_ops)", "btree (kind)"):
            self.db.execute(f"CREATE INDEX ON memory USING {index}")
        self.db.execute("CREATE INDEX ON memory (agent_id)")
        return len(items) / (time.perf_counter() - started)

    def search(self, question: Question, where: Where) -> list[int]:
        text, query = question.text, "websearch_to_tsquery('english', %(text)s)"
        if self._any_word:
            text, query = " | ".join(peers.words_of(text)), "to_tsquery('english', %(text)s)"
        given = {"text": text, "vector": question.vector, **where}
        statement = self._write(STATEMENT, where).replace("{query}", query)
        return [row[0] for row in self.db.execute(statement.encode(), given)]

    def nearest(self, question: Question, where: Where) -> list[int]:
        given = {"vector": question.vector, **where}
        return [row[0] for row in self.db.execute(self._write(NEAREST, where).encode(), given)]

    def _write(self, statement: str, where: Where) -> str:
        condition = "".join(f" AND {name} = %({name})s" for name in where)
        for name, value in (
            ("condition", condition),
            ("depth", peers.DEPTH),
            ("limit", peers.LIMIT),
        ):
            statement = statement.replace(f"{{{name}}}", str(value))
        return statement

    def save(self, item: Item, vector: peers.Vectors) -> None:
        self.db.execute(
            "INSERT INTO memory (id, content, kind, agent_id, embedding)"
            " VALUES ((SELECT max(id) + 1 FROM memory), %s, %s, %s, %s)",
            (*(item[name] for name in peers.FIELDS), vector),
        )

    def close(self) -> None:
        self.db.close()


class Lance(peers.LanceDb):
    """LanceDB's own hybrid search, as in peers.py."""

    _next = 1 << 30

    def search(self, question: Question, where: Where) -> list[int]:  # type: ignore[override]
        query = self.table.search(query_type="hybrid").vector(question.vector).text(question.text)
        return self._run(query.distance_type("cosine"), where, "number")

    def nearest(self, question: Question, where: Where) -> list[int]:  # type: ignore[override]
        return super().nearest(question.vector, where)

    def save(self, item: Item, vector: peers.Vectors) -> None:
        self._next += 1
        fields = {name: item[name] for name in peers.FIELDS}
        self.table.add([{"number": self._next, "vector": vector, **fields}])


# The tables of a space that searches need, in an order that keeps references whole.
_COPIED = ("memories", "chunks", "vectors", "changes")
_BITS = 36


def copy_space(connection: psycopg.Connection[Any], source: str, target: str) -> None:
    """Copy the rows of a space under another name, unless it exists, within the server."""
    rows = connection.execute("SELECT name, space_no, part FROM byheart.spaces").fetchall()
    known = {name: (space_no, part) for name, space_no, part in rows}
    if target in known:
        return
    number, _ = known[source]
    row = connection.execute(
        "INSERT INTO byheart.spaces (space_no, name, part) SELECT number, %s, number %% "
        "(SELECT value::int FROM byheart.store WHERE key = 'parts') "
        "FROM nextval('byheart.space_numbers') AS number RETURNING space_no, part",
        (target,),
    ).fetchone()
    assert row is not None
    new, part = row
    for table in _COPIED:
        columns = connection.execute(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
            "AND NOT attisdropped",
            (f"byheart.{table}",),
        ).fetchall()
        names = [name for (name,) in columns if name != "part"]
        shifted = {
            name: f"{name} + {(new - number) << _BITS}" for name in names if name in _NUMBERS
        }
        written = {**{name: name for name in names}, **shifted}
        if table == "memories":
            written |= {"space": "%(target)s", "memory_id": "memory_id || '-' || %(target)s"}
        first = next(name for name in _NUMBERS if name in names)
        connection.execute(
            f"INSERT INTO byheart_{part:02}.{table} ({', '.join(names)}) "
            f"SELECT {', '.join(written.values())} FROM byheart.{table} "
            f"WHERE {first} >> {_BITS} = {number}".encode(),
            {"target": target},
        )
    connection.commit()


# The first one of them that a table has names its space.
_NUMBERS = ("vector_no", "change_no", "chunk_no", "memory_no")


# --- The machine ------------------------------------------------------------------------------


class Server:
    """A PostgreSQL server on this machine: its databases, and the CPU time of its processes."""

    def __init__(self, address: str) -> None:
        self._address = address
        with psycopg.connect(address) as connection:
            row = connection.execute("SELECT pg_backend_pid(), current_setting('server_version')")
            pid, self.version = row.fetchone() or (0, "")
            parent = psutil.Process(pid).parent()
        assert parent is not None, "the server must run on this machine"
        self._postmaster = parent

    def database(self, name: str, template: str = "template0") -> str:
        """Give the address of a database, and make it if needed, as a copy of another one."""
        with psycopg.connect(self._address, autocommit=True) as connection:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(known, (name,)).fetchone() is None:
                connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        return self._address.replace("/postgres?", f"/{name}?")

    def settle(self, address: str) -> None:
        """Do the work now that the server would do during the measurement."""
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def round_trip(self, address: str) -> float:
        """Time the shortest question, in milliseconds."""
        times = []
        with psycopg.connect(address, autocommit=True) as connection:
            for _ in range(300):
                started = time.perf_counter()
                connection.execute("SELECT 1").fetchone()
                times.append((time.perf_counter() - started) * 1000)
        return statistics.median(times)

    def cpu_seconds(self) -> float:
        """Add up the CPU time of all processes of the server."""
        ended = self._postmaster.cpu_times()
        pid = self._postmaster.pid
        # psutil would look at all processes of the machine, which takes longer than a search.
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return ended.children_user + ended.children_system + sum(map(_cpu_of, children))


def _cpu_of(pid: str) -> float:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


@contextmanager
def running_server(address: str | None) -> Iterator[Server]:
    """Use the server at an address, or run one for the time of the benchmark."""
    if address is not None:
        yield Server(address)
        return
    with private_server(**SERVER_SETTINGS) as server:
        yield Server(server.url())
