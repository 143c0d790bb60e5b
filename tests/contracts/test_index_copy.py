"""The place for a copy of an index file, run on each implementation."""

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from byheart.contracts import IndexCopy
from byheart.storage.postgres.error_translation import translating
from byheart.storage.postgres.published_index import PublishedIndex
from tests.contracts.covering import covers
from tests.postgres_stores import schema_script

OpenCopy = Callable[[str], IndexCopy]


@pytest.fixture
def open_copy(postgres_url: str) -> OpenCopy:
    """Give the copy of a space's index file; each of its calls connects anew."""
    with psycopg.connect(postgres_url) as connection:
        schema = sql.Identifier("by heart")
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        for script in ("0001_published_index", "0009_published_parts"):
            connection.execute(schema_script(script, "by heart"))

    @contextmanager
    def connect() -> Iterator[psycopg.Connection[Any]]:
        with translating("the test"), psycopg.connect(postgres_url) as connection:
            yield connection

    return lambda space: PublishedIndex(connect, "by heart", space)


def loaded(copy: IndexCopy) -> bytes | None:
    out = io.BytesIO()
    return out.getvalue() if copy.load(out) else None


def part_of(copy: IndexCopy, name: str) -> bytes | None:
    out = io.BytesIO()
    return out.getvalue() if copy.load_part(name, out) else None


@covers(IndexCopy.label, IndexCopy.load, IndexCopy.put, IndexCopy.clear)
def test_a_copy_is_kept_whole_replaced_and_removed(open_copy: OpenCopy, tmp_path: Path) -> None:
    copy, other = open_copy("space 1"), open_copy("space 2")
    assert (copy.label(), loaded(copy)) == (None, None)
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 10_000)  # of several parts, the last one shorter
    assert copy.put(file, {}, "first", None)
    assert (copy.label(), loaded(copy)) == ("first", file.read_bytes())
    file.write_bytes(b"short")
    assert copy.put(file, {}, "second", "first")
    assert (copy.label(), loaded(copy)) == ("second", b"short")
    assert (other.label(), loaded(other)) == (None, None)
    copy.clear()
    assert (copy.label(), loaded(copy)) == (None, None)


@covers(IndexCopy.put, IndexCopy.load_part)
def test_parts_stay_until_a_copy_does_not_name_them(open_copy: OpenCopy, tmp_path: Path) -> None:
    copy = open_copy("space 1")
    head, large, small = tmp_path / "head", tmp_path / "large", tmp_path / "small"
    for each in (head, large, small):
        each.write_bytes(each.name.encode() * 400_000)
    assert copy.put(head, {"large": large}, "first", None)
    assert part_of(copy, "large") == large.read_bytes()
    assert part_of(copy, "small") is None
    before = large.read_bytes()
    large.write_bytes(b"parts never change, so this one is not loaded again")
    head.write_bytes(b"the next head")
    assert copy.put(head, {"large": large, "small": small}, "second", "first")
    assert (part_of(copy, "large"), part_of(copy, "small")) == (before, small.read_bytes())
    assert loaded(copy) == b"the next head"
    assert copy.put(head, {"small": small}, "third", "second")
    assert (part_of(copy, "large"), part_of(copy, "small")) == (None, small.read_bytes())
    copy.clear()
    assert (loaded(copy), part_of(copy, "small")) == (None, None)


@covers(IndexCopy.put)
def test_a_copy_that_another_server_replaced_meanwhile_stays(
    open_copy: OpenCopy, tmp_path: Path
) -> None:
    copy = open_copy("space 1")
    file = tmp_path / "file"
    file.write_bytes(b"of the faster one")
    assert copy.put(file, {}, "faster", None)
    file.write_bytes(b"of the slower one")
    assert not copy.put(file, {}, "slower", None)
    assert not copy.put(file, {}, "slower", "earlier")
    assert (copy.label(), loaded(copy)) == ("faster", b"of the faster one")
    copy.clear()
    assert not copy.put(file, {}, "slower", "faster")
    assert (copy.label(), loaded(copy)) == (None, None)


@covers(IndexCopy.put, IndexCopy.load)
def test_servers_that_put_copies_at_once_leave_one_whole_copy_and_readers_see_whole_ones(
    open_copy: OpenCopy, tmp_path: Path
) -> None:
    copy, rounds, servers = open_copy("space 1"), 5, 3
    won: list[tuple[int, int]] = []
    torn: list[bytes] = []
    together = threading.Barrier(servers)
    done = threading.Event()

    def publish(server: int) -> None:
        file = tmp_path / f"{server}"
        file.write_bytes(bytes([server]) * (2_500_000 + server))
        for number in range(rounds):
            together.wait(60)
            seen = copy.label()
            together.wait(60)
            if copy.put(file, {}, f"{number} {server}", seen):
                won.append((number, server))

    def read() -> None:
        while not done.is_set():
            found = loaded(copy)
            if found is not None and found != found[:1] * (2_500_000 + found[0]):
                torn.append(found)

    publishers = [threading.Thread(target=publish, args=(each,)) for each in range(servers)]
    reader = threading.Thread(target=read)
    for thread in (reader, *publishers):
        thread.start()
    for thread in publishers:
        thread.join()
    done.set()
    reader.join()
    assert [number for number, _ in won] == list(range(rounds)), "one server wins each round"
    assert not torn
    last = won[-1]
    assert copy.label() == f"{last[0]} {last[1]}"
    assert loaded(copy) == bytes([last[1]]) * (2_500_000 + last[1])
