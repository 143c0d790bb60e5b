"""Check that files, classes, functions and signatures in `src` stay small enough to read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "byheart"

MOST = {"file lines": 600, "class lines": 400, "function lines": 80, "parameters": 8}

# The exceptions, by kind. This list only shrinks: a name that is within the limit has to be deleted
# here, and a new name needs a very good reason.
EXCEPTIONS = {
    "file lines": set[str](),
    "class lines": {"transfer/importing.py Importer"},
    "function lines": set[str](),
    "parameters": {
        "embedding/providers.py open_embedder",
        "embedding/served_embedder.py ServedEmbedder.__init__",
        "interfaces/cli/forget.py forget_command",
        "transfer/importing.py Importer.__init__",
    },
}


class Measured(NamedTuple):
    """One figure of one file, class or function."""

    kind: str
    name: str
    figure: int


def measure_source(path: str, source: str) -> Iterator[Measured]:
    """Measure a file and everything that is defined in it."""
    yield Measured("file lines", path, len(source.splitlines()))
    yield from _measure_definitions(path, "", ast.parse(source))


def _measure_definitions(path: str, outer: str, node: ast.AST) -> Iterator[Measured]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _measure_definitions(path, outer, child)
            continue
        name = f"{outer}{child.name}"
        lines = (child.end_lineno or child.lineno) - child.lineno + 1
        if isinstance(child, ast.ClassDef):
            yield Measured("class lines", f"{path} {name}", lines)
        else:
            yield Measured("function lines", f"{path} {name}", lines)
            if not _is_verb(outer, child.name):
                yield Measured("parameters", f"{path} {name}", _count_parameters(child.args))
        yield from _measure_definitions(path, f"{name}.", child)


def _is_verb(outer: str, name: str) -> bool:
    """Tell whether a function is a verb: its parameters are what users may ask for."""
    return outer == "MemoryStore." and not name.startswith("_")


def _count_parameters(arguments: ast.arguments) -> int:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    starred = [each for each in (arguments.vararg, arguments.kwarg) if each]
    return len([each for each in named if each.arg not in ("self", "cls")]) + len(starred)


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    found: list[Measured] = []
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        found.extend(measure_source(path, file.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("kind", MOST)
def test_nothing_in_the_source_is_larger_than_its_limit(
    kind: str, measured: list[Measured]
) -> None:
    too_large = {
        f"{each.name}: {each.figure}"
        for each in measured
        if each.kind == kind and each.figure > MOST[kind] and each.name not in EXCEPTIONS[kind]
    }
    assert not too_large, f"more than {MOST[kind]} {kind}; divide what is too large"


@pytest.mark.parametrize("kind", MOST)
def test_every_exception_is_still_needed(kind: str, measured: list[Measured]) -> None:
    needed = {each.name for each in measured if each.kind == kind and each.figure > MOST[kind]}
    assert not EXCEPTIONS[kind] - needed, f"delete these from EXCEPTIONS[{kind!r}]"


def test_measuring_counts_lines_and_parameters_but_not_self() -> None:
    source = """
class MemoryStore:
    def save(self, a, b, c): ...

    def _write(self, a, /, b, *rest, c, **more):
        def inner(x):
            return x
        return inner

    @classmethod
    async def _open(cls, path): ...
"""
    assert set(measure_source("store.py", source)) == {
        ("file lines", "store.py", 11),
        ("class lines", "store.py MemoryStore", 10),
        ("function lines", "store.py MemoryStore.save", 1),
        ("function lines", "store.py MemoryStore._write", 4),
        ("parameters", "store.py MemoryStore._write", 5),
        ("function lines", "store.py MemoryStore._write.inner", 2),
        ("parameters", "store.py MemoryStore._write.inner", 1),
        ("function lines", "store.py MemoryStore._open", 1),
        ("parameters", "store.py MemoryStore._open", 1),
    }
