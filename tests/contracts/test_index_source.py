"""What an index reads of a database, run on each implementation."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from byheart.contracts import (
    Change,
    Draft,
    IndexedDatabase,
    IndexLookup,
    IndexSource,
    MemoryAccess,
)
from byheart.language.raw_query import parse_raw_query
from byheart.memory import erasing, transactions
from byheart.model import ECHO, Filter
from byheart.model.times import to_micros
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.index_source import SqlIndexedDatabase
from byheart.storage.sql.storage import SqlStorage
from tests.contracts.conftest import OpenBackend
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NEXT, NORTH, draft


def indexed(backend: Backend) -> IndexedDatabase:
    return SqlIndexedDatabase(backend, backend.index_scope("space"))


@contextmanager
def snapshot(backend: Backend) -> Iterator[IndexSource]:
    with indexed(backend).snapshot() as source:
        yield source


@contextmanager
def lookup(backend: Backend) -> Iterator[IndexLookup]:
    with backend.reading("space") as connection:
        yield backend.lookup(connection)


def write(backend: Backend, *drafts: Draft) -> list[str]:
    results = transactions.write(SqlStorage(backend), drafts, MODEL)
    return [each.memory_id for each in results]


@covers(IndexedDatabase.writable, IndexedDatabase.prepare_publishing, IndexedDatabase.snapshot)
def test_an_index_knows_where_it_may_write_and_what_was_committed(backend: Backend) -> None:
    database = indexed(backend)
    assert database.writable == backend.writable
    assert database.prepare_publishing() == backend.prepare_publishing()
    with database.snapshot() as before:
        assert before.last_change() == Change(0, 0)
        write(backend, draft("one"))
        assert list(before.memories_after(0)) == []
    with database.snapshot() as after:
        assert len(list(after.memories_after(0))) == 1


@covers(IndexSource.store_id, IndexSource.last_change, IndexSource.stamp_of)
def test_each_change_has_a_number_and_a_stamp(open_backend: OpenBackend) -> None:
    backend = open_backend()
    with snapshot(backend) as source:
        assert source.last_change() == Change(0, 0)
        store_id = source.store_id()
        assert store_id
    write(backend, draft("one"))
    with snapshot(backend) as source:
        first = source.last_change()
    write(backend, draft("two"))
    with snapshot(open_backend()) as source:
        last = source.last_change()
        assert source.store_id() == store_id
        assert [source.stamp_of(each.number) for each in (first, last)] == [first.stamp, last.stamp]
        assert source.stamp_of(last.number + 1) is None
    assert first.number < last.number
    assert first.stamp != last.stamp


@covers(IndexSource.active_model, IndexSource.model_switched_since)
def test_a_switch_of_the_model_is_a_change(backend: Backend) -> None:
    with snapshot(backend) as source:
        assert source.active_model() is None
    write(backend, draft("one", EAST))
    with snapshot(backend) as source:
        before, model = source.last_change().number, source.active_model()
        assert not source.model_switched_since(0)
    assert model is not None
    assert model.dimensions == MODEL.dimensions
    for name in (NEXT, MODEL):
        with SqlStorage(backend).writing(None) as writer:
            models = writer.models.read()
            known = (
                models.known
                if name == MODEL
                else (*models.known, models.known[0]._replace(name=NEXT.name))
            )
            writer.models.write(replace(models, known=known, active=name.name))
    with snapshot(backend) as source:
        assert source.model_switched_since(before)
        assert not source.model_switched_since(source.last_change().number)
        assert source.active_model() == model, "switched back"


@covers(IndexSource.changed_since, IndexSource.memories_after)
def test_changed_memories_are_given_with_what_is_left_of_them(backend: Backend) -> None:
    ids = write(backend, draft("one"), draft("two"), draft("three"))
    with snapshot(backend) as source:
        before, rows = source.last_change().number, list(source.memories_after(0))
        assert [row[0] for row in source.memories_after(rows[0][0])] == [row[0] for row in rows[1:]]
        chunks = [each.chunk_no for each in source.chunks_after(0, 9)]
    storage, numbers = SqlStorage(backend), [row[0] for row in rows]
    transactions.forget(storage, ids[:1], "space", "tester", None)
    erasing.erase(storage, ids[1:2], "space", tombstones=False)
    write(backend, draft("four"))
    with snapshot(backend) as source:
        changed = source.changed_since(before, numbers[-1])
        assert list(changed.memory_nos) == numbers[:2]
        assert [row[0] for row in changed.rows] == numbers[:1], "the other is gone"
        assert list(changed.chunk_nos) == chunks[:1]
        assert list(source.changed_since(before, numbers[0]).memory_nos) == numbers[:1]
        last = source.last_change().number
        assert list(source.changed_since(last, numbers[-1]).memory_nos) == []


@covers(IndexSource.chunks_after, IndexSource.chunks_without_vectors)
def test_chunks_are_given_in_order_with_the_texts_of_their_terms(backend: Backend) -> None:
    made = draft("# Top\n\nwords\n", title="T", summary="S")
    echo = draft("echo")
    write(backend, made, replace(echo, chunks=(replace(echo.chunks[0], chunk_type=ECHO),)))
    with snapshot(backend) as source:
        chunks = source.chunks_after(0, 9)
        first, last = chunks[0], chunks[-1]
        assert [each.chunk_no for each in chunks] == sorted(each.chunk_no for each in chunks)
        assert (first.content, first.title, first.summary) == (made.chunks[0].content, "T", "S")
        assert (first.chunk_index, last.content, last.chunk_type) == (0, "echo", ECHO)
        assert "Top" in first.headings
        assert source.chunks_after(0, 1) == [first]
        assert source.chunks_after(first.chunk_no, 9) == chunks[1:]
        assert list(source.chunks_without_vectors()) == [last.chunk_no]


@covers(IndexSource.vectors_after, IndexSource.last_vector_no)
def test_vectors_of_a_model_are_given_in_order(backend: Backend) -> None:
    with snapshot(backend) as source:
        assert source.last_vector_no() == 0
    write(backend, draft("one", EAST), draft("none"), draft("two", NORTH))
    with snapshot(backend) as source:
        model, chunks = source.active_model(), source.chunks_after(0, 9)
        assert model is not None
        rows = source.vectors_after(0, model.model_no, 9)
        vectors = [tuple(np.frombuffer(row[2], "<f4").tolist()) for row in rows]
        assert vectors == [EAST, NORTH]
        assert [row[1] for row in rows] == [chunks[0].chunk_no, chunks[2].chunk_no]
        assert source.last_vector_no() == rows[-1][0]
        assert list(source.vectors_after(rows[0][0], model.model_no, 9)) == list(rows[1:])
        assert list(source.vectors_after(0, model.model_no, 1)) == list(rows[:1])
        assert list(source.vectors_after(0, model.model_no + 1, 9)) == []


@covers(Backend.lookup, IndexLookup.members)
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter("space"), []),
        (Filter("space", kind=("note",)), []),
        (Filter("space", tags=("x", "y")), [{0, 1}]),
        (Filter("space", tags=("x", "y"), match="all"), [{1}]),
        (Filter("space", entities=("ANN",)), [{0}]),
        (Filter("space", tags=("y",), path="docs/"), [{1}, {0}]),
        (Filter("other", path="docs/"), [set()]),
    ],
)
def test_memories_are_listed_by_labels_and_paths(
    backend: Backend, where: Filter, expected: list[set[int]]
) -> None:
    first = draft("one", tags=("x",), entities=("Ann",), path="docs/a.md")
    write(backend, first, draft("two", tags=("x", "y"), path="other/a.md"), draft("three"))
    with snapshot(backend) as source:
        numbers = [row[0] for row in source.memories_after(0)]
    with lookup(backend) as asked:
        members = [{numbers.index(each) for each in part} for part in asked.members(where)]
    assert members == expected


@covers(IndexLookup.matches)
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("plum", [0, 2]),
        ("plum AND pie", [0]),
        ('"pie plum"', []),
        ("pl* NOT pie", [2, 3]),
        ("pear OR plank", [1, 3]),
    ],
)
def test_raw_queries_match_chunks_in_a_range_of_numbers(
    backend: Backend, raw: str, expected: list[int]
) -> None:
    write(backend, draft("plum pie"), draft("pear pie"), draft("plum"), draft("plank"))
    write(backend, draft("plum pear plank", space="other"))
    with snapshot(backend) as source:
        numbers = [each.chunk_no for each in source.chunks_after(0, 4)]
    query = parse_raw_query(raw)
    with lookup(backend) as asked:
        found = sorted(asked.matches(query, range(numbers[0], numbers[-1] + 1)).tolist())
        assert found == [numbers[each] for each in expected]
        fewer = sorted(asked.matches(query, range(numbers[1], numbers[3])).tolist())
        assert fewer == [numbers[each] for each in expected if each in (1, 2)]


@covers(IndexLookup.continuations, IndexLookup.active_model_name)
def test_terms_are_continued_in_order_page_by_page(backend: Backend) -> None:
    with lookup(backend) as asked:
        assert asked.active_model_name() is None
        assert list(asked.continuations("p", "", 9)) == []
    write(backend, draft("plum pear plank", EAST), draft("apple pie", NORTH))
    with lookup(backend) as asked:
        assert asked.active_model_name() == MODEL.name
        assert list(asked.continuations("p", "", 9)) == ["pear", "pie", "plank", "plum"]
        assert list(asked.continuations("p", "", 2)) == ["pear", "pie"]
        assert list(asked.continuations("p", "pie", 9)) == ["plank", "plum"]
        assert list(asked.continuations("pl", "", 9)) == ["plank", "plum"]
        assert list(asked.continuations("x", "", 9)) == []


@covers(IndexLookup.accesses)
def test_the_memories_of_a_space_that_were_accessed_last_are_listed(backend: Backend) -> None:
    made = [draft("one"), draft("two"), draft("three"), draft("far", space="other")]
    write(backend, *made)
    ids = [each.memory.memory_id for each in made]
    at = datetime(2026, 1, 1, tzinfo=UTC)
    storage = SqlStorage(backend)
    storage.note([MemoryAccess(ids[1], "space", at)] * 2)
    storage.note([MemoryAccess(ids[0], "space", at + timedelta(days=1))])
    storage.note([MemoryAccess(ids[3], "other", at)])
    storage.settle()
    with snapshot(backend) as source:
        numbers = [row[0] for row in source.memories_after(0)]
    first, second = to_micros(at + timedelta(days=1)), to_micros(at)
    with lookup(backend) as asked:
        found = [column.tolist() for column in asked.accesses("space", 9)]
        assert found == [[numbers[0], numbers[1]], [first, second], [1, 2]]
        assert asked.accesses("space", 1).memory_nos.tolist() == [numbers[0]]
        assert not len(asked.accesses("nowhere", 9).memory_nos)
