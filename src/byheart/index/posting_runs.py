"""Move the postings of an index into runs in the database.

Fresh chunks become a run, or are merged with the last runs. The sizes of runs form a geometric
series up to 65,536 chunks, so that a posting is written a few times at most. The hashes of terms
are cut into parts, and one part is merged at a time: a run in memory would take 200 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byheart.contracts import Numbers, PostingChanges, PostingRun
from byheart.index.posting_blocks import (
    MOST_CHUNKS,
    Postings,
    key_ranges,
    read_block,
    write_blocks,
)
from byheart.index.segment import Segment
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

_PARTS = 16
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class FreshPostings:
    """Segments with postings, and the columns that their slots refer to."""

    segments: Sequence[Segment]
    chunk_nos: Numbers
    alive: NDArray[np.bool_]

    def gather(self, slots: Numbers, part: int) -> Iterator[Postings]:
        """Give the postings of chunks, named by their places among the given slots."""
        low, high = int(slots[0]), int(slots[-1]) + 1
        places = np.full(high - low, -1, np.int32)
        places[slots - low] = np.arange(len(slots))
        for segment in self.segments:
            cuts = np.array([part << 60, (part + 1 << 60) - 1], np.uint64)
            first = int(segment.terms.searchsorted(cuts[0]))
            behind = int(segment.terms.searchsorted(cuts[1], "right"))
            begin, end = int(segment.starts[first]), int(segment.starts[behind])
            for at in range(begin, end, _BLOCK):
                here = slice(at, min(at + _BLOCK, end))
                found = segment.slots[here]
                chosen = np.flatnonzero((found >= low) & (found < high))
                mine = places.take(found.take(chosen).astype(np.int64) - low)
                chosen, mine = chosen[mine >= 0], mine[mine >= 0]
                terms = segment.starts.searchsorted(chosen + at, "right") - 1
                yield Postings(
                    segment.terms.take(terms),
                    mine.astype(np.uint16),
                    segment.counts[here].take(chosen),
                )


def fold(changes: PostingChanges, fresh: FreshPostings) -> int:
    """Store the postings of all chunks behind the last run; give the last chunk that is covered."""
    runs = changes.runs()
    covered = runs[-1].last_chunk_no if runs else 0
    last = int(fresh.chunk_nos[-1]) if len(fresh.chunk_nos) else 0
    first = int(np.searchsorted(fresh.chunk_nos, covered, "right"))
    slots = first + np.flatnonzero(fresh.alive[first:])
    # Another process may have erased some of them meanwhile.
    slots = fresh.chunk_nos.searchsorted(changes.existing(fresh.chunk_nos.take(slots)))
    for at in range(0, len(slots), MOST_CHUNKS):
        some = slots[at : at + MOST_CHUNKS]
        is_last = at + MOST_CHUNKS >= len(slots)
        covered = last if is_last else int(fresh.chunk_nos[some[-1]])
        _add(changes, _mergeable(changes.runs(), len(some)), fresh, some, covered)
    changes.retire(False)
    return min(covered, last)


def _mergeable(runs: Sequence[PostingRun], chunks: int) -> list[PostingRun]:
    """Choose the last runs that are so small that they are merged with fresh chunks."""
    merged: list[PostingRun] = []
    for run in reversed(runs):
        if run.chunks > 2 * chunks or run.chunks + chunks > MOST_CHUNKS:
            break
        merged.insert(0, run)
        chunks += run.chunks
    return merged


def _add(
    changes: PostingChanges,
    merged: Sequence[PostingRun],
    fresh: FreshPostings | None,
    slots: Numbers,
    covered: int,
) -> None:
    """Write one run of earlier runs and fresh chunks, and remove the earlier runs."""
    earlier = [changes.members(run.run_no) for run in merged]
    kept = [changes.existing(each) for each in earlier]
    own = np.empty(0, np.int64) if fresh is None else fresh.chunk_nos.take(slots)
    members = np.concatenate((*kept, own))
    offsets = np.cumsum([0, *map(len, kept)])
    places = [_new_places(*each) for each in zip(earlier, kept, offsets[:-1], strict=True)]
    run_no = changes.add(members, covered)
    for part in range(_PARTS):
        found = [
            _moved(read_block(block.key, block.data), moved)
            for run, moved in zip(merged, places, strict=True)
            for first, last in key_ranges(part, _PARTS)
            for block in changes.blocks_between(run.run_no, first, last)
        ]
        if fresh is not None and len(slots):
            for postings in fresh.gather(slots, part):
                there = (postings.places.astype(np.int64) + offsets[-1]).astype(np.uint16)
                found.append(postings._replace(places=there))
        if found:
            changes.add_blocks(run_no, write_blocks(_sorted(found)))
    changes.remove([run.run_no for run in merged])


def _new_places(before: Numbers, after: Numbers, offset: int) -> NDArray[np.int32]:
    """Give the new place of each chunk of a run; -1 if it is gone."""
    places = np.full(len(before), -1, np.int32)
    places[before.searchsorted(after)] = np.arange(len(after)) + offset
    return places


def _moved(postings: Postings, places: NDArray[np.int32]) -> Postings:
    """Give postings their places in another run, without chunks that are gone."""
    moved = places.take(postings.places)
    kept = np.flatnonzero(moved >= 0)
    return Postings(
        postings.terms.take(kept), moved.take(kept).astype(np.uint16), postings.counts.take(kept)
    )


def _sorted(found: Sequence[Postings]) -> Postings:
    terms, places, counts = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort((places, terms))
    return Postings(terms.take(order), places.take(order), counts.take(order))


def purge(changes: PostingChanges) -> None:
    """Rewrite the runs that have postings of chunks which are gone."""
    for run in changes.runs():
        members = changes.members(run.run_no)
        if len(changes.existing(members)) < len(members):
            _add(changes, [run], None, np.empty(0, np.int64), run.last_chunk_no)
