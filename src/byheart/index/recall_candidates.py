"""List candidates for a recall: by importance, recency and frequency as well as by relevance.

Without this list, a recall would only weigh the first chunks of each retriever, and miss an
important memory that comes after them.
"""

from __future__ import annotations

from byheart.contracts import IndexLookup, Prominence, Weighing
from byheart.index.masks import Mask
from byheart.index.selections import Selection
from byheart.index.view import Ranked, View, WordScores
from byheart.language.rarity import rarity
from byheart.startup.late_numpy import NDArray, np

Coverage = NDArray["np.float32"]

# Only so many memories count as accessed: the ones that were accessed last.
MOST_ACCESSED = 1 << 14


def read_prominence(view: View, lookup: IndexLookup, space: str) -> Prominence:
    """Give the prominence of every memory, in the order of the columns.

    A text that was never changed is as old as its event; a change counts as the event itself.
    """
    rows = view.memories
    used_at = np.where(rows.version == 1, rows.created, rows.updated)
    accesses = np.zeros(len(used_at), np.int64)
    accessed = lookup.accesses(space, MOST_ACCESSED)
    there = np.flatnonzero(np.isin(accessed.memory_nos, rows.memory_nos))
    slots = np.searchsorted(rows.memory_nos, accessed.memory_nos.take(there))
    used_at[slots] = accessed.accessed_at.take(there)
    accesses[slots] = accessed.counts.take(there)
    return Prominence(rows.importance, used_at, accesses)


def find_matching(
    view: View,
    selection: Selection,
    scored: WordScores | None,
    raw_matches: NDArray[np.int64] | None,
    *,
    by_vector: bool,
) -> Mask:
    """Mark the chunks that a retriever would find, however deep it is asked."""
    if raw_matches is not None:
        matching = np.zeros(len(selection.chunks), np.bool_)
        slots = view.slots_of(raw_matches)
        matching[slots[selection.chunks.take(slots)]] = True
    elif scored is not None:
        matching = scored.scores > 0
    else:
        matching = np.zeros(len(selection.chunks), np.bool_)
    if by_vector:
        for segment, rows in zip(view.segments, view.allowed(selection), strict=True):
            matching[segment.vector_slots.take(rows)] = True
    return matching


def cover_terms(selection: Selection, scored: WordScores | None) -> Coverage:
    """Add up the rarity of the terms that each chunk has, as a share of the most that one has.

    Unlike BM25, it does not ask how often a chunk has a term, and how long the chunk is.
    """
    coverage: Coverage = np.zeros(len(selection.chunks), np.float32)
    for parts in () if scored is None else scored.found.values():
        weight = np.float32(rarity(sum(map(len, parts)), selection.total))
        for slots in parts:
            coverage[slots] += weight
    most = coverage.max(initial=0.0)
    if most > 0:
        coverage /= most
    return coverage


def count_memories(view: View, chunks: Mask) -> int:
    """Count the memories that marked chunks belong to."""
    marked = np.zeros(len(view.memories.memory_nos), np.bool_)
    marked[view.chunks.owner[chunks]] = True
    return int(np.count_nonzero(marked))


def rank_by_prominence(
    view: View,
    matching: Mask,
    scored: WordScores | None,
    coverage: Coverage,
    prominence: Prominence,
    weighing: Weighing,
    limit: int,
) -> Ranked:
    """List the best chunk of each memory that gains most by relevance and prominence together.

    Relevance is the share of the best BM25. If a chunk has any of the words, the others need enough
    of them; otherwise the prominence alone decides, and the caller compares the cosines.
    """
    slots = np.flatnonzero(matching)
    shares = np.zeros(len(slots))
    if scored is not None and scored.found:
        slots = np.flatnonzero(matching & (coverage >= weighing.least))
        shares = scored.scores.take(slots) / np.float64(scored.scores.max())
    owners = view.chunks.owner.take(slots)
    gains = weighing.relevance * shares + weighing.by_prominence(prominence.take(owners))
    order = np.lexsort((slots, -gains))
    first = np.sort(np.unique(owners.take(order), return_index=True)[1])[:limit]
    best = order.take(first)
    return Ranked(slots.take(best), gains.take(best))
