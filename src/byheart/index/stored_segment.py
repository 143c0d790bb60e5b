"""Read postings and vectors of a large space from its database, as a segment of the index.

The index of a large space keeps its columns and the signs of its vectors in memory. They take much
less room, and decide which few postings and vectors a question needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from byheart.contracts import ActiveModel, PostingBlock, StoredPostings
from byheart.index.posting_blocks import Group, TermPostings, group_key, list_key, read_list
from byheart.index.segment import Segment, empty_segment, rows_of, to_fixed_point
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

# The number of chunks whose vectors are fetched at a time, and that of vectors that are kept.
_FETCHED, _MOST_KEPT = 8192, 1 << 16

Posting = tuple[NDArray["np.uint32"], NDArray["np.uint8"]]


@dataclass(frozen=True, slots=True, eq=False)
class StoredPart:
    """The part of an index whose postings and vectors are in the database.

    It covers chunks and vectors up to a number; what is newer is in memory.
    """

    last_chunk_no: int
    last_vector_no: int
    # The slot of each chunk of a run; -1 for a chunk that is gone, or newer.
    slots: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def learn(self, run_no: int, members: NDArray[np.int64], chunk_nos: NDArray[np.int64]) -> None:
        """Find the slots of the chunks of a run."""
        places = np.minimum(chunk_nos.searchsorted(members), max(len(chunk_nos) - 1, 0))
        is_here = (members <= self.last_chunk_no) & (chunk_nos.take(places) == members)
        self.slots[run_no] = np.where(is_here, places, -1)


class StoredSegment:
    """The stored part of an index in the snapshot of one search."""

    def __init__(
        self,
        base: Segment,
        part: StoredPart,
        chunk_nos: NDArray[np.int64],
        model: ActiveModel | None,
        stored: StoredPostings,
    ) -> None:
        self.vector_slots = base.vector_slots
        self.signs = base.signs
        self.embeddings = StoredVectors(base.vector_slots, part, chunk_nos, model, stored)
        self._part = part
        self._chunk_nos = chunk_nos
        self._stored = stored
        self._known: dict[int, Posting] = {}

    def postings(self, terms: NDArray[np.uint64]) -> Iterator[Posting]:
        """Give for each term the slots that contain it, and how often."""
        asked = terms.tolist()
        missing = [term for term in dict.fromkeys(asked) if term not in self._known]
        if missing:
            self._fetch(missing)
        return (self._known[term] for term in asked)

    def expect(self, terms: Sequence[int]) -> None:
        """Ask for postings that are about to be read, without waiting for them."""
        missing = [term for term in dict.fromkeys(terms) if term not in self._known]
        if missing:
            self._stored.expect_blocks(_keys_of(missing))

    def load(self, rows: NDArray[np.integer]) -> None:
        """Fetch vectors that are about to be read, all at once."""
        self.embeddings.load(rows)

    def _fetch(self, terms: Sequence[int]) -> None:
        blocks = self._stored.blocks(_keys_of(terms))
        self._learn_runs({block.run_no for block in blocks})
        read: dict[int, list[tuple[int, TermPostings | Group]]] = {}
        for block in blocks:
            read.setdefault(block.key, []).append((block.run_no, _read(block)))
        for term in terms:
            parts = [
                (run_no, found)
                for key in (list_key(term), group_key(term))
                for run_no, block in read.get(key, ())
                if (found := block.find(term) if isinstance(block, Group) else block) is not None
            ]
            self._known[term] = _join(self._located(parts))

    def _learn_runs(self, run_nos: Iterable[int]) -> None:
        unknown = [each for each in run_nos if each not in self._part.slots]
        if unknown:
            for run_no, members in self._stored.members(unknown).items():
                self._part.learn(run_no, members, self._chunk_nos)

    def _located(self, parts: Sequence[tuple[int, TermPostings]]) -> Iterator[Posting]:
        """Name the chunks of postings by their slots."""
        for run_no, (places, counts) in parts:
            slots = self._part.slots[run_no].take(places)
            if len(slots) and slots.min() < 0:
                kept = np.flatnonzero(slots >= 0)
                slots, counts = slots.take(kept), counts.take(kept)
            if len(slots):
                yield slots.astype(np.uint32), counts


def _keys_of(terms: Sequence[int]) -> list[int]:
    return sorted({key for term in terms for key in (list_key(term), group_key(term))})


def _read(block: PostingBlock) -> TermPostings | Group:
    return Group(block.data) if block.key < 0 else read_list(block.data)[1]


def _join(parts: Iterable[Posting]) -> Posting:
    """Put the postings of several runs in order; each run has chunks of its own range."""
    ordered = sorted(parts, key=lambda part: int(part[0][0]))
    if not ordered:
        return np.empty(0, np.uint32), np.empty(0, np.uint8)
    slots, counts = zip(*ordered, strict=True)
    return np.concatenate(slots), np.concatenate(counts)


class StoredVectors:
    """Vectors in fixed point, by their rows; they are fetched when they are read."""

    def __init__(
        self,
        vector_slots: NDArray[np.uint32],
        part: StoredPart,
        chunk_nos: NDArray[np.int64],
        model: ActiveModel | None,
        stored: StoredPostings,
    ) -> None:
        self._vector_slots = vector_slots
        self._part = part
        self._chunk_nos = chunk_nos
        self._model_no, self._dimensions = model or (0, 0)
        self._stored = stored
        self._rows = np.empty(0, np.int64)
        self._vectors = np.empty((0, self._dimensions), np.int16)

    def take(self, rows: NDArray[np.integer], axis: int = 0) -> NDArray[np.int16]:
        """Give the vectors of some rows."""
        assert axis == 0, "rows are taken"
        self.load(rows)
        return self._vectors.take(self._rows.searchsorted(rows), axis=0)

    def __getitem__(self, rows: NDArray[np.integer] | slice) -> NDArray[np.int16]:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self._vector_slots)))
        return self.take(rows)

    def load(self, rows: NDArray[np.integer]) -> None:
        """Fetch the vectors of rows that are not here yet."""
        missing = np.setdiff1d(rows, self._rows)
        if not len(missing):
            return
        slots = np.unique(self._vector_slots.take(missing))
        if len(self._rows) + len(missing) > _MOST_KEPT:
            # Rows that are asked for now and were here are fetched again.
            self._rows, self._vectors = self._rows[:0], self._vectors[:0]
            slots = np.unique(self._vector_slots.take(rows))
        for at in range(0, len(slots), _FETCHED):
            self._fetch(slots[at : at + _FETCHED])

    def _fetch(self, slots: NDArray[np.uint32]) -> None:
        """Fetch all vectors of some chunks."""
        rows = rows_of(self._vector_slots, slots)
        found = self._stored.vectors(
            self._chunk_nos.take(slots), self._model_no, self._part.last_vector_no
        )
        vectors = to_fixed_point(found.vectors.reshape(len(found.chunk_nos), self._dimensions))
        places = self._chunk_nos.take(self._vector_slots.take(rows))
        if not np.array_equal(places, found.chunk_nos):
            vectors = _matched(places, found.chunk_nos, vectors)
        if len(self._rows):
            rows = np.concatenate((self._rows, rows))
            vectors = np.concatenate((self._vectors, vectors))
            order = np.argsort(rows, kind="stable")
            rows, vectors = rows.take(order), vectors.take(order, axis=0)
        self._rows, self._vectors = rows, vectors


def _matched(
    wanted: NDArray[np.int64],
    found: NDArray[np.int64],
    vectors: NDArray[np.int16],
) -> NDArray[np.int16]:
    """Give each row its vector; a vector that was removed meanwhile is near to nothing."""
    window = np.arange(len(wanted)) - wanted.searchsorted(wanted)
    first = found.searchsorted(wanted)
    there = np.flatnonzero(window < found.searchsorted(wanted, "right") - first)
    matched = np.zeros((len(wanted), vectors.shape[1]), np.int16)
    matched[there] = vectors.take(first.take(there) + window.take(there), axis=0)
    return matched


def without_stored(segment: Segment) -> Segment:
    """Copy a segment without the arrays that the database has: postings and vectors."""
    nothing = empty_segment(0)
    return replace(
        segment,
        terms=nothing.terms,
        starts=nothing.starts,
        slots=nothing.slots,
        counts=nothing.counts,
        embeddings=np.empty((len(segment.vector_slots), 0), np.int16),
    )
