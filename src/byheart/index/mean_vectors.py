"""Give each memory one vector: the mean of the vectors of its chunks."""

from __future__ import annotations

from byheart.contracts import MeanVectors
from byheart.index.masks import Mask
from byheart.index.segment import FIXED_POINT
from byheart.index.view import View
from byheart.startup.late_numpy import np


def find_mean_vectors(view: View, chunks: Mask, limit: int) -> MeanVectors:
    """Give the memories of selected chunks with their mean vectors, every n-th if there are many.

    Memories without vectors are left out.
    """
    rows = [np.flatnonzero(chunks[each.vector_slots]) for each in view.segments]
    owners = [
        view.chunks.owner[each.vector_slots[here]].astype(np.int64)
        for each, here in zip(view.segments, rows, strict=True)
    ]
    known = np.unique(np.concatenate([np.empty(0, np.int64), *owners]))
    chosen = known[np.arange(min(limit, len(known))) * len(known) // max(1, min(limit, len(known)))]
    sums = np.zeros((len(chosen), view.dimensions), np.float32)
    for segment, here, owner in zip(view.segments, rows, owners, strict=True):
        places = np.searchsorted(chosen, owner)
        mine = places < len(chosen)
        mine[mine] = chosen[places[mine]] == owner[mine]
        order = np.argsort(places[mine], kind="stable")
        places = places[mine][order]
        if len(places):
            begins = np.flatnonzero(np.diff(places, prepend=-1))
            vectors = segment.embeddings[here[mine][order]].astype(np.float32)
            sums[places[begins]] += np.add.reduceat(vectors, begins, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    names = list(view.codes["kind"].numbers)  # by number
    codes, kind = np.unique(view.memories.kind[chosen], return_inverse=True)
    return MeanVectors(
        memory_nos=view.memories.memory_nos[chosen],
        vectors=sums / np.maximum(lengths, 1 / FIXED_POINT),
        kinds=tuple(names[code] for code in codes),
        kind=kind.astype(np.int64),
        total=len(known),
    )
