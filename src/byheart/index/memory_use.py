"""Measure the memory that an index takes, so that a server can keep many under a limit.

Arrays of the process count in full. Arrays that are mapped from a file count a quarter: the kernel
takes their pages back at any time without writing them, and all processes share them. A mapping
also counts two megabytes, because it keeps a file open, and a process may open only so many.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from byheart.index.file import is_mapped
from byheart.startup.late_numpy import NDArray

_MAPPED_SHARE = 4
_OPEN_FILE = 2 << 20
# The objects of an index without rows.
_OBJECTS = 16 << 10
# A text of a column with its number and its place in the dictionary, measured.
_NAME = 200
# Views keep masks, norms and places for each chunk after the first search.
_VIEWED_CHUNK = 32


class MemoryUse(NamedTuple):
    """The bytes that belong to the process, and those that are mapped from a file."""

    own: int
    mapped: int

    @property
    def charged(self) -> int:
        """Give the bytes that count against a limit."""
        return self.own + (_OPEN_FILE + self.mapped // _MAPPED_SHARE if self.mapped else 0)


# An index that has loaded nothing.
UNLOADED = MemoryUse(_OBJECTS, 0)


def measure(arrays: Iterable[NDArray[Any]], names: int, chunks: int) -> MemoryUse:
    """Measure arrays, the texts of columns, and the values that views keep for each chunk."""
    own = mapped = 0
    for each in arrays:
        if is_mapped(each):
            mapped += each.nbytes
        else:
            own += each.nbytes
    return MemoryUse(own + _OBJECTS + names * _NAME + chunks * _VIEWED_CHUNK, mapped)
