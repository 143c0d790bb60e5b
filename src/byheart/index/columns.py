"""Hold one array for each field that can be filtered: a filter takes well under a millisecond.

Texts are kept as small numbers (`Codes`). A view of a column never changes: rows are appended
behind what a view can see, and a change to a row is made in a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from byheart.model.fields import FIELDS
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

NEVER = 2**63 - 1
NONE = -1
# A memory that is no turn has no place in the order of its session.
NO_TURN = -(2**63)

Array = NDArray[Any]


class Growing:
    """An array that rows can be appended to without copying it each time."""

    def __init__(self, rows: Array) -> None:
        self.buffer = rows
        self._length = len(rows)

    @property
    def view(self) -> Array:
        """Show the rows so far; later changes do not show."""
        return self.buffer[: self._length]

    def give_room(self, buffer: Array) -> None:
        """Go on in a buffer that begins with the rows so far, and that nobody else appends to."""
        self.buffer = buffer

    def append(self, rows: Array) -> None:
        """Add rows behind everything that a view can see."""
        needed = self._length + len(rows)
        if needed > len(self.buffer):
            larger = np.empty(max(needed, 2 * self._length, 64), self.buffer.dtype)
            larger[: self._length] = self.view
            self.buffer = larger
        self.buffer[self._length : needed] = rows
        self._length = needed

    def replace(self, at: Array, rows: Array | bool) -> None:
        """Change rows in a copy, so that views in use stay as they are."""
        if (self.view[at] == rows).all():
            return
        changed = self.view.copy()
        changed[at] = rows
        self.buffer = changed


class Codes:
    """Give each text of a column a small number; -1 stands for none."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.numbers = {name: number for number, name in enumerate(names)}

    def encode(self, name: str | None) -> int:
        """Give the number of a text, a new one if it has none yet."""
        if name is None:
            return NONE
        return self.numbers.setdefault(name, len(self.numbers))

    def without_unused(self, rows: NDArray[np.int32]) -> tuple[Codes, NDArray[np.int32]]:
        """Renumber the texts, without those that no row has any more."""
        names = list(self.numbers)
        used = np.unique(rows[rows != NONE])
        fresh = np.where(rows == NONE, NONE, np.searchsorted(used, rows))
        return Codes([names[number] for number in used.tolist()]), fresh.astype(np.int32)

    def find(self, name: str) -> int:
        """Give the number of a text, or one that no row has."""
        return self.numbers.get(name, -2)


_INDEXED = {field.array: field for field in FIELDS if field.array}
# The numbers that the database writes for a field; a text is written as its code.
_TYPES: Mapping[str, str] = {
    "text": "int32",
    "whole": "int64",
    "number": "float64",
    "moment": "int64",
}
MEMORY_TYPES: Mapping[str, str] = {
    "memory_nos": "int64",
    "present": "bool",
    **{name: _TYPES[field.codec] for name, field in _INDEXED.items()},
    "turn": "int64",
}
CODED = tuple(name for name, field in _INDEXED.items() if field.codec == "text")
# Moments that may never come.
OPEN_ENDED = tuple(
    name for name, field in _INDEXED.items() if field.codec == "moment" and field.nullable
)
# The number that stands for none, in each array that can lack a value.
MISSING: Mapping[str, int] = {
    **{name: NONE for name, field in _INDEXED.items() if field.codec == "whole" and field.nullable},
    **dict.fromkeys(OPEN_ENDED, NEVER),
    "turn": NO_TURN,
}


class MemoryColumns:
    """One row per memory, in the order of `memory_nos`; one that is gone for good has no space.

    It has an attribute for each of `MEMORY_TYPES`. The arrays below are used by name; the others
    only by filters.
    """

    __slots__ = tuple(MEMORY_TYPES)

    memory_nos: NDArray[np.int64]
    present: NDArray[np.bool_]
    space: NDArray[np.int32]
    session: NDArray[np.int32]
    kind: NDArray[np.int32]
    importance: NDArray[np.float64]
    version: NDArray[np.int64]
    created: NDArray[np.int64]
    updated: NDArray[np.int64]
    expires: NDArray[np.int64]
    since: NDArray[np.int64]
    replaced: NDArray[np.int64]
    superseded: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    feedback: NDArray[np.int32]
    role: NDArray[np.int32]
    turn: NDArray[np.int64]

    def __init__(self, **arrays: Array) -> None:
        for name in MEMORY_TYPES:
            setattr(self, name, arrays[name])


@dataclass(frozen=True, slots=True)
class ChunkColumns:
    """One row per chunk, in the order of `chunk_nos`; its place is the chunk's slot."""

    chunk_nos: NDArray[np.int64]
    owner: NDArray[np.int32]
    length: NDArray[np.int32]
    alive: NDArray[np.bool_]
    embedded: NDArray[np.bool_]
    # The share of the text that only asks, in steps of 1/255, and the hash of its speaker's name.
    asking: NDArray[np.uint8]
    speaker: NDArray[np.uint64]


CHUNK_TYPES: dict[str, str] = {
    "chunk_nos": "int64",
    "owner": "int32",
    "length": "int32",
    "alive": "bool",
    "embedded": "bool",
    "asking": "uint8",
    "speaker": "uint64",
}

assert tuple(CHUNK_TYPES) == tuple(each.name for each in fields(ChunkColumns))
