"""Build segments: the postings and vectors of a batch of chunks, as arrays that never change.

A chunk is identified by its slot: its place in the columns of the index.

- `terms` are sorted 64-bit hashes; the postings of `terms[i]` are `slots[starts[i]:starts[i + 1]]`
  with `counts` beside them. (Among a million different words the chance that any two share a hash
  is 3 in 100 million.)
- `signs` holds one bit per dimension of each vector, packed into 64-bit words and stored by word:
  comparing a query with 100,000 vectors takes half a millisecond in numpy.
- `embeddings` are the vectors in 16-bit fixed point (cosines are exact to 0.0001); they rank the
  chunks that the signs select. Half-precision floats would take the same space, but numpy converts
  them ten times slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

FIXED_POINT = 32767
_MOST_COUNTED = 255
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """Postings and vectors of a batch of chunks."""

    terms: NDArray[np.uint64]
    starts: NDArray[np.int64]
    slots: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    vector_slots: NDArray[np.uint32]
    signs: NDArray[np.uint64]
    embeddings: NDArray[np.int16]

    def postings(
        self, terms: NDArray[np.uint64]
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint8]]]:
        """Give for each term the slots that contain it, and how often."""
        at = np.searchsorted(self.terms, terms)
        there = at < len(self.terms)
        there[there] = self.terms[at[there]] == terms[there]
        at[~there] = len(self.terms)
        ends = self.starts[np.minimum(at + 1, len(self.terms))]
        for start, end in zip(self.starts[at].tolist(), ends.tolist(), strict=True):
            yield self.slots[start:end], self.counts[start:end]

    def load(self, rows: NDArray[np.integer[Any]]) -> None:
        """Do nothing: the vectors are here. `StoredSegment` fetches those of the rows."""

    @property
    def weight(self) -> int:
        """Give the size that decides when segments are merged."""
        return len(self.slots) + 64 * len(self.vector_slots)


@lru_cache(2048)  # words of questions recur
def hash_term(term: str) -> int:
    """Hash a term to 64 bits that are the same on every machine."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=8)
def _flips(dimensions: int) -> tuple[NDArray[np.float32], ...]:
    heads = [np.random.default_rng([seed, dimensions]).random(dimensions) for seed in range(2)]
    return tuple(np.where(head < 0.5, -1, 1).astype(np.float32) for head in heads)


def mix(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rotate all vectors alike, so that every dimension carries information about each vector.

    Signs of sparse vectors carry little information: among 20,000 vectors of the `hash` embedder, 3
    of the true first 10 were found without the rotation, and all 10 with it; real models lose
    nothing. Two Hartley transforms of randomly flipped dimensions are a rotation without a matrix.
    """
    mixed, dimensions = vectors, vectors.shape[1]
    for flips in _flips(dimensions):
        # The second half of the spectrum mirrors the first: rfft is three times as fast as fft.
        waves = np.fft.rfft(mixed * flips, axis=1)
        mirrored = waves[:, (dimensions - 1) // 2 : 0 : -1]
        mixed = np.concatenate([waves.real - waves.imag, mirrored.real + mirrored.imag], axis=1)
    return mixed


def pack_signs(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Keep one bit per dimension: rows are 64-bit words, columns are vectors."""
    return np.ascontiguousarray(pack_bits(mix(vectors) > 0).T)


def pack_bits(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack the bits along the last axis into 64-bit words."""
    packed = np.packbits(bits, axis=-1)
    padded = np.zeros((*bits.shape[:-1], -(-packed.shape[-1] // 8) * 8), np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return padded.view(np.uint64)


def build_postings(
    chunk_terms: Iterable[tuple[int, Sequence[str]]],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]:
    """Invert the terms of chunks, given in ascending order of slot."""
    hashes: list[int] = []
    slots: list[int] = []
    counts: list[int] = []
    names: dict[str, int] = {}
    for slot, terms in chunk_terms:
        for term, count in Counter(terms).items():
            name = names.get(term)
            if name is None:
                name = names[term] = hash_term.__wrapped__(term)
            hashes.append(name)
            slots.append(slot)
            counts.append(count)
    flat = np.array(hashes, np.uint64)
    order = np.argsort(flat, kind="stable")
    terms_sorted, starts = np.unique(flat[order], return_index=True)
    return (
        terms_sorted,
        np.append(starts, len(flat)).astype(np.int64),
        np.array(slots, np.uint32)[order],
        np.minimum(np.array(counts, np.int64), _MOST_COUNTED).astype(np.uint8)[order],
    )


def to_fixed_point(vectors: NDArray[np.float32]) -> NDArray[np.int16]:
    """Write vectors in 16-bit fixed point."""
    return np.round(vectors * FIXED_POINT).astype(np.int16)


def build_vectors(
    slots: Sequence[int], rows: NDArray[np.float32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int16]]:
    """Sort vectors by slot, so that the windows of a chunk are adjacent."""
    order = np.argsort(np.array(slots, np.int64), kind="stable")
    arranged = rows[order]
    return np.array(slots, np.uint32)[order], pack_signs(arranged), to_fixed_point(arranged)


def merge(
    segments: Sequence[Segment],
    renumber: NDArray[np.int64] | None = None,
) -> Segment:
    """Merge segments into one; with `renumber`, give slots new numbers and drop slots at -1."""
    terms = np.concatenate([each.terms for each in segments])
    lengths = np.concatenate([np.diff(each.starts) for each in segments])
    offsets = np.cumsum([0, *(len(each.slots) for each in segments)])
    begins = np.concatenate(
        [each.starts[:-1] + base for each, base in zip(segments, offsets, strict=False)]
    )
    order = np.argsort(terms, kind="stable")
    slots, counts, lengths = _gather(segments, offsets, begins[order], lengths[order], renumber)
    distinct, first = np.unique(terms[order], return_index=True)
    sums = np.add.reduceat(lengths, first) if len(first) else lengths
    kept = sums > 0
    vectors = _merge_vectors(segments, renumber)
    return Segment(
        distinct[kept],
        np.concatenate([[0], np.cumsum(sums[kept])]).astype(np.int64),
        slots,
        counts,
        *vectors,
    )


def _gather(
    segments: Sequence[Segment],
    offsets: NDArray[np.int64],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    renumber: NDArray[np.int64] | None,
) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.int64]]:
    """Copy posting lists in a new order, in blocks, to bound the memory needed."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    slots = np.empty(total, np.uint32)
    counts = np.empty(total, np.uint8)
    kept_lengths = lengths.copy()
    written = low = 0
    while low < len(lengths):
        done = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, done + _BLOCK)))
        sizes = lengths[low:high]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        source = np.repeat(begins[low:high] - starts, sizes) + np.arange(int(sizes.sum()))
        block_slots, block_counts = _pick(segments, offsets, source)
        if renumber is not None:
            fresh = renumber[block_slots]
            alive = fresh >= 0
            kept_lengths[low:high] = np.bincount(
                np.repeat(np.arange(len(sizes)), sizes)[alive], minlength=len(sizes)
            )
            block_slots, block_counts = fresh[alive].astype(np.uint32), block_counts[alive]
        slots[written : written + len(block_slots)] = block_slots
        counts[written : written + len(block_counts)] = block_counts
        written += len(block_slots)
        low = high
    return slots[:written], counts[:written], kept_lengths


def _pick(
    segments: Sequence[Segment], offsets: NDArray[np.int64], source: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    slots = np.empty(len(source), np.uint32)
    counts = np.empty(len(source), np.uint8)
    home = np.searchsorted(offsets, source, side="right") - 1
    for number, each in enumerate(segments):
        here = np.flatnonzero(home == number)
        if len(here):
            local = source[here] - offsets[number]
            slots[here] = each.slots[local]
            counts[here] = each.counts[local]
    return slots, counts


def _merge_vectors(
    segments: Sequence[Segment], renumber: NDArray[np.int64] | None
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int16]]:
    filled = [each for each in segments if len(each.vector_slots)]
    if not filled:
        only = segments[0]
        return only.vector_slots, only.signs, only.embeddings
    slots = np.concatenate([each.vector_slots for each in filled]).astype(np.int64)
    signs = np.concatenate([each.signs for each in filled], axis=1)
    embeddings = np.concatenate([each.embeddings for each in filled])
    if renumber is not None:
        slots = renumber[slots]
    order = np.argsort(slots, kind="stable")
    order = order[np.searchsorted(slots[order], 0) :]
    if np.array_equal(order, np.arange(len(slots))):
        return slots.astype(np.uint32), signs, embeddings
    return slots[order].astype(np.uint32), np.ascontiguousarray(signs[:, order]), embeddings[order]


def without_vectors(segment: Segment, dimensions: int) -> Segment:
    """Copy a segment with its postings and without vectors, for a model of `dimensions`."""
    nothing = empty_segment(dimensions)
    return replace(
        segment,
        vector_slots=nothing.vector_slots,
        signs=nothing.signs,
        embeddings=nothing.embeddings,
    )


def empty_segment(dimensions: int) -> Segment:
    """Make an empty segment."""
    return Segment(
        np.empty(0, np.uint64),
        np.zeros(1, np.int64),
        np.empty(0, np.uint32),
        np.empty(0, np.uint8),
        np.empty(0, np.uint32),
        np.empty((-(-dimensions // 64), 0), np.uint64),
        np.empty((0, dimensions), np.int16),
    )


def rows_of(vector_slots: NDArray[np.uint32], slots: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """List the rows of a segment's vectors that belong to some chunks."""
    sought = slots.astype(np.uint32)  # of the same type, or all of `vector_slots` is converted
    first = np.searchsorted(vector_slots, sought, side="left")
    lengths = np.searchsorted(vector_slots, sought, side="right") - first
    # Concatenate the ranges without a loop.
    starts = np.cumsum(lengths) - lengths
    rows: NDArray[np.int64] = np.repeat(first - starts, lengths) + np.arange(int(lengths.sum()))
    return rows
