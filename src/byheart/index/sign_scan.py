"""Find the vectors that are probably near to a question by their signs, in two passes.

The first pass counts for every vector in how many signs it differs from the question, and keeps
some thousand rows. The second pass weighs each differing sign of these rows by how much the
question says in that dimension: a dimension in which the question is nearly zero says nothing.
So the rows that are compared exactly hold more of the nearest ones. Twice as many rows, chosen by
their signs alone, hold fewer (docs/decisions/0048).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from byheart.index.masks import Mask
from byheart.index.segment import Segment, mix, pack_bits
from byheart.index.selections import Slots
from byheart.index.stored_segment import StoredSegment
from byheart.startup.late_numpy import NDArray, np

# The number of rows that the second pass weighs for each one that is wanted.
_WEIGHED = 8
# Above this number of rows, both passes keep more by this power of it, because the nearest vectors
# of more rows differ less from the others.
_MANY_ROWS, _GROWTH = 100_000, 0.25
# A dimension counts by a number of so many bits. The dimensions of a mixed vector are spread like a
# normal distribution; beyond this many deviations they count alike.
_BITS_OF_WEIGHT, _DEVIATIONS = 3, 2.2
# The number of distances from which the radius of the first pass is estimated.
_SAMPLED = 1 << 14
# The bit counts of three 64-bit words fit into one byte, and bytes are added fastest.
_WORDS_IN_A_BYTE = 3
# Arrays of this length stay in the processor's cache.
_BLOCK = 1 << 15

Signs = NDArray["np.uint64"]
Distances = NDArray["np.unsignedinteger"]
AnySegment = Segment | StoredSegment


def near_by_signs(
    segments: Sequence[AnySegment],
    allowed: Sequence[Slots],
    vector: NDArray[np.float32],
    wanted: int,
) -> list[Slots]:
    """Choose about `wanted` of the allowed rows of each segment that are probably nearest."""
    growth = max(sum(map(len, allowed)) / _MANY_ROWS, 1.0) ** _GROWTH
    wanted = int(wanted * growth)
    mixed = mix(vector[np.newaxis])[0]
    signs = pack_bits(mixed > 0)
    rows = allowed
    if sum(map(len, rows)) > _WEIGHED * wanted:
        rows = _first_pass(segments, rows, signs, len(vector), _WEIGHED * wanted)
    planes = _weigh_dimensions(mixed)
    distances = [
        _weigh_differences(each, signs, planes, some)
        for each, some in zip(segments, rows, strict=True)
    ]
    near = np.concatenate(distances)
    if len(near) <= wanted:
        return list(rows)
    reach = np.partition(near, wanted - 1)[wanted - 1]
    return _take_within(rows, distances, int(reach))


def _first_pass(
    segments: Sequence[AnySegment],
    allowed: Sequence[Slots],
    signs: Signs,
    dimensions: int,
    wanted: int,
) -> list[Slots]:
    pairs = zip(segments, allowed, strict=True)
    distances = [count_differences(segment, signs, rows) for segment, rows in pairs]
    # Estimate the Hamming radius from every n-th distance; this fails if near vectors repeat with
    # period n.
    step = max(1, sum(map(len, distances)) // _SAMPLED)
    near = _take_within(allowed, distances, _reach(distances, dimensions, wanted, step))
    if not 0.75 * wanted <= sum(map(len, near)) <= 2 * wanted:
        near = _take_within(allowed, distances, _reach(distances, dimensions, wanted, 1))
    return near


def count_differences(segment: AnySegment, signs: Signs, rows: Slots) -> NDArray[np.uint16]:
    """Count the signs in which each row of a segment differs from a vector."""
    # Selecting more than a third of the rows takes longer than comparing all of them.
    few = 3 * len(rows) < len(segment.vector_slots)
    differences = np.zeros(len(rows) if few else len(segment.vector_slots), np.uint16)
    for at in range(0, len(differences), _BLOCK):
        here = slice(at, at + _BLOCK)
        for first in range(0, len(signs), _WORDS_IN_A_BYTE):
            group = slice(first, first + _WORDS_IN_A_BYTE)
            words = (each.take(rows[here]) if few else each[here] for each in segment.signs[group])
            pairs = zip(words, signs[group], strict=True)
            differences[here] += reduce(np.add, (np.bitwise_count(a ^ b) for a, b in pairs))
    return differences if len(differences) == len(rows) else differences.take(rows)


def _weigh_dimensions(mixed: NDArray[np.float32]) -> list[Signs]:
    """Weigh each dimension of a mixed vector by its size; give the bits of the weights by plane."""
    most = 2**_BITS_OF_WEIGHT - 1
    deviation = float(np.linalg.norm(mixed)) / math.sqrt(len(mixed)) or 1.0
    weights = np.round(np.abs(mixed) * (most / (_DEVIATIONS * deviation)))
    whole = np.minimum(weights, most).astype(np.uint8)
    return [pack_bits((whole >> bit) & 1 == 1) for bit in range(_BITS_OF_WEIGHT)]


def _weigh_differences(
    segment: AnySegment, signs: Signs, planes: Sequence[Signs], rows: Slots
) -> Distances:
    """Add up the weights of the signs in which each row of a segment differs from a vector."""
    most = len(signs) * 64 * (2 ** len(planes) - 1)
    distances = np.zeros(len(rows), np.min_scalar_type(most))
    for first in range(0, len(signs), _WORDS_IN_A_BYTE):
        group = slice(first, first + _WORDS_IN_A_BYTE)
        pairs = zip(segment.signs[group], signs[group], strict=True)
        differing = [words.take(rows) ^ sign for words, sign in pairs]
        for bit, plane in enumerate(planes):
            masked = (each & mask for each, mask in zip(differing, plane[group], strict=True))
            counts = reduce(np.add, map(np.bitwise_count, masked)).astype(distances.dtype)
            distances += counts << distances.dtype.type(bit)
    return distances


def _reach(distances: Sequence[Distances], most: int, wanted: int, step: int) -> int:
    """Estimate the radius that contains `wanted` rows, from every `step`-th distance."""
    counts = sum(np.bincount(each[::step], minlength=most + 1) for each in distances)
    return int(np.searchsorted(np.cumsum(counts), wanted / step))


def _take_within(rows: Sequence[Slots], distances: Sequence[Distances], reach: int) -> list[Slots]:
    within: list[Mask] = [each <= reach for each in distances]
    return [some.take(np.flatnonzero(near)) for some, near in zip(rows, within, strict=True)]
