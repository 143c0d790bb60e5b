"""The index follows a change of model: its vectors are read again, its words are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.index import contents, file
from byheart.store import MemoryStore

TEXTS = [f"{fruit} number {n}" for n, fruit in enumerate(("apple", "pear", "plum") * 200)]


def open_with(path: Path, model: str) -> MemoryStore:
    return byheart.open(path, embedding_provider="hash", embedding_model=model)


def answers(store: MemoryStore) -> list[Any]:
    return [
        [(hit.memory_id, hit.score, hit.similarity) for hit in found.results]
        for query in ("apple pear", "number 17", "plum")
        for mode in ("fts", "vector", "hybrid")
        for found in [store.search(query, mode=mode, limit=1000)]
    ]


@pytest.fixture
def filled(path: Path) -> Path:
    """Give the path of a closed store with an index file."""
    with open_with(path, "hash-64") as store:
        store.save_many({"content": text} for text in TEXTS)
        store.admin.doctor(optimize=True)
    return path


@pytest.fixture
def count_chunks_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the chunks whose words are read from now on."""
    read = 0
    whole = contents.chunk_terms

    def counted(*given: Any) -> list[str]:
        nonlocal read
        read += 1
        return whole(*given)

    monkeypatch.setattr(contents, "chunk_terms", counted)
    return lambda: read


def test_an_open_index_follows_a_switch_without_reading_words_again(
    filled: Path, count_chunks_read: Callable[[], int]
) -> None:
    with open_with(filled, "hash-64") as looking, open_with(filled, "hash-96") as switching:
        answers(looking)
        switching.admin.reembed()
        assert answers(looking) == answers(switching)
        assert count_chunks_read() == 0
        looking.admin.doctor(rebuild=True)
        assert count_chunks_read() == len(TEXTS)
        assert answers(looking) == answers(switching)


def test_an_index_file_of_the_model_before_is_followed_from(
    filled: Path, count_chunks_read: Callable[[], int]
) -> None:
    beside = filled.with_name("memory.db-index")
    old = beside.read_bytes()
    with open_with(filled, "hash-96") as switching:
        switching.admin.reembed()
        expected = answers(switching)
    beside.write_bytes(old)
    with open_with(filled, "hash-96") as later:
        assert answers(later) == expected
        assert count_chunks_read() == 0


def test_the_index_file_is_of_the_new_model_after_the_switch(filled: Path) -> None:
    beside = filled.with_name("memory.db-index")
    before = file.read(beside)
    with open_with(filled, "hash-96") as switching:
        switching.admin.reembed()
    after = file.read(beside, verify=True)
    assert before is not None
    assert after is not None
    assert before.arrays["embeddings"].shape == (len(TEXTS), 64)
    assert after.arrays["embeddings"].shape == (len(TEXTS), 96)


def test_vectors_that_are_made_beside_are_passed_over_once(filled: Path) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, _total: int) -> None:
        if done >= 512:
            raise Enough

    with open_with(filled, "hash-64") as looking, open_with(filled, "hash-96") as switching:
        with pytest.raises(Enough):
            switching.admin.reembed(on_progress=stop)
        looking.save("one more plum")
        assert looking.search("one more plum", mode="vector").results[0].similarity > 0.99
        contents = looking._storage._index(None)._contents
        [(last,)] = _rows(looking, "SELECT max(vector_no) FROM vectors")
        assert contents._last_vector == last
        looking.save("and another plum")
        assert looking.search("and another plum", mode="vector").results[0].similarity > 0.99


def _rows(store: MemoryStore, query: str) -> list[Any]:
    with store._storage._backend.database.reading() as connection:
        return connection.execute(query).fetchall()
