"""Select and rank chunks on a view of the index at one moment.

Masks are applied by `flatnonzero` and `take`: indexing with the mask itself takes ten times as long
when the mask picks few of many.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import NamedTuple

from byheart.contracts import MOST_TERMS, ActiveModel, Figures, StoredPostings
from byheart.contracts.ordering import best_first
from byheart.index.bm25 import Scores, weigh_occurrences, weigh_term
from byheart.index.columns import NEVER, ChunkColumns, Codes, MemoryColumns
from byheart.index.masks import Mask, compare_columns
from byheart.index.segment import FIXED_POINT, Segment, hash_term, rows_of
from byheart.index.selections import (
    Scattered,
    Selection,
    Slots,
    Space,
    read_space,
    scatter,
    select_chunks,
)
from byheart.index.sign_scan import near_by_signs
from byheart.index.stored_segment import StoredPart, StoredSegment
from byheart.model import Filter
from byheart.model.times import to_micros
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

# Up to this number, all vectors are compared; above it, their signs select some.
EXACT_VECTORS = 4096
# How many vectors the signs select for each requested one, and at least. With 100,000 mixtures of
# real sentences this loses 4 in 1,000 of the true first 10, and 3 in 100 of the first 100
# (docs/decisions/0048).
OVERSAMPLING, LEAST_CANDIDATES = 5, 1000
# The sample size from which the lowest score that is needed is estimated.
_SAMPLED_SCORES = 1 << 12
# The number of rows that are copied at a time.
_BLOCK = 1 << 15
# The number of vectors that are read and compared at a time.
_COMPARED = 256
# The number of cached spaces. Each takes up to 13 bytes for each chunk of the whole store.
_SPACES_KEPT = 8

# In the types of a segment: most postings of a long question are only counted, never converted.
Posting = tuple[NDArray["np.uint32"], NDArray["np.uint8"]]


class Ranked(NamedTuple):
    """The chunks that one retriever found, by their slots, best first, with their scores."""

    slots: Slots
    scores: Figures


class Weighed(NamedTuple):
    """The chunks that contain a term, and its contribution to the score of each chunk."""

    slots: Slots
    weights: Scores


class WordScores(NamedTuple):
    """The BM25 score of every chunk; for each term that occurs, the chunks that contain it.

    These chunks are listed segment by segment.
    """

    scores: Scores
    found: Mapping[str, Sequence[Slots]]


class Windows(NamedTuple):
    """Copies of the vectors of chunks; the vectors of one chunk are adjacent, from `first` on."""

    slots: Slots
    first: Slots
    vectors: NDArray[np.float32]

    def cosines(self, vector: NDArray[np.float32]) -> Scores:
        """Give the cosine of each chunk's best window."""
        if not len(self.slots):
            return np.empty(0, np.float32)
        return _best_windows(_products(self.vectors, vector), self.first)


class Compared(NamedTuple):
    """Chunks that have vectors, in order, and the cosine of each one's best window."""

    slots: Slots
    cosines: Scores

    def of(self, slots: Slots) -> NDArray[np.float64]:
        """Give the cosines of some chunks; NaN for chunks without vectors here."""
        cosines = np.full(len(slots), np.nan)
        if len(self.slots):
            places = np.minimum(np.searchsorted(self.slots, slots), len(self.slots) - 1)
            known = np.flatnonzero(self.slots.take(places) == slots)
            cosines[known] = _shown(self.cosines.take(places.take(known)))
        return cosines


class FilterCounts(NamedTuple):
    """Count the memories and chunks that match a filter; bare chunks have no vectors."""

    memories: int
    chunks: int
    bare_chunks: int


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a search needs, at the moment of one change of the store."""

    change: tuple[int, int]
    model_no: int | None
    dimensions: int
    memories: MemoryColumns
    chunks: ChunkColumns
    codes: Mapping[str, Codes]
    segments: tuple[Segment | StoredSegment, ...]
    # The chunks of all turns, in the order of their sessions.
    by_turn: NDArray[np.int64]
    # If the space is large: the part of the first segment that the database has.
    stored: StoredPart | None = None
    # A cache: the place of each chunk in that order.
    turn_places: list[NDArray[np.int32]] = field(default_factory=list)
    _spaces: dict[str, Space] = field(default_factory=dict)
    # Spaces of an earlier view, all of whose rows are still the same.
    _earlier: dict[str, Space] = field(default_factory=dict)
    _scattered: dict[int, Scattered] = field(default_factory=dict)
    _living: list[Slots] = field(default_factory=list)

    def space(self, name: str, now: int) -> Space:
        """Give the current memories of a space; cached, because every search needs them."""
        known = self._spaces.get(name)
        if known is None or not known.is_valid_at(now):
            before = known or self._earlier.pop(name, None)
            code = self.codes["space"].find(name)
            known = read_space(self.memories, self.chunks, code, now, before)
            known.selection.keep_rows_of([each.vector_slots for each in self.segments])
            if len(self._spaces) >= _SPACES_KEPT:
                self._spaces.clear()
            self._spaces[name] = known
        return known

    def bound_to(self, stored: StoredPostings) -> View:
        """Read what the database has of a large space in one snapshot; share all caches."""
        base = self.segments[0]
        if self.stored is None or not isinstance(base, Segment):
            return self
        model = None if self.model_no is None else ActiveModel(self.model_no, self.dimensions)
        first = StoredSegment(base, self.stored, self.chunks.chunk_nos, model, stored)
        return replace(self, segments=(first, *self.segments[1:]))

    def follow(self, before: View) -> None:
        """Take over what an earlier view has found; this view has the same rows and more."""
        self._earlier.update(before._spaces or before._earlier)
        self._scattered.update(before._scattered)

    def count_space(self, name: str, now: int) -> FilterCounts:
        """Count the current memories and chunks of a space."""
        space = self.space(name, now)
        return FilterCounts(space.memory_count, space.selection.total, space.bare_chunks)

    def count(self, where: Filter, now: int) -> FilterCounts:
        """Count the memories and chunks that a session of a space may see."""
        space = self.space(where.space, now)
        memories = reduce(np.logical_and, self._conditions(where, space, now), space.memories)
        if _are_all(memories, space):
            return self.count_space(where.space, now)
        chunks = self.chunks.alive & memories.take(self.chunks.owner)
        return FilterCounts(
            int(np.count_nonzero(memories)),
            int(np.count_nonzero(chunks)),
            int(np.count_nonzero(chunks & ~self.chunks.embedded)),
        )

    def select(self, where: Filter, now: int, among: Sequence[NDArray[np.int64]]) -> Selection:
        """Find the chunks that match a filter; `among` lists memories that must contain them."""
        space = self.space(where.space, now)
        conditions = [*self._conditions(where, space, now), *map(self._inside, among)]
        if where.include_expired or where.as_of is not None:
            start = self._own(where.space)
        elif not conditions:
            return space.selection
        else:
            start = space.memories
        memories = reduce(np.logical_and, conditions, start)
        # A filter that leaves out nothing shares the caches of the space.
        if start is space.memories and _are_all(memories, space):
            return space.selection
        return select_chunks(self.chunks, memories)

    def range_of(self, selection: Selection) -> range:
        """Give the range of numbers that all selected chunks are in."""
        if not selection.total:
            return range(0)
        first, behind = selection.chunks.argmax(), selection.chunks[::-1].argmax()
        numbers = self.chunks.chunk_nos
        return range(int(numbers[first]), int(numbers[len(numbers) - 1 - behind]) + 1)

    def _own(self, space: str) -> Mask:
        """Mark every text of a space, earlier ones too."""
        own: Mask = self.memories.space == self.codes["space"].find(space)
        return self.memories.present & own

    def _conditions(self, where: Filter, space: Space, now: int) -> Iterator[Mask]:
        rows = self.memories
        yield from compare_columns(rows, self.codes, where)
        at = NEVER if where.as_of is None else to_micros(where.as_of)
        if where.as_of is not None:
            yield (rows.since <= at) & (rows.replaced > at)
            if not where.include_expired:
                yield rows.expires > at
        elif where.include_expired:
            yield rows.replaced == NEVER
        if where.superseded or (where.superseded is False and space.superseded):
            # Without `as_of`, a memory that was superseded at any time is superseded.
            superseded = rows.superseded <= min(at, NEVER - 1)
            valid_at = now if where.as_of is None else at
            superseded |= rows.ends <= valid_at
            superseded |= (rows.begins > valid_at) & (rows.begins != NEVER)
            yield superseded if where.superseded else ~superseded

    def _inside(self, memory_nos: NDArray[np.int64]) -> Mask:
        inside = np.zeros(len(self.memories.memory_nos), np.bool_)
        inside[self._memory_slots(memory_nos)] = True
        return inside

    def _memory_slots(self, memory_nos: NDArray[np.int64]) -> Slots:
        at = np.searchsorted(self.memories.memory_nos, memory_nos)
        at = at[at < len(self.memories.memory_nos)]
        return at[np.isin(self.memories.memory_nos[at], memory_nos)]

    def rank_by_words(self, scores: Scores, limit: int) -> Ranked:
        """Rank chunks by the scores of `score_words`."""
        slots = (scores >= _guess_least(scores, limit)).nonzero()[0]
        if len(slots) < limit:
            # `nonzero` of the comparison: on floats, `nonzero` takes eight times as long.
            slots = (scores > 0).nonzero()[0]
        return self._best(slots, scores.take(slots), limit)

    def word_scores(self, scores: Scores, slots: Slots) -> Figures:
        """Give the scores of some chunks, from the result of `score_words`."""
        return _shown(scores.take(slots))

    def rank_matches(
        self, chunk_nos: NDArray[np.int64], scores: Scores, selection: Selection, limit: int
    ) -> Ranked:
        """Rank chunks that a raw query matched by BM25; leave out chunks that are not selected."""
        slots = np.sort(np.searchsorted(self.chunks.chunk_nos, chunk_nos))
        slots = slots[selection.chunks[slots]]
        return self._best(slots, scores[slots], limit)

    def score_words(
        self, terms: Sequence[str], selection: Selection, words_of_pieces: Mapping[str, str]
    ) -> WordScores:
        """Score chunks by BM25; only the selected chunks count in its statistics.

        Otherwise, scores would reveal the words of other spaces and sessions.
        """
        selection.begin_use()
        scores = np.zeros(len(selection.chunks), np.float32)
        found = {}
        for term, parts in self._weigh(terms, selection, words_of_pieces).items():
            for slots, weights in parts:
                weights += scores.take(slots)
                scores[slots] = weights
            found[term] = [part.slots for part in parts]
        return WordScores(scores, found)

    def present(self, terms: Sequence[str], selection: Selection) -> list[str]:
        """Keep the terms that selected chunks contain; the rarest ones, if there are too many."""
        return list(self._weigh(terms, selection, {}))

    def weigh_terms(
        self,
        terms: Sequence[str],
        selection: Selection,
        words_of_pieces: Mapping[str, str],
        slot: int,
    ) -> dict[str, float]:
        """Give the contribution of each term to the score of one chunk."""
        shares = {}
        for term, parts in self._weigh(terms, selection, words_of_pieces).items():
            for slots, weights in parts:
                here = np.flatnonzero(slots == slot)
                if len(here):
                    shares[term] = float(weights[here[0]])
        return shares

    def _weigh(
        self, terms: Sequence[str], selection: Selection, words_of_pieces: Mapping[str, str]
    ) -> dict[str, list[Weighed]]:
        """Give the chunks of each segment that contain a term, and its contribution to each."""
        asked = Counter(terms)
        postings = self._postings(list(asked), selection)
        chunks = {term: sum(len(slots) for slots, _ in parts) for term, parts in postings.items()}
        words = {term: chunks.get(words_of_pieces.get(term, term), 0) for term in chunks}
        found = [term for term in chunks if chunks[term] >= max(words[term], 1)]
        if len(found) > MOST_TERMS:
            rarest = set(sorted(found, key=chunks.__getitem__)[:MOST_TERMS])
            found = [term for term in found if term in rarest]
        weighed: dict[str, list[Weighed]] = {}
        for term in found:
            weight = weigh_term(asked[term], chunks[term], selection.total)
            weighed[term] = []
            for slots, counts in postings[term]:
                places = slots.astype(np.int64)
                norms = selection.norms_of(places)
                weights = weigh_occurrences(counts.astype(np.float32), norms, weight)
                weighed[term].append(Weighed(places, weights))
        return weighed

    def _postings(self, terms: Sequence[str], selection: Selection) -> dict[str, list[Posting]]:
        """Give the selected chunks that contain each term, segment by segment, with the counts."""
        found: dict[str, list[Posting]] = {term: [] for term in terms}
        hashes = np.array([hash_term(term) for term in terms], np.uint64)
        everything = selection.everything
        for segment in self.segments:
            for term, (slots, counts) in zip(terms, segment.postings(hashes), strict=True):
                if not everything and len(slots):
                    keep = selection.chunks.take(slots).nonzero()[0]
                    slots, counts = slots.take(keep), counts.take(keep)
                if len(slots):
                    found[term].append((slots, counts))
        return found

    def rank_by_vector(
        self, vector: NDArray[np.float32], selection: Selection, limit: int
    ) -> Ranked:
        """Rank chunks by the cosine of their best window."""
        allowed = self.allowed(selection)
        available = sum(map(len, allowed))
        wanted = max(LEAST_CANDIDATES, OVERSAMPLING * limit)
        while True:
            if available <= max(EXACT_VECTORS, wanted):
                rows = allowed
            else:
                rows = near_by_signs(self.segments, allowed, vector, wanted)
            near = self._compare(rows, vector)
            complete = sum(map(len, rows)) >= available
            if complete or len(near.slots) >= limit:
                return self._best(near.slots, near.cosines, limit)
            wanted *= 4  # chunks of many windows can crowd out others

    def allowed(self, selection: Selection) -> list[Slots]:
        """List the rows of each segment's vectors whose chunks are selected; kept with these."""
        return [selection.rows_in(each.vector_slots) for each in self.segments]

    def compare(self, slots: Slots, vector: NDArray[np.float32]) -> Compared:
        """Compare some chunks with a vector."""
        return self._compare(self._rows(slots), vector)

    def _compare(self, rows: Sequence[Slots], vector: NDArray[np.float32]) -> Compared:
        """Compare some rows of each segment with a vector."""
        owners, products = self._owners(rows), np.empty(sum(map(len, rows)), np.float32)
        # A few at a time into one reused array, which stays in the processor's cache.
        few = np.empty((min(len(products), _COMPARED), self.dimensions), np.float32)
        self._load(rows)
        for here, segment, those in self._parts(rows, _COMPARED):
            vectors = few[: len(those)]
            vectors[:] = segment.embeddings.take(those, axis=0)
            products[here] = _products(vectors, vector)
        owners, products = _in_order(owners, products)
        first = _begins(owners)
        return Compared(owners.take(first), _best_windows(products, first))

    def windows(self, slots: Slots) -> Windows:
        """Copy the vectors of some chunks."""
        rows = self._rows(slots)
        owners = self._owners(rows)
        windows = np.empty((len(owners), self.dimensions), np.float32)
        self._load(rows)
        for here, segment, those in self._parts(rows, _BLOCK):
            windows[here] = segment.embeddings.take(those, axis=0)
        owners, windows = _in_order(owners, windows)
        first = _begins(owners)
        return Windows(owners.take(first), first, windows)

    def windows_of(self, slot: int) -> NDArray[np.int16]:
        """Give the vectors of one chunk in fixed point."""
        ends = np.array([slot, slot + 1], np.uint32)
        parts = []
        for segment in self.segments:
            first, behind = segment.vector_slots.searchsorted(ends).tolist()
            if first < behind:
                parts.append(segment.embeddings[first:behind])
        if len(parts) == 1:
            return parts[0]  # no copy: a chunk rarely has windows in several segments
        return np.concatenate(parts) if parts else np.empty((0, self.dimensions), np.int16)

    def expect(self, terms: Sequence[str]) -> None:
        """Ask for the postings of terms, which are about to be read, without waiting for them."""
        for segment in self.segments:
            if isinstance(segment, StoredSegment):
                segment.expect([hash_term(term) for term in terms])

    def load(self, slots: Slots) -> None:
        """Fetch the vectors of some chunks, which are about to be read, all at once."""
        self._load(self._rows(slots))

    def _load(self, rows: Sequence[Slots]) -> None:
        for segment, those in zip(self.segments, rows, strict=True):
            segment.load(those)

    def _rows(self, slots: Slots) -> list[Slots]:
        return [rows_of(each.vector_slots, slots) for each in self.segments]

    def _owners(self, rows: Sequence[Slots]) -> Slots:
        """Name the chunk of each row."""
        owners = np.empty(sum(map(len, rows)), np.int64)
        for here, segment, those in self._parts(rows, _BLOCK):
            owners[here] = segment.vector_slots.take(those)
        return owners

    def _parts(
        self, rows: Sequence[Slots], most: int
    ) -> Iterator[tuple[slice, Segment | StoredSegment, Slots]]:
        """Yield rows of each segment in blocks, each with its offset among all rows."""
        at = 0
        for segment, those in zip(self.segments, rows, strict=True):
            for begin in range(0, len(those), most):
                part = those[begin : begin + most]
                yield slice(at, at := at + len(part)), segment, part

    def scattered(self, halvings: int) -> Slots:
        """List chunks that stand for all, half as many with each halving; kept, like the spaces."""
        known = self._scattered.get(halvings)
        if known is None or known.covered < len(self.chunks.chunk_nos):
            known = scatter(self.chunks.chunk_nos, halvings, known)
            self._scattered[halvings] = known
        return known.slots

    def living(self) -> Slots:
        """List the chunks that were not removed; cached, like the spaces."""
        if not self._living:
            self._living.append(np.flatnonzero(self.chunks.alive))
        return self._living[0]

    def owner_nos(self, slots: Slots) -> NDArray[np.int64]:
        """Give the number of the memory that each chunk belongs to."""
        return self.memories.memory_nos.take(self.chunks.owner.take(slots))

    def slot_of(self, chunk_no: int) -> int:
        """Give the place of a chunk in the columns."""
        return int(np.searchsorted(self.chunks.chunk_nos, chunk_no))

    def slots_of(self, chunk_nos: NDArray[np.int64]) -> Slots:
        """Give the places of chunks in the columns."""
        return np.searchsorted(self.chunks.chunk_nos, chunk_nos)

    def _best(self, slots: Slots, scores: Scores, limit: int) -> Ranked:
        """Rank chunks by their scores; among equal ones the older, whose slot is lower, is first.

        The slots have to be in order.
        """
        if len(slots) > limit:
            # Keep all chunks that tie with the last place, so that age decides among them below.
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            near = np.flatnonzero(scores >= least)
            slots, scores = slots.take(near), scores.take(near)
        order = best_first(scores)[:limit]
        return Ranked(slots.take(order), _shown(scores.take(order)))


def _are_all(memories: Mask, space: Space) -> bool:
    """Say whether some memories of a space are all of them."""
    return bool(np.count_nonzero(memories) == space.memory_count)


def _guess_least(scores: Scores, limit: int) -> float:
    """Estimate from a sample a score that somewhat more chunks than the limit reach."""
    step = len(scores) // _SAMPLED_SCORES + 1
    sample = scores[::step]
    rank = min(3 * limit // step + 1, len(sample))
    # Sorted, because among many equal scores, most of them 0, `partition` takes four times as long.
    least = float(np.sort(sample)[len(sample) - rank]) if rank else 0.0
    return least if least > 0 else math.inf


def _products(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> Scores:
    # Not `vectors @ vector`: BLAS starts threads for it, which wait for a busy core.
    products: Scores = np.vecdot(vectors, vector)
    return products


def _best_windows(products: Scores, first: Slots) -> Scores:
    """Give the cosine of each chunk's best window; the windows of a chunk are adjacent."""
    # Rounded, because the last bits depend on the alignment of a vector in memory.
    # Clipped, because fixed-point rounding can make the cosine of equal vectors exceed 1.
    cosines = np.round(products / np.float32(FIXED_POINT), 6)
    return np.clip(np.maximum.reduceat(cosines, first), -1.0, 1.0)


def _in_order(owners: Slots, rows: NDArray[np.float32]) -> tuple[Slots, NDArray[np.float32]]:
    """Sort values by their chunks: the chunks of several segments are not in order."""
    if not (owners[1:] < owners[:-1]).any():
        return owners, rows
    order = np.argsort(owners, kind="stable")
    return owners.take(order), rows.take(order, axis=0)


def _begins(ordered: Slots) -> Slots:
    """Find the first place of each distinct value in a sorted array."""
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return np.flatnonzero(fresh)


def _shown(scores: Scores) -> NDArray[np.float64]:
    """Drop the digits that single precision does not have."""
    return scores.astype(np.float64).round(6)
