"""Find memories that say almost the same: by the signs of their vectors, then by cosines.

The similarity of two memories: for each vector of one memory, take the best cosine with a vector of
the other; average these; take the smaller value of the two directions, so that neither memory says
much that the other does not. Two memories are never the same if one is more than twice as long.

Pairs are found without comparing all with all: the sign bits of a vector are cut into bands of 16,
and only vectors that agree in a whole band are compared. Two vectors at cosine 0.95 differ in one
bit of ten, and agree in some band of 24 in 99 of 100 cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from byheart.contracts import Figures, Numbers
from byheart.index.columns import NEVER, NONE
from byheart.index.masks import Mask
from byheart.index.segment import FIXED_POINT, pack_signs
from byheart.index.sign_scan import count_differences
from byheart.index.view import EXACT_VECTORS, View
from byheart.startup.late_numpy import NDArray, np

# The number of vectors of a long memory that are looked up when it is saved; one scan takes half
# a millisecond in a store of 100,000 chunks.
_MOST_ASKED = 4
# The number of vectors whose cosine with one of these is computed, the nearest by sign: in a store
# of 100,000 long texts, half of them can be near enough.
_MOST_COMPARED = 256
# To compare the signs of fewer vectors first takes longer than to compare the vectors.
_FEW = 64
# The number of memories that are compared with a saved one, the nearest first.
_MOST_JUDGED = 32
_MOST_TIMES_LONGER = 2
_BAND_BITS = 16
# The share of pairs exactly at the threshold that may be missed; nearer pairs are missed less.
_MISSED = 0.01
_MOST_ROUNDS = 8
# In a band, each vector is compared with this many following vectors, and with the first.
_MOST_NEIGHBOURS = 16
# If thousands of memories say the same, this many pairs are enough at first.
_MOST_PAIRS = 100_000
_BLOCK = 8192

Cosines = NDArray["np.float32"]


class Pairs(NamedTuple):
    """Pairs of memories that say almost the same, by number, with their similarity, best first."""

    first: Numbers
    second: Numbers
    similarity: Figures


# --- One memory against all -------------------------------------------------------------------


def resembling(
    view: View, memory_no: int, least: float, limit: int, now: int
) -> list[tuple[int, float]]:
    """Find memories that say almost the same as one and are visible wherever it is visible."""
    row = int(np.searchsorted(view.memories.memory_nos, memory_no))
    [mine] = _texts(view, [row], np.flatnonzero(view.chunks.owner == row))
    asked = mine.vectors[:: -(-len(mine.vectors) // _MOST_ASKED) or 1]
    near = [each for vector in asked for each in _near(view, vector, least)]
    if not near:
        return []
    slots, cosines = map(np.concatenate, zip(*near, strict=True))
    owners = view.chunks.owner.take(slots).astype(np.int64)
    visible = np.flatnonzero(_is_visible(view, owners, row, now))
    nearest_first = visible[np.lexsort((owners[visible], -cosines[visible]))]
    firsts = np.sort(np.unique(owners[nearest_first], return_index=True)[1])  # each memory once
    judged = nearest_first[firsts[:_MOST_JUDGED]]
    parts = [_parts_of(view, slot, mine.length) for slot in slots[judged].tolist()]
    found = [
        (int(view.memories.memory_nos[other]), similarity)
        for other, similarity in _liken_to(view, mine.vectors, [*chain.from_iterable(parts)])
        if similarity >= least
    ]
    return sorted(found, key=lambda each: (-each[1], each[0]))[:limit]


def _parts_of(view: View, slot: int, length: int) -> Sequence[int]:
    """Find the chunks of the memory that a chunk is of, if its length is near enough to another.

    The chunks of a memory are adjacent, so this does not go through the chunks of the store.
    """
    owner, last = view.chunks.owner, len(view.chunks.owner) - 1
    memory, begin, end = owner[slot], slot, slot
    words = 0
    for at, step in ((slot, -1), (slot + 1, 1)):
        while 0 <= at <= last and owner[at] == memory and words <= _MOST_TIMES_LONGER * length:
            words += int(view.chunks.length[at]) if view.chunks.alive[at] else 0
            begin, end, at = min(begin, at), max(end, at), at + step
    if max(words, length) > _MOST_TIMES_LONGER * min(words, length):
        return ()
    return [at for at in range(begin, end + 1) if view.chunks.alive[at]]


def _liken_to(view: View, mine: Cosines, slots: Sequence[int]) -> Iterable[tuple[int, float]]:
    """Give the similarity of some vectors with each memory that has some of these chunks."""
    windows = view.windows(np.array(slots, np.int64))
    counts = np.diff(windows.first, append=len(windows.vectors))
    owners = np.repeat(view.chunks.owner.take(windows.slots), counts)
    cosines = np.vecdot(mine[:, np.newaxis], windows.vectors) / np.float32(FIXED_POINT)
    others, places = np.unique(owners, return_inverse=True)
    if len(mine) == 1:  # the usual case: of one vector, the mean is the smaller value
        means = np.bincount(places, cosines[0]) / np.bincount(places)
        return zip(others.tolist(), np.minimum(means, 1.0).round(6).tolist(), strict=True)
    return (
        (other, _judge_cosines(cosines[:, places == at]))
        for at, other in enumerate(others.tolist())
    )


class _Text(NamedTuple):
    """Hold the compared parts of a memory: its number of words, and its vectors."""

    length: int
    vectors: Cosines


def _texts(view: View, rows: Sequence[int], slots: Numbers) -> list[_Text]:
    """Read the compared parts of some memories, whose chunks are in these slots."""
    slots = slots[view.chunks.alive.take(slots)]
    owners, lengths = view.chunks.owner.take(slots), view.chunks.length.take(slots)
    windows = view.windows(slots)
    counts = np.diff(windows.first, append=len(windows.vectors))
    of_windows = np.repeat(view.chunks.owner.take(windows.slots), counts)
    vectors = windows.vectors / np.float32(FIXED_POINT)
    return [_Text(int(lengths[owners == row].sum()), vectors[of_windows == row]) for row in rows]


def _is_visible(view: View, others: Numbers, row: int, now: int) -> Mask:
    rows = view.memories
    session = rows.session[others]
    visible: Mask = (
        (others != row)
        & rows.present[others]
        & (rows.space[others] == rows.space[row])
        & ((session == NONE) | (session == rows.session[row]))
        & (rows.replaced[others] == NEVER)
        & (rows.superseded[others] == NEVER)
        & (rows.expires[others] > now)
    )
    return visible


def _near(view: View, vector: Cosines, least: float) -> Iterator[tuple[Numbers, Cosines]]:
    """Give the chunks that have a vector with at least this cosine, and the cosine."""
    by_signs = sum(len(each.vector_slots) for each in view.segments) > EXACT_VECTORS
    bits, reach = pack_signs(vector[np.newaxis])[:, 0], _reach(view.dimensions, least)
    for segment in view.segments:
        if not len(segment.vector_slots):
            continue
        rows = np.arange(len(segment.vector_slots))
        if by_signs and len(rows) > _FEW:
            rows = _nearest(count_differences(segment, bits, rows), reach)
        embeddings = segment.embeddings.take(rows, axis=0).astype(np.float32)
        cosines = np.vecdot(embeddings, vector) / FIXED_POINT
        near = cosines >= least
        slots = segment.vector_slots[rows[near]]
        alive = view.chunks.alive[slots]
        yield slots[alive].astype(np.int64), cosines[near][alive]


def _nearest(differences: NDArray[np.uint16], reach: int) -> Numbers:
    """Give the rows within reach: the nearest ones, if they are more than are worth comparing."""
    rows: Numbers = np.flatnonzero(differences <= reach)
    if len(rows) > _MOST_COMPARED:
        rows = rows[np.argpartition(differences[rows], _MOST_COMPARED)[:_MOST_COMPARED]]
    return rows


def _distances(differing: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint16]:
    """Count the bits in which vectors differ; the differing bits are given word by word."""
    counts = map(np.bitwise_count, differing)
    distance: NDArray[np.uint16] = next(counts).astype(np.uint16)
    for count in counts:
        distance += count
    return distance


def _reach(dimensions: int, least: float) -> int:
    """Give the most signs in which vectors of a cosine differ, plus four standard deviations."""
    share = math.acos(min(least, 1.0)) / math.pi
    return math.ceil(dimensions * share + 4 * math.sqrt(dimensions * share * (1 - share))) + 1


def _liken(some: Cosines, others: Cosines) -> float:
    return _judge_cosines(np.vecdot(some[:, np.newaxis], others))


def _judge_cosines(cosines: Cosines) -> float:
    mean = min(cosines.max(axis=0).mean(), cosines.max(axis=1).mean())
    # Fixed-point rounding can make the cosine of equal vectors a little more than 1.
    return round(min(float(mean), 1.0), 6)


# --- All against all --------------------------------------------------------------------------


def find_pairs(view: View, chunks: Mask, least: float) -> Pairs:
    """Find pairs of the same kind and session among the memories that selected chunks belong to."""
    vectors = _Vectors(view, chunks)
    found, cosines = np.empty((0, 2), np.int64), np.empty(0, np.float32)
    for pairs in _candidates(vectors, least):
        # The nearest pairs agree in most bands: each pair is compared only once.
        known = np.isin(pairs @ [len(vectors), 1], found @ [len(vectors), 1])
        pairs, near = _confirm(vectors, pairs[~known], least)
        found, cosines = np.concatenate([found, pairs]), np.concatenate([cosines, near])
    first, second, similarity = _judge(vectors, found, cosines, least)
    order = np.lexsort((second, first, -similarity))[:_MOST_PAIRS]
    numbers = view.memories.memory_nos
    return Pairs(numbers[first[order]], numbers[second[order]], similarity[order])


class _Vectors:
    """The vectors of selected chunks from all segments, in the order of their chunks."""

    def __init__(self, view: View, chunks: Mask) -> None:
        rows = [np.flatnonzero(chunks[each.vector_slots]) for each in view.segments]
        parts = [(each, here) for each, here in zip(view.segments, rows, strict=True) if len(here)]
        nothing = np.empty(0, np.int64)
        slots = np.concatenate([nothing, *(each.vector_slots[here] for each, here in parts)])
        order = np.argsort(view.chunks.owner[slots], kind="stable")
        self.dimensions = view.dimensions
        self.owners: Numbers = view.chunks.owner[slots][order].astype(np.int64)
        words = -(-view.dimensions // 64)
        signs = [np.empty((0, words), np.uint64), *(each.signs.T[here] for each, here in parts)]
        # The words of a vector are adjacent: looking up single vectors is four times as fast.
        self.signs = np.concatenate(signs)[order]
        self.scopes = _scopes(view)[self.owners]
        self.lengths = np.bincount(
            view.chunks.owner[chunks],
            view.chunks.length[chunks],
            minlength=len(view.memories.memory_nos),
        )
        self._segments = [each for each, _ in parts]
        self._homes = np.repeat(np.arange(len(parts)), [len(here) for _, here in parts])[order]
        self._rows = np.concatenate([nothing, *(here for _, here in parts)])[order]

    def __len__(self) -> int:
        return len(self.owners)

    def take(self, at: Numbers) -> Cosines:
        """Fetch the vectors at some places."""
        taken = np.empty((len(at), self.dimensions), np.float32)
        for home, segment in enumerate(self._segments):
            here = np.flatnonzero(self._homes[at] == home)
            taken[here] = segment.embeddings[self._rows[at[here]]]
        return taken / np.float32(FIXED_POINT)


def _scopes(view: View) -> Numbers:
    """Number the pairs of kind and session: only memories with the same pair can be duplicates."""
    rows = view.memories
    kinds, sessions = rows.kind.astype(np.int64), rows.session.astype(np.int64)
    scopes: Numbers = np.unique((kinds << 32) + sessions, return_inverse=True)[1].astype(np.int64)
    return scopes


def _candidates(vectors: _Vectors, least: float) -> Iterator[Numbers]:
    """Give pairs of vectors that agree in a band of bits: two columns, the lower place first."""
    if len(vectors) <= 1024:
        yield np.stack(np.triu_indices(len(vectors), 1), axis=1)
        return
    bits = np.unpackbits(vectors.signs.view(np.uint8), axis=1)[:, : vectors.dimensions]
    width = min(_BAND_BITS, vectors.dimensions)
    count = vectors.dimensions // width
    for number in range(_rounds(count, width, least)):
        # Each round groups other bits, so no two rounds have the same bands.
        turned = np.random.default_rng(number).permutation(vectors.dimensions)[: count * width]
        bands = np.packbits(bits[:, turned].reshape(len(vectors), count, width), axis=2)
        for band in bands.transpose(1, 2, 0).astype(np.int64):
            key = vectors.scopes
            for byte in band:
                key = (key << 8) | byte
            yield _neighbours(key)


def _rounds(bands: int, width: int, least: float) -> int:
    """Give the number of rounds of cutting bits into bands after which few pairs are missed."""
    agreeing = (1 - math.acos(min(least, 1.0)) / math.pi) ** width
    if agreeing == 1:
        return 1
    needed = math.log(_MISSED) / math.log(1 - agreeing) / bands
    return min(max(1, math.ceil(needed)), _MOST_ROUNDS)


def _neighbours(key: Numbers) -> Numbers:
    """Pair places with equal keys: each with some that follow it, and with the first."""
    order = np.argsort(key, kind="stable")  # so that among equal keys the lower place comes first
    same = key[order]
    pairs = [np.empty((0, 2), np.int64)]
    at = np.arange(len(order))
    for distance in range(1, _MOST_NEIGHBOURS + 1):
        at = at[at + distance < len(order)]
        at = at[same[at] == same[at + distance]]
        pairs.append(np.stack([order[at], order[at + distance]], axis=1))
    if len(at):
        begins = np.flatnonzero(np.diff(same, prepend=same[:1] - 1))
        first = begins[np.searchsorted(begins, np.arange(len(order)), side="right") - 1]
        far = np.flatnonzero(np.arange(len(order)) - first > _MOST_NEIGHBOURS)
        pairs.append(np.stack([order[first[far]], order[far]], axis=1))
    return np.concatenate(pairs)


def _confirm(vectors: _Vectors, pairs: Numbers, least: float) -> tuple[Numbers, Cosines]:
    """Keep pairs that are near by cosine and of similar length; give their cosines."""
    reach = _reach(vectors.dimensions, least)
    kept, cosines = [np.empty((0, 2), np.int64)], [np.empty(0, np.float32)]
    for start in range(0, len(pairs), _BLOCK):
        some, others = pairs[start : start + _BLOCK].T
        differing = np.take(vectors.signs, some, axis=0) ^ np.take(vectors.signs, others, axis=0)
        near = _distances(differing.T) <= reach
        near &= vectors.scopes[some] == vectors.scopes[others]
        near &= vectors.owners[some] != vectors.owners[others]
        some, others = some[near], others[near]
        lengths = vectors.lengths[vectors.owners[some]], vectors.lengths[vectors.owners[others]]
        alike = np.maximum(*lengths) <= _MOST_TIMES_LONGER * np.minimum(*lengths)
        some, others = some[alike], others[alike]
        cosine = np.vecdot(vectors.take(some), vectors.take(others))
        alike = cosine >= least
        kept.append(np.stack([some[alike], others[alike]], axis=1))
        cosines.append(cosine[alike])
    return np.concatenate(kept), np.concatenate(cosines)


def _judge(
    vectors: _Vectors, pairs: Numbers, cosines: Cosines, least: float
) -> tuple[Numbers, Numbers, Figures]:
    """Turn pairs of near vectors into pairs of memories that are similar as a whole."""
    counts = np.bincount(vectors.owners, minlength=1)
    begins = np.concatenate([[0], np.cumsum(counts)])
    owners, at, found = np.unique(
        vectors.owners[pairs], axis=0, return_index=True, return_counts=True
    )
    # Fixed-point rounding can make the cosine of equal vectors a little more than 1.
    similarity = np.minimum(cosines[at].astype(np.float64).round(6), 1.0)
    sizes = counts[owners]
    # Long documents often share just one passage: these need not be compared in full.
    similarity[found * 4 < sizes.min(axis=1, initial=NEVER)] = -1.0
    for place in np.flatnonzero((sizes.max(axis=1, initial=0) > 1) & (similarity >= least)):
        similarity[place] = _liken(
            *(vectors.take(np.arange(begins[one], begins[one + 1])) for one in owners[place])
        )
    alike = similarity >= least
    return owners[alike, 0], owners[alike, 1], similarity[alike]
