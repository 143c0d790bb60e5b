"""A view of the index at one moment: which chunks does a filter allow, and which rank best?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.model import Filter
from byheart.storage.sqlite.index.columns import NONE, ChunkColumns, Codes, MemoryColumns
from byheart.storage.sqlite.index.segment import FIXED_POINT, Segment, hash_term
from byheart.storage.sqlite.times import to_micros

# Okapi BM25, with the constants SQLite's own bm25() uses.
K1, B = 1.2, 0.75
# Up to this many vectors every one is compared; above, their signs choose which.
EXACT_VECTORS = 4096
# How many vectors the signs let through for each one asked for, and the least number: of the true
# first 30 of 100,000 real passages none is lost, of the first 200 less than one in a hundred.
OVERSAMPLING, LEAST_CANDIDATES = 15, 1000
# A question of 10,000 characters is answered by its rarest words.
MOST_TERMS = 64

Scores = NDArray[np.float64]
Slots = NDArray[np.int64]
Allowed = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class View:
    """Everything a search needs, fixed at one change of the store."""

    change_no: int
    model_no: int | None
    dimensions: int
    memories: MemoryColumns
    chunks: ChunkColumns
    codes: Mapping[str, Codes]
    segments: tuple[Segment, ...]

    def allowed(self, where: Filter, now: int, among: Sequence[NDArray[np.int64]]) -> Allowed:
        """Mark the chunks a filter lets through; `among` lists memories that must contain them."""
        return self.chunks.alive & self._memories(where, now, among)[self.chunks.owner]

    def count(self, space: str, now: int) -> tuple[int, int, int]:
        """Count a space's memories, chunks, and chunks without vectors."""
        memories = self._memories(Filter(space=space), now, ())
        chunks = self.chunks.alive & memories[self.chunks.owner]
        bare = np.count_nonzero(chunks & ~self.chunks.embedded)
        return int(np.count_nonzero(memories)), int(np.count_nonzero(chunks)), int(bare)

    def _memories(
        self, where: Filter, now: int, among: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.bool_]:
        rows = self.memories
        mask = rows.present & (rows.space == self.codes["space"].find(where.space))
        if where.session_id is not None:
            inside = rows.session == self.codes["session"].find(where.session_id)
            mask &= inside | (rows.session == NONE) if where.include_global else inside
        if where.kind:
            wanted = [self.codes["kind"].find(kind) for kind in where.kind]
            mask &= np.isin(rows.kind, wanted)
        if where.agent_id is not None:
            mask &= rows.agent == self.codes["agent"].find(where.agent_id)
        if where.task_code is not None:
            mask &= rows.task == self.codes["task"].find(where.task_code)
        if where.session_iter is not None:
            mask &= rows.iteration == where.session_iter
        if where.min_importance is not None:
            mask &= rows.importance >= where.min_importance
        mask &= _in_time(rows, where, now)
        for memory_nos in among:
            inside = np.zeros(len(mask), np.bool_)
            inside[self._memory_slots(memory_nos)] = True
            mask &= inside
        return np.asarray(mask, np.bool_)

    def _memory_slots(self, memory_nos: NDArray[np.int64]) -> Slots:
        at = np.searchsorted(self.memories.memory_nos, memory_nos)
        at = at[at < len(self.memories.memory_nos)]
        return at[np.isin(self.memories.memory_nos[at], memory_nos)]

    def rank_by_words(
        self, terms: Sequence[str], allowed: Allowed, limit: int
    ) -> list[tuple[int, float]]:
        """Rank chunks by BM25 over the allowed chunks alone: a wall also stops statistics."""
        found = self._weigh(terms, allowed)
        scores = np.zeros(len(allowed))
        for slots, weights in found.values():
            scores[slots] += weights
        slots = np.flatnonzero(scores)
        return self._best(slots, scores[slots], limit)

    def weigh_terms(self, terms: Sequence[str], slot: int, allowed: Allowed) -> dict[str, float]:
        """Tell what each term contributes to one chunk's score."""
        shares = {}
        for term, (slots, weights) in self._weigh(terms, allowed).items():
            here = np.flatnonzero(slots == slot)
            if len(here):
                shares[term] = float(weights[here[0]])
        return shares

    def _weigh(self, terms: Sequence[str], allowed: Allowed) -> dict[str, tuple[Slots, Scores]]:
        total = int(np.count_nonzero(allowed))
        if not total:
            return {}
        lengths = self.chunks.length
        mean_length = float(lengths[allowed].mean()) or 1.0
        postings = {}
        for term in dict.fromkeys(terms):
            slots, counts = self._postings(hash_term(term), allowed)
            if len(slots):
                postings[term] = (slots, counts)
        rarest = sorted(postings, key=lambda term: len(postings[term][0]))[:MOST_TERMS]
        weighed = {}
        for term in (term for term in postings if term in set(rarest)):
            slots, counts = postings[term]
            rarity = np.log1p((total - len(slots) + 0.5) / (len(slots) + 0.5))
            norm = K1 * (1 - B + B * lengths[slots] / mean_length)
            weighed[term] = (slots, rarity * counts * (K1 + 1) / (counts + norm))
        return weighed

    def _postings(self, term: int, allowed: Allowed) -> tuple[Slots, Scores]:
        slots_found, counts_found = [], []
        for segment in self.segments:
            slots, counts = segment.postings(term)
            if len(slots):
                keep = allowed[slots]
                slots_found.append(slots[keep].astype(np.int64))
                counts_found.append(counts[keep].astype(np.float64))
        if not slots_found:
            return np.empty(0, np.int64), np.empty(0)
        return np.concatenate(slots_found), np.concatenate(counts_found)

    def rank_by_vector(
        self, vector: NDArray[np.float32], allowed: Allowed, limit: int
    ) -> list[tuple[int, float]]:
        """Rank chunks by the cosine of their best window."""
        masks = [allowed[segment.vector_slots] for segment in self.segments]
        available = sum(int(np.count_nonzero(mask)) for mask in masks)
        wanted = max(LEAST_CANDIDATES, OVERSAMPLING * limit)
        while True:
            if available <= max(EXACT_VECTORS, wanted):
                rows = [np.flatnonzero(mask) for mask in masks]
            else:
                rows = self._near_by_signs(vector, masks, wanted)
            slots, scores = self._best_windows(vector, rows)
            complete = sum(map(len, rows)) >= available
            if complete or len(slots) >= limit:
                return self._best(slots, scores, limit)
            wanted *= 4  # chunks of many windows can crowd out others

    def _near_by_signs(
        self, vector: NDArray[np.float32], masks: Sequence[Allowed], wanted: int
    ) -> list[Slots]:
        bits = _query_signs(vector, self.dimensions)
        far = self.dimensions + 1
        distances = []
        for segment, mask in zip(self.segments, masks, strict=True):
            distance = np.zeros(len(mask), np.uint16)
            for word, query_word in zip(segment.signs, bits, strict=len(mask) > 0):
                distance += np.bitwise_count(word ^ query_word)
            distance[~mask] = far
            distances.append(distance)
        counts = np.bincount(np.concatenate(distances), minlength=far + 1)
        reach = int(np.searchsorted(np.cumsum(counts[:far]), wanted))
        return [np.flatnonzero(each <= min(reach, far - 1)) for each in distances]

    def _best_windows(
        self, vector: NDArray[np.float32], rows: Sequence[Slots]
    ) -> tuple[Slots, Scores]:
        slots, scores = [np.empty(0, np.int64)], [np.empty(0)]
        for segment, here in zip(self.segments, rows, strict=True):
            if len(here):
                near = segment.embeddings[here].astype(np.float32)
                slots.append(segment.vector_slots[here].astype(np.int64))
                # Not `near @ vector`: BLAS starts threads for it, which wait for a busy core.
                cosines = np.vecdot(near, vector).astype(np.float64) / FIXED_POINT
                # Rounded, because the last bits depend on where in memory a vector stands.
                # Clipped, because fixed point can make the cosine of equals a little more than 1.
                scores.append(np.clip(np.round(cosines, 6), -1.0, 1.0))
        all_slots, all_scores = np.concatenate(slots), np.concatenate(scores)
        order = np.lexsort((-all_scores, all_slots))
        distinct, first = np.unique(all_slots[order], return_index=True)
        return distinct, all_scores[order][first]

    def similarities(
        self, vector: NDArray[np.float32], chunk_nos: Sequence[int]
    ) -> dict[int, float]:
        """Give the cosine of each chunk's best window, for those that have vectors."""
        slots = np.searchsorted(self.chunks.chunk_nos, np.array(chunk_nos, np.int64))
        rows = [_rows_of(each.vector_slots, slots) for each in self.segments]
        found, scores = self._best_windows(vector, rows)
        numbers = self.chunks.chunk_nos[found]
        return dict(zip(numbers.tolist(), scores.tolist(), strict=True))

    def owners(self, chunk_nos: Sequence[int]) -> list[int]:
        """Give the number of the memory that each chunk belongs to."""
        slots = np.searchsorted(self.chunks.chunk_nos, np.array(chunk_nos, np.int64))
        numbers: list[int] = self.memories.memory_nos[self.chunks.owner[slots]].tolist()
        return numbers

    def slot_of(self, chunk_no: int) -> int:
        """Give the place of a chunk in the columns."""
        return int(np.searchsorted(self.chunks.chunk_nos, chunk_no))

    def _best(self, slots: Slots, scores: Scores, limit: int) -> list[tuple[int, float]]:
        if len(slots) > limit:
            # Everything that ties with the last place stays in, so that ties are cut by age below.
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            near = scores >= least
            slots, scores = slots[near], scores[near]
        order = np.lexsort((slots, -scores))[:limit]
        numbers = self.chunks.chunk_nos[slots[order]]
        return list(zip(numbers.tolist(), scores[order].tolist(), strict=True))


def _in_time(rows: MemoryColumns, where: Filter, now: int) -> NDArray[np.bool_]:
    mask = np.ones(len(rows.created), np.bool_)
    if where.created_after is not None:
        mask &= rows.created >= to_micros(where.created_after)
    if where.created_before is not None:
        mask &= rows.created < to_micros(where.created_before)
    if where.as_of is not None:
        mask &= rows.created <= to_micros(where.as_of)
        now = to_micros(where.as_of)
    if not where.include_expired:
        mask &= rows.expires > now
    return mask


def _rows_of(vector_slots: NDArray[np.uint32], slots: Slots) -> Slots:
    first = np.searchsorted(vector_slots, slots, side="left")
    last = np.searchsorted(vector_slots, slots, side="right")
    ranges = [np.arange(low, high) for low, high in zip(first, last, strict=True)]
    return np.concatenate(ranges) if ranges else np.empty(0, np.int64)


def _query_signs(vector: NDArray[np.float32], dimensions: int) -> NDArray[np.uint64]:
    packed = np.zeros(-(-dimensions // 64) * 8, np.uint8)
    bits = np.packbits(vector > 0)
    packed[: len(bits)] = bits
    return packed.view(np.uint64)
