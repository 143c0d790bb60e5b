"""What the place for the postings of large spaces promises, run on each implementation."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from byheart.contracts import (
    IndexLookup,
    PostingChanges,
    PostingStore,
    StoredPostings,
)
from byheart.memory import transactions
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.storage import SqlStorage
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft
from tests.postgres_stores import postgres_store


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    """Give a store that has three chunks in a space, one of them without a vector."""
    with postgres_store() as address:
        opened = PostgresBackend(address, tmp_path, 30, local_chunks=7)
        with closing(SqlStorage(opened)) as storage:
            made = [draft("one", EAST), draft("two", NORTH), draft("three")]
            transactions.write(storage, made, MODEL)
            transactions.write(storage, [draft("far", EAST, space="other")], MODEL)
            yield opened


def place(backend: Backend, space: str = "space") -> PostingStore:
    store = backend.posting_store(space)
    assert store is not None
    return store


def chunks_of(backend: Backend, space: str = "space") -> list[int]:
    with backend.reading(space) as connection:
        numbers = connection.numbers
        rows = connection.all(
            "SELECT chunk_no FROM chunks WHERE chunk_no BETWEEN ? AND ? ORDER BY chunk_no",
            (numbers.start, numbers[-1]),
        )
    return [row[0] for row in rows]


@covers(
    PostingStore.changing,
    PostingStore.local_chunks,
    PostingChanges.runs,
    PostingChanges.members,
    PostingChanges.add,
    PostingChanges.add_blocks,
    PostingChanges.blocks_between,
    PostingChanges.existing,
    PostingChanges.remove,
    StoredPostings.covered_to,
    StoredPostings.expect_blocks,
    StoredPostings.blocks,
    StoredPostings.members,
    StoredPostings.vectors,
    IndexLookup.stored_postings,
    Backend.posting_store,
)
def test_runs_are_kept_for_each_space_and_replaced(backend: Backend) -> None:
    store, numbers = place(backend), chunks_of(backend)
    assert store.local_chunks == 7
    with store.changing(wait=False) as changes:
        assert changes is not None
        assert changes.runs() == []
        asked = np.array([*numbers, numbers[-1] + 1000])
        assert changes.existing(asked).tolist() == numbers
        first = changes.add(np.array(numbers[:2]), numbers[1])
        changes.add_blocks(first, [(-5, b"group"), (0, b"least"), (7, b"seven")])
        second = changes.add(np.array(numbers[2:]), numbers[2])
        changes.add_blocks(second, [(7, b"")])
        assert [each.last_chunk_no for each in changes.runs()] == numbers[1:]
        assert changes.members(first).tolist() == numbers[:2]
        found = sorted(changes.blocks_between(first, -5, 0))
        assert [(each.key, each.data) for each in found] == [(-5, b"group"), (0, b"least")]
    with backend.reading("space") as connection:
        stored = backend.lookup(connection).stored_postings()
        assert stored is not None
        assert stored.covered_to() == numbers[2]
        assert sorted(stored.blocks([7, 8])) == [(first, 7, b"seven"), (second, 7, b"")]
        stored.expect_blocks([0])
        stored.expect_blocks([7])
        assert stored.blocks([0]) == [(first, 0, b"least")]
        assert len(stored.blocks([7])) == 2
        assert stored.members([second])[second].tolist() == numbers[2:]
        model = connection.get("SELECT model_no FROM models")
        with store.changing(wait=True) as changes:
            assert changes is not None
            changes.remove([first, second])
        assert stored.covered_to() == numbers[2], "a search keeps its snapshot"
        assert stored.blocks([7])
        vectors = stored.vectors(np.array(numbers), model, 1 << 62)
        assert vectors.chunk_nos.tolist() == numbers[:2]
        assert vectors.vectors.tolist() == [[*EAST], [*NORTH]]
        assert not len(stored.vectors(np.array(numbers), model, 0).chunk_nos)
    with backend.reading("space") as connection:
        stored = backend.lookup(connection).stored_postings()
        assert stored is not None
        assert stored.covered_to() == 0
        assert stored.blocks([7]) == []


def test_another_space_has_runs_of_its_own(backend: Backend) -> None:
    with place(backend).changing(wait=False) as changes:
        assert changes is not None
        changes.add_blocks(changes.add(np.array(chunks_of(backend)), 1 << 40), [(7, b"seven")])
    with backend.reading("other") as connection:
        stored = backend.lookup(connection).stored_postings()
        assert stored is not None
        assert (stored.covered_to(), stored.blocks([7])) == (0, [])


@covers(PostingStore.changing)
def test_one_process_changes_the_runs_of_a_space_at_a_time(backend: Backend) -> None:
    with place(backend).changing(wait=False) as changes:
        assert changes is not None
        with place(backend).changing(wait=False) as meanwhile:
            assert meanwhile is None
        with place(backend, "other").changing(wait=False) as elsewhere:
            assert elsewhere is not None
    with place(backend).changing(wait=False) as later:
        assert later is not None


@covers(PostingChanges.retire)
def test_retired_runs_stay_for_an_hour(backend: Backend) -> None:
    store = place(backend)
    with store.changing(wait=False) as changes:
        assert changes is not None
        changes.add(np.array(chunks_of(backend)), 5)
        changes.retire(True)
        assert len(changes.runs()) == 1
        changes.retire(False)
    for hours, left in ((0.5, 1), (2, 0)):
        with store.changing(wait=False) as changes:
            assert changes is not None
            changes.retire(True)
        with backend.writing("space") as connection:
            connection.run(
                "UPDATE posting_runs SET retired_at = now() - interval '1 hour' "
                "* CAST(? AS double precision)",
                (hours,),
            )
        with store.changing(wait=False) as changes:
            assert changes is not None
            changes.retire(True)
            assert len(changes.runs()) == left
