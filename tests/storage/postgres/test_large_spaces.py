"""Spaces whose postings and vectors are in the database: switching, folding, erasing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.index.posting_blocks import read_block
from byheart.index.segment import hash_term
from byheart.language.terms import terms
from byheart.settings import load_settings
from byheart.storage.postgres.address import Address
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.postgres.connection import PostgresConnection
from byheart.storage.sql.storage import SqlStorage
from byheart.store import MemoryStore
from tests.postgres_stores import postgres_store
from tests.round_trips import counting_round_trips
from tests.storage.postgres.test_round_trips import LIMITS

SETTINGS = load_settings({"embedding_provider": "hash", "notice_similar": False})
WORDS = ("ferry", "granite", "lantern", "meadow", "orchard", "pepper", "quarry", "saddle")
QUESTIONS = ("ferry to the meadow", "granite quarry", "which lantern is in the orchard?", "text 7")
Answer = list[tuple[str, float, float | None]]


class Server:
    """A store in a database, as one server has it open."""

    def __init__(self, address: Address, cache: Path, local_chunks: int) -> None:
        self.backend = PostgresBackend(address, cache, 30, local_chunks=local_chunks)
        self.storage = SqlStorage(self.backend)
        self.store = MemoryStore(self.storage, HashEmbedder(), SETTINGS)

    def save(self, numbers: range) -> list[str]:
        return [self.store.save(text_of(number)).memory_id for number in numbers]

    def ask(self) -> list[Answer]:
        """Ask all questions, by both retrievers."""
        found = (self.store.search(question, limit=40) for question in QUESTIONS)
        return [
            [(hit.memory_id, hit.score, hit.similarity) for hit in answer.results]
            for answer in found
        ]

    @property
    def kept_in(self) -> str:
        return self.store.status().index.kept_in

    def runs(self) -> list[int]:
        """Give the numbers of chunks in the runs of the space."""
        with self.backend.reading("default") as connection:
            rows = connection.all("SELECT chunks FROM posting_runs ORDER BY last_chunk_no")
        return [row[0] for row in rows]

    def stored_terms(self) -> set[int]:
        """Give the hashes of all terms that the blocks of the space have."""
        with self.backend.reading("default") as connection:
            rows = connection.all("SELECT key, block FROM posting_blocks")
        return {term for row in rows for term in read_block(*row).terms.tolist()}


def text_of(number: int) -> str:
    words = [WORDS[number % 8], WORDS[number // 8 % 8], WORDS[number // 3 % 8]]
    return f"Text {number} names the {words[0]}, the {words[1]} and the {words[2]}."


def hash_of(word: str) -> int:
    [term] = terms(word)
    return hash_term(term)


Open = Callable[..., Server]


@pytest.fixture
def open_server(tmp_path: Path) -> Iterator[Open]:
    """Open servers of one store, each with a cache folder of its own."""
    opened: list[Server] = []
    with postgres_store() as address:

        def open_one(local_chunks: int, cache: str | None = None) -> Server:
            folder = tmp_path / (cache or f"cache {len(opened)}")
            opened.append(Server(address, folder, local_chunks))
            return opened[-1]

        yield open_one
        for each in opened:
            each.store.close()


def test_a_space_moves_to_the_database_and_back(open_server: Open) -> None:
    server, local = open_server(20), open_server(1000)
    ids = server.save(range(19))
    server.ask()
    server.storage.refresh("default")
    assert (server.kept_in, server.runs()) == ("memory", [])
    ids += server.save(range(19, 30))
    # First the other server: a thread of this one may publish the space as soon as it is asked.
    expected = local.ask()
    assert server.ask() == expected
    server.storage.refresh("default")
    assert (server.kept_in, server.runs(), local.kept_in) == ("database", [30], "memory")
    assert server.ask() == local.ask()
    for each in ids[:13]:
        server.store.forget(each, hard=True)
    server.storage.refresh("default")
    assert server.kept_in == "database", "with four fifths it stays there"
    assert server.ask() == local.ask()
    server.store.forget(ids[13], hard=True)
    server.storage.refresh("default")
    assert (server.kept_in, server.runs()) == ("memory", [16]), "other servers may still need it"
    assert server.ask() == local.ask()


def test_answers_are_equal_while_another_server_folds(open_server: Open) -> None:
    server, other, local = open_server(10), open_server(10), open_server(1000)
    for start in range(0, 120, 12):
        server.save(range(start, start + 12))
        assert server.ask() == local.ask()
        # The other server stores more than this one has seen stored.
        other.storage.refresh("default")
        other.save(range(1000 + start, 1000 + start + 2))
        other.storage.refresh("default")
        assert server.ask() == other.ask() == local.ask()
    assert server.kept_in == other.kept_in == "database"
    assert sum(server.runs()) == 140
    assert len(server.runs()) <= 6, "small runs are merged"


def test_a_new_server_needs_no_texts(open_server: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    server = open_server(10)
    server.save(range(60))
    server.ask()
    server.storage.refresh("default")
    expected = server.ask()
    fresh = open_server(10)
    monkeypatch.setattr(
        "byheart.storage.sql.index_source.SqlIndexSource.chunks_after",
        lambda *_: pytest.fail("the server read the texts of a large space"),
    )
    assert fresh.ask() == expected
    assert fresh.kept_in == "database"


def test_a_search_waits_for_one_answer_more(open_server: Open) -> None:
    server = open_server(10)
    server.save(range(40))
    server.ask()
    server.storage.refresh("default")
    server.ask()  # learns the runs, and takes the sample of the background
    with counting_round_trips() as trips:
        # The thread that writes notes may hold a connection, so that a call waits once more.
        counts = [trips.count(partial(server.store.search, "pepper quarry")) for _ in range(3)]
    assert min(counts) == LIMITS["a search"] + 1


def test_a_fold_blocks_neither_searches_nor_saves(open_server: Open) -> None:
    server = open_server(10)
    server.save(range(40))
    server.ask()
    server.storage.refresh("default")
    assert (server.kept_in, server.runs()) == ("database", [40])
    store = server.backend.posting_store("default")
    assert store is not None
    with store.changing(wait=True) as changes:
        assert changes is not None
        server.save(range(40, 50))
        before = server.ask()
        server.storage.refresh("default")
        assert server.ask() == before
        assert server.runs() == [40], "another process changes the runs now"
    server.storage.refresh("default")
    assert server.runs() == [40, 10]
    assert server.ask() == before


def test_a_fold_after_the_snapshot_of_a_search_makes_nobody_read_the_texts_again(
    open_server: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = open_server(10)
    for numbers in (range(40), range(40, 50)):
        server.save(numbers)
        expected = server.ask()
        if numbers.start == 0:
            server.storage.refresh("default")
    real, folds = server.backend.reading, [server.storage.refresh]

    @contextmanager
    def reading(space: str | None) -> Iterator[PostgresConnection]:
        with real(space) as connection:
            if folds:
                connection.all("SELECT 1 FROM posting_runs")  # takes the snapshot
                folds.pop()("default")
            yield connection

    monkeypatch.setattr(server.backend, "reading", reading)
    monkeypatch.setattr(
        "byheart.storage.sql.index_source.SqlIndexSource.chunks_after",
        lambda *_: pytest.fail("the server read the texts of a large space"),
    )
    assert server.ask() == expected
    assert not folds
    assert (server.kept_in, server.runs()) == ("database", [40, 10])


def test_saves_are_found_at_once_by_all_servers_while_they_fold(open_server: Open) -> None:
    servers = [open_server(10) for _ in range(2)]
    servers[0].save(range(1000, 1030))
    lost: list[int] = []

    def work(mine: Server, other: Server, numbers: range) -> None:
        for number in numbers:
            [saved] = mine.save(range(number, number + 1))
            for server in (mine, other):
                hits = server.store.search(f"Text {number}", mode="fts", limit=50).results
                if saved not in [hit.memory_id for hit in hits]:
                    lost.append(number)
            if number % 5 == 0:
                mine.storage.refresh("default")

    with ThreadPoolExecutor(2) as threads:
        done = [
            threads.submit(work, servers[0], servers[1], range(40)),
            threads.submit(work, servers[1], servers[0], range(100, 140)),
        ]
        for each in done:
            each.result()
    assert not lost
    local = open_server(1000)
    assert servers[0].ask() == servers[1].ask() == local.ask()


def test_an_erased_text_leaves_no_postings(open_server: Open) -> None:
    server, other = open_server(10), open_server(10)
    ids = server.save(range(30))
    erased = server.store.save("The password of the zeppelin is hidden.").memory_id
    for each in (server, other):
        each.ask()
        each.storage.refresh("default")
    zeppelin = hash_of("zeppelin")
    assert zeppelin in server.stored_terms()
    removal = server.store.forget(erased, hard=True).removal
    assert removal is not None
    assert removal.traces == ()
    assert removal.unfinished is None
    assert zeppelin not in server.stored_terms()
    assert hash_of("granite") in server.stored_terms()
    # A server that still has the chunk in memory does not store it again.
    other.storage.refresh("default")
    assert zeppelin not in server.stored_terms()
    assert other.ask() == server.ask()
    assert server.runs() == [len(ids)]


def test_a_server_whose_postings_were_removed_reads_the_texts_again(open_server: Open) -> None:
    server, other = open_server(10), open_server(10)
    server.save(range(40))
    for each in (server, other):
        each.ask()
        each.storage.refresh("default")
    expected = server.ask()
    with server.backend.writing("default") as connection:
        connection.run("DELETE FROM posting_runs")
        connection.run("DELETE FROM posting_blocks")
    assert other.ask() == expected
    assert server.ask() == expected
    server.storage.refresh("default")
    assert (server.kept_in, server.runs()) == ("database", [40])
    assert server.ask() == expected


def test_a_server_that_lost_a_run_keeps_the_others(open_server: Open) -> None:
    server = open_server(10)
    for numbers in (range(40), range(40, 50)):
        server.save(numbers)
        expected = server.ask()
        server.storage.refresh("default")
    assert server.runs() == [40, 10]
    with server.backend.writing("default") as connection:
        connection.run("DELETE FROM posting_runs WHERE chunks = 10")
    assert server.ask() == expected
    assert server.runs()[0] == 40
    server.storage.refresh("default")
    assert server.runs() == [40, 10]
    assert server.ask() == expected


def test_another_model_has_its_vectors_found_in_a_large_space(open_server: Open) -> None:
    server, local = open_server(10), open_server(1000)
    server.save(range(40))
    server.ask()
    server.storage.refresh("default")
    smaller = MemoryStore(server.storage, HashEmbedder(dimensions=64), SETTINGS)
    smaller.admin.reembed()
    asked = MemoryStore(local.storage, HashEmbedder(dimensions=64), SETTINGS)
    for _ in range(2):
        for question in QUESTIONS:
            found, expected = (each.search(question, mode="vector") for each in (smaller, asked))
            assert found.results == expected.results
            assert found.results
        server.storage.refresh("default")
    assert smaller.status().index.kept_in == "database"


def test_similar_texts_means_and_windows_are_read_from_the_database(open_server: Open) -> None:
    server, local = open_server(10), open_server(1000)
    server.save(range(40))
    server.store.save("The lighthouse keeper counts the boats of the harbour every evening.")
    server.store.save("The lighthouse keeper counts the boats of the harbour each evening.")
    server.ask()
    server.storage.refresh("default")
    assert server.kept_in == "database"
    [pair, *pairs] = server.store.admin.dedupe(threshold=0.8).proposals
    assert [pair, *pairs] == list(local.store.admin.dedupe(threshold=0.8).proposals)
    ours, theirs = (each.store.views.map() for each in (server, local))
    assert (ours.memory_ids, ours.x, ours.y) == (theirs.memory_ids, theirs.x, theirs.y)
