"""Define what the index of a large space reads and writes in its database.

The postings of a large space stay in the database, in runs. A run holds the postings of up to
65,536 chunks that were saved one after the other. It never changes: it is replaced by another run
with another number. Runs are cut into blocks with keys (`index/posting_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from byheart.contracts.embedders import Vectors
    from byheart.contracts.index import Numbers


class PostingBlock(NamedTuple):
    """The postings of one term or of a group of terms in one run."""

    run_no: int
    key: int
    data: bytes


class PostingRun(NamedTuple):
    """A run of postings: how many chunks it has, and the last chunk that it covers."""

    run_no: int
    chunks: int
    last_chunk_no: int


class ChunkVectors(NamedTuple):
    """Vectors, a row each, and the chunk of each."""

    chunk_nos: Numbers
    vectors: Vectors


class StoredPostings(Protocol):
    """Read postings and vectors of one space in the snapshot of a search."""

    def covered_to(self) -> int:
        """Give the last chunk whose postings are stored; 0 if there are no runs."""
        ...

    def expect_blocks(self, keys: Sequence[int]) -> None:
        """Ask for blocks that `blocks` is about to give, without waiting for them."""
        ...

    def blocks(self, keys: Sequence[int]) -> Sequence[PostingBlock]:
        """Give the blocks with some keys, of all runs."""
        ...

    def members(self, run_nos: Sequence[int]) -> dict[int, Numbers]:
        """List the chunks of runs, in order: a posting names its chunk by its place there."""
        ...

    def vectors(self, chunk_nos: Numbers, model_no: int, last_vector_no: int) -> ChunkVectors:
        """Give a model's vectors of chunks up to a vector, by chunk and then by their numbers."""
        ...


class PostingChanges(Protocol):
    """Change the runs of one space in a transaction; nobody else changes them meanwhile."""

    def runs(self) -> list[PostingRun]:
        """List the runs in the order of their chunks."""
        ...

    def members(self, run_no: int) -> Numbers:
        """List the chunks of a run, in order."""
        ...

    def blocks_between(self, run_no: int, first: int, last: int) -> Iterable[PostingBlock]:
        """Give the blocks of a run whose keys are in a range, both ends included."""
        ...

    def existing(self, chunk_nos: Numbers) -> Numbers:
        """Keep the chunks that the database has, of numbers in order."""
        ...

    def add(self, members: Numbers, last_chunk_no: int) -> int:
        """Add a run without blocks, and give its number."""
        ...

    def add_blocks(self, run_no: int, blocks: Iterable[tuple[int, bytes]]) -> None:
        """Add blocks, with their keys, to a run that this transaction added."""
        ...

    def remove(self, run_nos: Sequence[int]) -> None:
        """Remove runs with their blocks."""
        ...

    def retire(self, retired: bool) -> None:
        """Mark the runs as no longer needed, or as needed again; remove them an hour later."""
        ...


class PostingStore(Protocol):
    """Keep the postings of one space in a database."""

    @property
    def local_chunks(self) -> int:
        """Give the most chunks of a space whose postings are not stored."""
        ...

    def changing(self, *, wait: bool) -> AbstractContextManager[PostingChanges | None]:
        """Begin to change the runs; wait for another process that is doing so, or give `None`."""
        ...
