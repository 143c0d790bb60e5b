"""Check that every member of the storage interfaces is covered by a contract test."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator

import pytest

from byheart.contracts import Reader, Storage
from tests.contracts.covering import FOLDER, all_members, implementations, name_of, watching


@functools.cache
def covered() -> frozenset[str]:
    """Name all members of interfaces that the marks of the contract tests name."""
    return frozenset(_marked())


def _marked() -> Iterator[str]:
    for file in FOLDER.glob("test_*.py"):
        module = importlib.import_module(f"tests.contracts.{file.stem}")
        for name, test in vars(module).items():
            if name.startswith("test_"):
                marks = [each for each in getattr(test, "pytestmark", ()) if each.name == "covers"]
                yield from (name_of(member) for mark in marks for member in mark.args)


@pytest.mark.parametrize("member", sorted(all_members()))
def test_every_member_has_a_test(member: str) -> None:
    assert member in covered(), f"no contract test is marked with @covers({member})"


@pytest.mark.parametrize("interface", sorted({each.__name__ for each in all_members().values()}))
def test_every_interface_has_an_implementation_to_watch(interface: str) -> None:
    found = next(each for each in all_members().values() if each.__name__ == interface)
    assert implementations(found)


def test_a_mark_is_refuted_unless_the_test_itself_calls_the_method(storage: Storage) -> None:
    marked = [Storage.location, Storage.status, Storage.bookmarks, Reader.memory]
    with watching(marked) as uncalled:
        _ = storage.bookmarks
        assert storage.status("space").store, "the storage asks itself for its location"
        assert uncalled == {"Storage.location", "Reader.memory"}
        with storage.reading() as reader:
            _ = reader.memory
            assert uncalled == {"Storage.location", "Reader.memory"}, "named, not called"
            reader.memory("mem_1", "space")
        assert uncalled == {"Storage.location"}
    with storage.reading() as reader:
        assert reader.memory("mem_1", "space") is None, "as before"
