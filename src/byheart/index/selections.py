"""Hold the chunks that a filter selects, and bring the selection of a space up to date.

After a save, only the rows that it added are looked at: a search right after it costs about as
much as any other. The arrays of a view only grow, unless a known memory changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from byheart.contracts import NUMBER_BITS
from byheart.index.bm25 import Scores, norms_of_lengths
from byheart.index.columns import NEVER, ChunkColumns, MemoryColumns
from byheart.index.masks import Mask
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

if TYPE_CHECKING:
    from byheart.index.view import Windows

# A selection that is used more often than this keeps the norms of all its chunks.
_FEW_USES = 3
# Multiplied by this odd number, chunk numbers of any pattern differ in their first bits (Knuth).
_SCATTER = 0x9E3779B97F4A7C15

Slots = NDArray["np.int64"]


class RowsOfSegment(NamedTuple):
    """List the rows of a segment's vectors whose chunks are selected."""

    # Known by its array: each search makes objects of its own for segments in the database.
    vector_slots: NDArray[np.uint32]
    rows: Slots


@dataclass(frozen=True, slots=True)
class Selection:
    """The chunks that match a filter, and BM25's statistics over these chunks alone."""

    chunks: Mask
    total: int
    total_length: int
    # The lengths of all chunks, selected or not.
    lengths: NDArray[np.int32]
    # Caches, filled on first use: the vectors of a sample of the chunks, and the rows of each
    # segment that belong to the chunks.
    samples: list[Windows] = field(default_factory=list)
    rows: list[RowsOfSegment] = field(default_factory=list)
    # A cache as well: the places of the selected turns in the view's order of turns.
    turns: list[Slots] = field(default_factory=list)
    _norms: list[Scores] = field(default_factory=list)
    _uses: list[None] = field(default_factory=list)

    @property
    def everything(self) -> bool:
        """Say whether the filter matches all chunks."""
        return self.total == len(self.chunks)

    def begin_use(self) -> None:
        """Count a question that is going to score words."""
        if not self._norms:
            self._uses.append(None)
            if len(self._uses) > _FEW_USES:
                self._norms.append(self._to_norms(self.lengths))

    def norms_of(self, slots: Slots) -> Scores:
        """Tell how much of BM25's divisor the length of each chunk makes."""
        if self._norms:
            return self._norms[0].take(slots)
        return self._to_norms(self.lengths.take(slots))

    def _to_norms(self, lengths: NDArray[np.int32]) -> Scores:
        return norms_of_lengths(lengths, self.total_length / max(self.total, 1) or 1.0)

    def rows_in(self, vector_slots: NDArray[np.uint32]) -> Slots:
        """List the rows of a segment's vectors whose chunks are selected; kept once found."""
        for known in self.rows:
            if known.vector_slots is vector_slots:
                return known.rows
        rows = np.flatnonzero(self.chunks.take(vector_slots))
        self.rows.append(RowsOfSegment(vector_slots, rows))
        return rows

    def keep_rows_of(self, arrays: Sequence[NDArray[np.uint32]]) -> None:
        """Forget the rows of segments that were merged since."""
        self.rows[:] = [
            row for row in self.rows if any(row.vector_slots is each for each in arrays)
        ]


def select_chunks(columns: ChunkColumns, memories: Mask) -> Selection:
    """Select the chunks of some memories."""
    return _select(columns, memories, 0)


def _select(columns: ChunkColumns, memories: Mask, first: int) -> Selection:
    """Select chunks of memories from a slot on."""
    chunks = columns.alive[first:] & memories.take(columns.owner[first:])
    # A product, because picking the lengths out first takes three times as long.
    total_length = int((columns.length[first:] * chunks).sum(dtype=np.int64))
    return Selection(chunks, int(np.count_nonzero(chunks)), total_length, columns.length)


@dataclass(frozen=True, slots=True)
class Space:
    """Hold the memories of a space, valid from the last expiry until the next."""

    memories: Mask
    selection: Selection
    memory_count: int
    bare_chunks: int
    superseded: bool
    valid_since: int
    valid_until: int

    def is_valid_at(self, now: int) -> bool:
        """Say whether no memory expired since; a clock that goes back revives expired ones."""
        return self.valid_since <= now < self.valid_until


def read_space(
    memories: MemoryColumns, chunks: ChunkColumns, code: int, now: int, before: Space | None
) -> Space:
    """Find what a space contains; with `before`, look only at the rows that are new since then."""
    if before is None or not before.is_valid_at(now):
        before = _nothing(chunks)
    first = len(before.memories)
    own = memories.present[first:] & (memories.space[first:] == code)
    expires = memories.expires[first:]
    alive = own & (memories.replaced[first:] == NEVER) & (expires > now)
    outdated = own & _may_be_outdated(memories, first)
    mask = np.concatenate((before.memories, alive))
    selection = _grow(before.selection, chunks, mask)
    return Space(
        mask,
        selection,
        memory_count=before.memory_count + int(np.count_nonzero(alive)),
        bare_chunks=int(np.count_nonzero(selection.chunks & ~chunks.embedded)),
        superseded=before.superseded or bool(outdated.any()),
        valid_since=max(before.valid_since, int(expires[own & (expires <= now)].max(initial=0))),
        valid_until=min(before.valid_until, int(expires[alive].min(initial=NEVER))),
    )


def _nothing(chunks: ChunkColumns) -> Space:
    nobody: Mask = np.empty(0, np.bool_)
    return Space(nobody, Selection(nobody, 0, 0, chunks.length), 0, 0, False, 0, NEVER)


def _grow(before: Selection, columns: ChunkColumns, memories: Mask) -> Selection:
    new = _select(columns, memories, len(before.chunks))
    return Selection(
        np.concatenate((before.chunks, new.chunks)),
        before.total + new.total,
        before.total_length + new.total_length,
        columns.length,
        # A segment holds no chunks that are newer than itself.
        rows=list(before.rows),
    )


def _may_be_outdated(rows: MemoryColumns, first: int) -> Mask:
    """Mark memories that were superseded, or have a beginning or an end."""
    marked: Mask = rows.superseded[first:] < NEVER
    marked |= rows.ends[first:] < NEVER
    marked |= rows.begins[first:] < NEVER
    return marked


class Scattered(NamedTuple):
    """Chunks that stand for all of the first `covered` ones."""

    slots: Slots
    covered: int


def scatter(chunk_nos: NDArray[np.int64], halvings: int, before: Scattered | None) -> Scattered:
    """List chunks that stand for all, half as many with each halving.

    Chosen by their own numbers, so that another chunk does not change the whole choice, and
    without the space, so that a copy of a store in another database has the same sample.
    """
    known, first = before or (np.empty(0, np.int64), 0)
    within = chunk_nos[first:] & ((1 << NUMBER_BITS) - 1)
    mixed = within.astype(np.uint64) * _SCATTER
    chosen = np.flatnonzero(mixed <= np.uint64(2 ** (64 - halvings) - 1))
    return Scattered(np.concatenate((known, chosen + first)), len(chunk_nos))
