"""Let tests and generated files of a workspace come after the source that they are about.

They repeat the words of the source, often in more files, and would take its place on the first
page. Their scores are multiplied by a factor below 1: a test that matches much better still comes
first. A question that asks for tests, or a filter by path, switches the factor off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from byheart.contracts import Candidates, Figures, Reader
from byheart.startup.late_numpy import np
from byheart.startup.late_patterns import late_pattern

SideFile = Literal["test", "generated"]
# With it, a test is first for 1 of 15 questions about this project, not for 10 (decision 0027).
FACTOR = 0.7

PathsOf = Callable[[Sequence[int]], Sequence[str | None]]

_TEST_FOLDER = late_pattern(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|fixtures|testdata|test_data|__mocks__|mocks|e2e)/",
    re.IGNORECASE,
)
_TEST_FILE = late_pattern(
    r"(?:^|/)(?:test_[^/]+|conftest\.py|[^/]+[._-](?:test|tests|spec)\.[^/.]+"
    r"|[^/]+_(?:test|spec)\.[^/]+|[^/]*[a-z](?:Test|Tests|Spec)\.[^/.]+)$"
)
_GENERATED = late_pattern(
    r"(?:^|/)(?:generated|__generated__|__snapshots__|gen)/"
    r"|[._-]generated\.[^/]+$|_pb2(?:_grpc)?\.pyi?$|\.pb\.[^/]+$|\.g\.(?:dart|cs)$|\.snap$",
    re.IGNORECASE,
)
_ASKS_FOR_THEM = late_pattern(
    r"\b(?:tests?|tested|testing|specs?|fixtures?|mock(?:s|ed)?|pytest|jest|conftest|snapshots?"
    r"|generated)\b|test_|_test|_pb2",
    re.IGNORECASE,
)


def name_side_file(path: str) -> SideFile | None:
    """Say whether a path, relative to its root, is a test or a generated file."""
    if _TEST_FOLDER.search(path) or _TEST_FILE.search(path):
        return "test"
    return "generated" if _GENERATED.search(path) else None


def asks_for_side_files(query: str) -> bool:
    """Say whether a question is about tests or generated files itself."""
    return _ASKS_FOR_THEM.search(query) is not None


def read_paths(reader: Reader) -> PathsOf:
    """Make a function that gives the paths of memories in their workspaces."""

    def paths_of(memory_nos: Sequence[int]) -> list[str | None]:
        found = reader.summaries(memory_nos)
        return [None if each.file is None else each.file.path for each in found]

    return paths_of


def file_factors(found: Candidates, paths_of: PathsOf) -> Figures | None:
    """Return the factor of each row by the file it is from, if any is from a side file."""
    if found.file_rows is None or not len(found.file_rows):
        return None
    owners = found.memory_nos.take(found.file_rows)
    files, places = np.unique(owners, return_inverse=True)
    paths = paths_of(files.tolist())
    aside = np.array([path is not None and name_side_file(path) is not None for path in paths])
    if not aside.any():
        return None
    factors = np.ones(len(found.memory_nos))
    factors[found.file_rows] = np.where(aside.take(places), FACTOR, 1.0)
    return factors
