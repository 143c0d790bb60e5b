"""Measure large spaces on PostgreSQL: postings and vectors in the database, or in each server.

    python benchmarks/large_spaces.py --data FOLDER [--sizes 20000,100000] [--questions 60]
        [--graph-up-to 100000] [--alone]

FOLDER, passages and questions are those of speed.py; vectors are those of the hash embedder. The
rows are copied into the tables, without what only saves and raw queries need. Two servers on the
same database are asked in turns: one keeps postings and vectors in its memory, for the other one
the space is large. Their answers must be equal. Times are CPU milliseconds, p50 / p95 (process +
database server); memory is that of a process that has searched.

Hybrid questions are put to one statement of pgvector (HNSW), `tsvector` and reciprocal ranks too,
in the same turns. Above `--graph-up-to` passages the graph of HNSW is not built,
because that takes hours, and the half of the statement that searches words is asked alone. With
`--alone`, the server that keeps the index in memory is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import peers
import psycopg
import speed
from postgres_stores import Question, Server, Statement, Where

import byheart
from byheart.embedding.hash_embedder import HashEmbedder

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgres_server import private_server

FILTERS: Mapping[str, Mapping[str, str]] = {
    "no filter": {},
    "10 %": {"kind": "kind-3"},
    "1 %": {"agent_id": "agent-42"},
    "0.01 %": {"title": "title-7"},
}
MODES = ("hybrid", "fts", "vector")
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "maintenance_work_mem": "1GB"}
# The texts alone, as the statement finds them before it fuses.
WORDS = """
    SELECT id, ts_rank_cd(words, query) AS rank
    FROM memory, to_tsquery('english', %(text)s) AS query
    WHERE words @@ query {condition} ORDER BY rank DESC LIMIT {depth}
"""
_BITS = 36
_MEMORY = """
import json, sys
import byheart
given, questions = json.load(sys.stdin)
store = byheart.open(**given)
for question in questions:
    place = store.search(question).index.kept_in
status = open("/proc/self/status").read()
named = [int(status.split(name)[1].split()[0]) / 1024 for name in ("RssAnon:", "RssFile:")]
print(json.dumps([place, *named]))
store.close()
"""


def open_store(address: str, cache: Path, local_chunks: int) -> byheart.MemoryStore:
    return byheart.open(
        address,
        embedding_provider="hash",
        cache_dir=str(cache),
        notice_similar=False,
        postgres_local_chunks=local_chunks,
    )


class Passages:
    """Make passages with their vectors of the hash embedder, without end.

    The vector of a text is the sum of those of its sentences, with a length of 1.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = sentences
        self._chosen = speed.choose_sentences(sentences)
        embedder = HashEmbedder()
        self._sums = np.array([embedder._sums(each) for each in sentences], np.float32)

    def make(self, count: int) -> Iterator[tuple[str, peers.Vectors]]:
        """Make the next passages."""
        for places in islice(self._chosen, count):
            summed = self._sums[places].sum(axis=0)
            text = " ".join(self._sentences[place] for place in places)
            yield text, summed / np.linalg.norm(summed)


# The values of rows that differ from those of a memory that was saved.
_OWN = f"{1 << _BITS} | number"
_DIGEST = "sha256(convert_to(text, 'UTF8'))"
_ROWS: Mapping[str, Mapping[str, str]] = {
    "memories": {
        "memory_no": _OWN,
        "memory_id": "'mem_' || lpad(number::text, 26, '0')",
        "content_hash": _DIGEST,
        "kind": "'kind-' || number % 10",
        "agent_id": "'agent-' || number % 100",
        "source": "'title-' || number % 10000",
        "summary": "left(text, 80)",
    },
    "chunks": {
        "memory_no": _OWN,
        "chunk_no": _OWN,
        "content": "text",
        "end_char": "length(text)",
        "token_count": "150",
    },
    "vectors": {
        "vector_no": _OWN,
        "chunk_no": _OWN,
        "text_hash": f"substr({_DIGEST}, 1, 16)",
        "embedding": "vector",
    },
    "changes": {"change_no": _OWN, "memory_no": _OWN, "stamp": "number"},
}


def fill(address: str, passages: Passages, count: int) -> None:
    """Copy passages into the tables as memories of one chunk, made like one that was saved."""
    with psycopg.connect(address) as db:
        db.execute("SET search_path = byheart_01, byheart")
        [(first,)] = db.execute(
            "SELECT 1 + greatest(nextval('byheart.numbers'), nextval('byheart.chunk_numbers'))"
        ).fetchall()
        db.execute("CREATE TEMP TABLE given (number bigint, text text, vector bytea)")
        # A vector that was compressed here would stay so in the table.
        db.execute("ALTER TABLE given ALTER vector SET STORAGE EXTERNAL")
        with db.cursor().copy("COPY given FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", "text", "bytea"])
            for at, (text, vector) in enumerate(passages.make(count)):
                copy.write_row((first + at, text, vector.tobytes()))
        for table, written in _ROWS.items():
            cursor = db.execute(f"SELECT * FROM {table} ORDER BY 2 LIMIT 1".encode())
            names = [each.name for each in cursor.description or ()]
            values = [written.get(name, f"base.{name}") for name in names]
            db.execute(
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
                f"FROM given, (SELECT * FROM {table} ORDER BY 2 LIMIT 1) AS base "
                "ORDER BY number".encode()
            )
        db.execute("DROP TABLE given")
        for sequence in ("numbers", "chunk_numbers"):
            db.execute(f"SELECT setval('byheart.{sequence}', {first + count})".encode())


class Clock:
    """Read the CPU time of this process and of the processes of the server."""

    def __init__(self, address: str) -> None:
        self._server = Server(address)

    def start(self) -> tuple[float, float]:
        # Reading the clocks of the server takes time of this process, which must not count.
        server = self._server.cpu_seconds()
        return time.process_time() * 1000, server * 1000

    def since(self, start: tuple[float, float]) -> tuple[float, float]:
        client = time.process_time() * 1000
        return client - start[0], self._server.cpu_seconds() * 1000 - start[1]


class Words(Statement):
    """The half of the statement that searches words: less than the whole statement takes."""

    def fill_from(self, schema: str) -> None:
        """Copy the texts of a part of the store within the server."""
        self.db.execute(
            "CREATE TABLE memory AS SELECT chunk_no AS id, content, kind, agent_id,"
            " to_tsvector('english', content) AS words"
            f" FROM {schema}.chunks JOIN {schema}.memories USING (memory_no)".encode()
        )
        for index in ("gin (words)", "btree (kind)", "btree (agent_id)", "btree (id)"):
            self.db.execute(f"CREATE INDEX ON memory USING {index}".encode())

    def search(self, question: Question, where: Where) -> list[int]:
        given = {"text": " | ".join(peers.words_of(question.text)), **where}
        return [row[0] for row in self.db.execute(self._write(WORDS, where).encode(), given)]


def make_statement(address: str, size: int, graph_up_to: int) -> tuple[str, Statement]:
    """Fill the table of the statement anew, with the rows of the store; give its name too."""
    with psycopg.connect(address) as db:
        db.execute("DROP TABLE IF EXISTS memory")
        if size > graph_up_to:
            words = Words(address, any_word=True)
            words.fill_from("byheart_01")
            return "tsvector alone", words
        rows = db.execute(
            "SELECT content, kind, agent_id, embedding FROM byheart_01.memories "
            "JOIN byheart_01.chunks USING (memory_no) JOIN byheart_01.vectors USING (chunk_no) "
            "ORDER BY chunk_no"
        ).fetchall()
    statement = Statement(address, any_word=True)
    items = [dict(zip(peers.FIELDS, row[:3], strict=True)) for row in rows]
    vectors = np.frombuffer(b"".join(row[3] for row in rows), np.float32)
    statement.fill(items, vectors.reshape(len(rows), -1))
    return "statement", statement


def ask(
    stores: Mapping[str, byheart.MemoryStore],
    other: tuple[str, Statement],
    questions: Sequence[str],
    clock: Clock,
) -> Iterator[str]:
    """Ask every store everything, in turns; give a line for each mode and filter."""
    vectors = HashEmbedder().embed(list(questions))
    for mode in MODES:
        for name, where in FILTERS.items():
            given = {"source_label": where["title"]} if "title" in where else dict(where)
            for store in stores.values():
                for question in questions[:3]:
                    store.search(f"{question} please", mode=mode, **given)  # type: ignore[arg-type]
            spent: dict[str, list[tuple[float, float]]] = {place: [] for place in stores}
            differing = 0
            for question, vector in zip(questions, vectors, strict=True):
                answers = []
                for place, store in stores.items():
                    start = clock.start()
                    found = store.search(question, mode=mode, **given)  # type: ignore[arg-type]
                    spent[place].append(clock.since(start))
                    answers.append([(hit.memory_id, hit.score) for hit in found.results])
                    assert found.index.kept_in == place
                differing += answers[0] != answers[-1]
                if mode == "hybrid" and "title" not in where:
                    start = clock.start()
                    other[1].search(Question(question, vector), where)
                    spent.setdefault(other[0], []).append(clock.since(start))
            parts = []
            for place, times in spent.items():
                total = sorted(client + server for client, server in times)
                client, server = (statistics.median(each) for each in zip(*times, strict=True))
                p50, p95 = statistics.median(total), total[int(len(total) * 0.95)]
                parts.append(f"{place} {p50:.1f} / {p95:.1f} ({client:.1f} + {server:.1f})")
            yield f"{mode:7} {name:10} {'  '.join(parts)}  differing answers {differing}"


def recall_at_10(address: str, store: byheart.MemoryStore, questions: Sequence[str]) -> float:
    """Compare the ten nearest passages with those of an exact search of all vectors."""
    asked = HashEmbedder().embed(list(questions))
    nearest: list[list[tuple[float, str]]] = [[] for _ in questions]
    with psycopg.connect(address) as db, db.cursor("all vectors", binary=True) as cursor:
        cursor.itersize = 20_000
        cursor.execute(
            "SELECT memory_id, embedding FROM byheart_01.vectors "
            "JOIN byheart_01.chunks USING (chunk_no) JOIN byheart_01.memories USING (memory_no)"
        )
        while rows := cursor.fetchmany(20_000):
            matrix = np.frombuffer(b"".join(row[1] for row in rows), np.float32)
            nearness = asked @ matrix.reshape(len(rows), -1).T
            best = np.argpartition(-nearness, 10, axis=1)[:, :10]
            for at, places in enumerate(best.tolist()):
                found = [(float(nearness[at, place]), rows[place][0]) for place in places]
                nearest[at] = sorted(nearest[at] + found, reverse=True)[:10]
    shares = []
    for question, truth in zip(questions, nearest, strict=True):
        hits = store.search(question, 10, mode="vector").results
        shares.append(len({hit.memory_id for hit in hits} & {name for _, name in truth}) / 10)
    return statistics.mean(shares)


def sizes(address: str) -> str:
    with psycopg.connect(address) as db:
        rows = db.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relname IN "
            "('posting_blocks', 'posting_runs', 'chunks', 'vectors', 'memories', "
            "'published_index_parts') AND pg_total_relation_size(oid) > 200000 ORDER BY 1"
        ).fetchall()
    return ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in rows)


def memory_of(address: str, cache: Path, local_chunks: int, questions: Sequence[str]) -> str:
    given = {
        "db_path": address,
        "embedding_provider": "hash",
        "cache_dir": str(cache),
        "postgres_local_chunks": local_chunks,
    }
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY],
        input=json.dumps([given, list(questions)]),
        capture_output=True,
        text=True,
        check=True,
    )
    place, private, mapped = json.loads(done.stdout)
    return f"{place}: {private:.0f} MB private, {mapped:.0f} MB of mapped files"


def main() -> None:
    """Fill a space step by step, and measure at each size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default="20000,100000")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--graph-up-to", type=int, default=100_000)
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    sentences, questions = speed.read_texts(asked.data)
    questions, passages = questions[: asked.questions], Passages(sentences)
    with tempfile.TemporaryDirectory() as folder, private_server(**SETTINGS) as server:
        address, held = server.url(parts="2"), 1
        caches = {"memory": Path(folder) / "one", "database": Path(folder) / "two"}
        least = {"memory": 1_000_000_000, "database": 1000}
        with closing(open_store(address, caches["memory"], least["memory"])) as store:
            [(text, _)] = passages.make(1)
            store.save(text, kind="kind-0", agent_id="agent-0")
        if asked.alone:
            del caches["memory"]
        for size in map(int, asked.sizes.split(",")):
            started = time.process_time()
            fill(server.url(), passages, size - held)
            print(f"\n{size:,} chunks; filled in {time.process_time() - started:.0f} s")
            held = size
            stores, clock = {}, Clock(server.url())
            for place, cache in caches.items():
                start = clock.start()
                stores[place] = open_store(address, cache, least[place])
                stores[place].search("the first question reads all texts")
                built = clock.since(start)
                start = clock.start()
                stores[place]._storage.refresh("default")
                stored = clock.since(start)
                took = [f"{mine / 1000:.1f} + {its / 1000:.1f} s" for mine, its in (built, stored)]
                print(f"{place}: read {took[0]}, publish {took[1]}", flush=True)
            other = make_statement(server.url(), size, asked.graph_up_to)
            with psycopg.connect(server.url(), autocommit=True) as db:
                db.execute("VACUUM ANALYZE")
            print(sizes(server.url()), flush=True)
            for line in ask(stores, other, questions, clock):
                print(line, flush=True)
            found = recall_at_10(server.url(), stores["database"], questions)
            print(f"recall@10 of vectors: {found:.3f}", flush=True)
            start = clock.start()
            for number in range(20):
                text = f"Fresh text {number} of {size}: {questions[number % len(questions)]}"
                memory_id = stores["database"].save(text).memory_id
                hits = stores["database"].search(text).results
                assert memory_id in [hit.memory_id for hit in hits]
            took = [f"{each / 20:.1f}" for each in clock.since(start)]
            print(f"a save and a search for it: {took[0]} + {took[1]} ms")
            other[1].close()
            for each in stores.values():
                each.close()
            for place, cache in caches.items():
                print(memory_of(address, cache, least[place], questions[:30]), flush=True)


if __name__ == "__main__":
    main()
