"""Define what the array index reads of a database: a few queries on one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from byheart.contracts.prefetching import Prefetching

# The lower bits of a row's number count within its space; the upper bits are 0, or the number of
# the space.
NUMBER_BITS = 36


class Change(NamedTuple):
    """The number of a change, and the random stamp that tells two histories apart."""

    number: int
    stamp: int


class ActiveModel(NamedTuple):
    """The model whose vectors are searched, by its internal number."""

    model_no: int
    dimensions: int


class ChangedMemories(NamedTuple):
    """List known memories that changed: their numbers, their remaining rows, and their chunks."""

    memory_nos: Sequence[int]
    rows: Sequence[Sequence[Any]]
    chunk_nos: Sequence[int]


class ChunkText(NamedTuple):
    """A chunk with every text that its keyword terms are made of."""

    chunk_no: int
    memory_no: int
    chunk_index: int
    content: str
    headings: str
    title: str | None
    summary: str
    derived: str
    chunk_type: str


class IndexSource(Prefetching, Protocol):
    """One snapshot of a database, as the array index reads it."""

    def store_id(self) -> str:
        """Name the store, so that it never uses the index of another store."""
        ...

    def last_change(self) -> Change:
        """Give the last change that this snapshot sees; `(0, 0)` if there is none."""
        ...

    def stamp_of(self, change_no: int) -> int | None:
        """Give the stamp of a change, if the log still reaches back to it."""
        ...

    def active_model(self) -> ActiveModel | None:
        """Give the model whose vectors are searched."""
        ...

    def model_switched_since(self, change_no: int) -> bool:
        """Say whether the model was switched after a change, even if it was switched back."""
        ...

    def changed_since(self, change_no: int, last_memory_no: int) -> ChangedMemories:
        """Give the memories up to the number `last_memory_no` that changed after `change_no`."""
        ...

    def memories_after(self, memory_no: int) -> Iterator[Sequence[Any]]:
        """Give the rows of memories after a number, in order, as `index/columns.py` names them."""
        ...

    def chunks_after(self, chunk_no: int, limit: int) -> Sequence[ChunkText]:
        """Give the chunks after a number, in order."""
        ...

    def vectors_after(
        self, vector_no: int, model_no: int, limit: int
    ) -> Sequence[tuple[int, int, bytes]]:
        """Give number, chunk and float32 bytes of a model's vectors after a number, in order."""
        ...

    def last_vector_no(self) -> int:
        """Give the highest vector number among the vectors of all models."""
        ...

    def chunks_without_vectors(self) -> Iterable[int]:
        """Name the chunks that never get vectors: they are too short, or repeat another text."""
        ...


class IndexedDatabase(Protocol):
    """The database that an index is derived from, or one scope of it, between snapshots.

    A scope is the whole store, or one space of it: the snapshots show nothing else.
    """

    @property
    def writable(self) -> bool:
        """Say whether files may be written beside the database."""
        ...

    def snapshot(self) -> AbstractContextManager[IndexSource]:
        """Open a snapshot of everything committed so far."""
        ...

    def prepare_publishing(self) -> int:
        """Prepare the folder for a new index file, and give the file mode of that file."""
        ...


class IndexCopy(Protocol):
    """The place in a database for a copy of one index, which all servers can load.

    An index is a head and named parts, which never change. A label, which only the index reads,
    describes the copy. A copy is replaced as a whole, but parts that it has stay there.
    """

    def label(self) -> str | None:
        """Give the label of the copy; `None` if there is no copy."""
        ...

    def load(self, out: BinaryIO) -> bool:
        """Write the bytes of the head to a file; return false if there is no copy."""
        ...

    def load_part(self, name: str, out: BinaryIO) -> bool:
        """Write the bytes of a part to a file; return false if the copy has no such part."""
        ...

    def put(self, head: Path, parts: Mapping[str, Path], label: str, replaces: str | None) -> bool:
        """Put a copy of files in place of the copy with the label `replaces`, or of none.

        Do nothing and return false if another copy, or none, is there now.
        """
        ...

    def clear(self) -> None:
        """Remove the copy."""
        ...
