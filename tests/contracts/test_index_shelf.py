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

from byheart.contracts import IndexShelf
from byheart.storage.postgres.error_translation import translating
from byheart.storage.postgres.published_index import PublishedIndex
from tests.contracts.covering import covers
from tests.postgres_stores import schema_script

OpenShelf = Callable[[str], IndexShelf]


@pytest.fixture
def open_shelf(postgres_url: str) -> OpenShelf:
    """Give the shelf of a space; every call of the shelf connects anew."""
    with psycopg.connect(postgres_url) as connection:
        schema = sql.Identifier("by heart")
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        connection.execute(schema_script("0001_published_index", "by heart"))

    @contextmanager
    def connect() -> Iterator[psycopg.Connection[Any]]:
        with translating("the test"), psycopg.connect(postgres_url) as connection:
            yield connection

    return lambda space: PublishedIndex(connect, "by heart", space)


def loaded(shelf: IndexShelf) -> bytes | None:
    out = io.BytesIO()
    return out.getvalue() if shelf.load(out) else None


@covers(IndexShelf.label, IndexShelf.load, IndexShelf.put, IndexShelf.clear)
def test_a_copy_is_kept_whole_replaced_and_removed(open_shelf: OpenShelf, tmp_path: Path) -> None:
    shelf, other = open_shelf("space 1"), open_shelf("space 2")
    assert (shelf.label(), loaded(shelf)) == (None, None)
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 10_000)  # of several parts, the last one shorter
    assert shelf.put(file, "first", None)
    assert (shelf.label(), loaded(shelf)) == ("first", file.read_bytes())
    file.write_bytes(b"short")
    assert shelf.put(file, "second", "first")
    assert (shelf.label(), loaded(shelf)) == ("second", b"short")
    assert (other.label(), loaded(other)) == (None, None)
    shelf.clear()
    assert (shelf.label(), loaded(shelf)) == (None, None)


@covers(IndexShelf.put)
def test_a_copy_that_another_server_replaced_meanwhile_stays(
    open_shelf: OpenShelf, tmp_path: Path
) -> None:
    shelf = open_shelf("space 1")
    file = tmp_path / "file"
    file.write_bytes(b"of the faster one")
    assert shelf.put(file, "faster", None)
    file.write_bytes(b"of the slower one")
    assert not shelf.put(file, "slower", None)
    assert not shelf.put(file, "slower", "earlier")
    assert (shelf.label(), loaded(shelf)) == ("faster", b"of the faster one")
    shelf.clear()
    assert not shelf.put(file, "slower", "faster")
    assert (shelf.label(), loaded(shelf)) == (None, None)


@covers(IndexShelf.put, IndexShelf.load)
def test_servers_that_put_copies_at_once_leave_one_whole_copy_and_readers_see_whole_ones(
    open_shelf: OpenShelf, tmp_path: Path
) -> None:
    shelf, rounds, servers = open_shelf("space 1"), 5, 3
    won: list[tuple[int, int]] = []
    torn: list[bytes] = []
    together = threading.Barrier(servers)
    done = threading.Event()

    def publish(server: int) -> None:
        file = tmp_path / f"{server}"
        file.write_bytes(bytes([server]) * (2_500_000 + server))
        for number in range(rounds):
            together.wait(60)
            seen = shelf.label()
            together.wait(60)
            if shelf.put(file, f"{number} {server}", seen):
                won.append((number, server))

    def read() -> None:
        while not done.is_set():
            found = loaded(shelf)
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
    assert shelf.label() == f"{last[0]} {last[1]}"
    assert loaded(shelf) == bytes([last[1]]) * (2_500_000 + last[1])
