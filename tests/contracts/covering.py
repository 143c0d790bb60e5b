"""Name the members of interfaces that a test covers, and check that the test calls them.

A test is marked with `@covers(Reader.memories, Reader.index)`. The mark is checked while the test
runs: each member has to be called on an implementation by code of this folder.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest

from byheart import contracts
from byheart.storage.sql import backend, connection

FOLDER = Path(__file__).parent
# The modules of the implementations.
_IMPLEMENTING = ("byheart.storage.", "byheart.index.")
# Models store nothing: test_embedder.py tests embedders, and tests/embedding rerankers.
_OTHER_INTERFACES = ("byheart.contracts.embedders", "byheart.contracts.rerankers")


def covers(*members: object) -> pytest.MarkDecorator:
    """Mark a test with the members of interfaces that it tests: methods and properties."""
    unknown = [each for each in map(name_of, members) if each not in all_members()]
    assert not unknown, f"no members of a storage interface: {unknown}"
    return pytest.mark.covers.with_args(*members)


def name_of(member: Any) -> str:
    """Name a member after the interface that defines it."""
    name: str = (member.fget if isinstance(member, property) else member).__qualname__
    return name


@functools.cache
def interfaces() -> dict[str, type]:
    """Find the interfaces of storage, by their names."""
    names = [each.name for each in pkgutil.iter_modules(contracts.__path__, "byheart.contracts.")]
    modules = [importlib.import_module(name) for name in names if name not in _OTHER_INTERFACES]
    return {
        each.__name__: each
        for module in (*modules, connection, backend)
        for each in vars(module).values()
        if _is_interface(each) and each.__module__ == module.__name__
    }


def _is_interface(each: object) -> bool:
    return isinstance(each, type) and bool(getattr(each, "_is_protocol", False))


@functools.cache
def all_members() -> dict[str, type]:
    """Give the interface that defines each member, by the name of the member."""
    return {
        f"{interface.__name__}.{name}": interface
        for interface in interfaces().values()
        for name in _own_members(interface)
    }


def _own_members(interface: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(interface).items()
        if isinstance(member, FunctionType | property)
        and name_of(member) == f"{interface.__name__}.{name}"
    }


@functools.cache
def implementations(interface: type) -> list[type]:
    """Find the loaded classes that have the methods of an interface, with its parameters."""
    methods = {
        name: _parameters(member)
        for base in interface.__mro__
        if _is_interface(base)
        for name, member in _own_members(base).items()
        if not isinstance(member, property)
    }
    return [
        each
        for module in list(sys.modules.values())
        if (module.__name__ or "").startswith(_IMPLEMENTING)
        for each in list(vars(module).values())
        if isinstance(each, type) and each.__module__ == module.__name__
        if not _is_interface(each)
        if all(_parameters(getattr(each, name, None)) == own for name, own in methods.items())
    ]


def _parameters(method: Any) -> list[str] | None:
    return list(inspect.signature(method).parameters) if inspect.isfunction(method) else None


@contextmanager
def watching(members: Collection[object]) -> Iterator[set[str]]:
    """Watch members of interfaces on all implementations; give the names of the uncalled ones."""
    uncalled = set(map(name_of, members))
    with pytest.MonkeyPatch.context() as patch:
        for full_name in sorted(uncalled):
            interface, name = all_members()[full_name], full_name.partition(".")[2]
            is_property = isinstance(vars(interface)[name], property)
            for each in implementations(interface):
                member = inspect.getattr_static(each, name, None)
                watched = _Watched(full_name, member, is_property, uncalled)
                patch.setattr(each, name, watched, raising=False)
        yield uncalled


class _Watched:
    """Stand in for a member of a class, and record when code of this folder uses it."""

    def __init__(self, name: str, member: Any, is_property: bool, uncalled: set[str]) -> None:
        self._name, self._member = name, member
        self._is_property, self._uncalled = is_property, uncalled

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self._member
        if self._is_property:
            self._record(sys._getframe(1))
            if self._member is None:  # a plain attribute of the object
                return vars(instance)[self._attribute]
            return self._member.__get__(instance, owner)
        bound = self._member.__get__(instance, owner)

        @functools.wraps(bound)
        def call(*values: Any, **named: Any) -> Any:
            self._record(sys._getframe(1))
            return bound(*values, **named)

        return call

    def __set__(self, instance: Any, value: object) -> None:
        vars(instance)[self._attribute] = value

    @property
    def _attribute(self) -> str:
        return self._name.partition(".")[2]

    def _record(self, caller: FrameType) -> None:
        file = caller.f_code.co_filename
        if file != __file__ and Path(file).parent == FOLDER:
            self._uncalled.discard(self._name)
