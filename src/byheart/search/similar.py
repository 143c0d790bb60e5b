"""Find the memories that are nearest to one in meaning."""

from __future__ import annotations

from typing import Any, NamedTuple

from byheart.contracts import Question, Reader
from byheart.model import Filter, Similar
from byheart.startup.late_numpy import np

# The passages of a memory that stand for all of it, and the passages that are looked at for each
# memory to find: a long memory may have several near ones.
_MOST_PASSAGES, _PASSAGES_PER_MEMORY = 8, 4
_MORE_PASSAGES = 20


class Nearest(NamedTuple):
    """The memories found; `has_vectors` is false if the memory itself cannot be compared."""

    similar: list[Similar]
    has_vectors: bool


def find_nearest(
    reader: Reader, memory_id: str, where: Filter, least: float, limit: int
) -> Nearest:
    """Find memories whose best passage is near to a memory's own passages, best first."""
    part = range(_MOST_PASSAGES)
    own = [each.chunk_no for each in reader.chunks_of(memory_id, where.space, part)]
    vectors = reader.index.vectors(own)
    if not vectors:
        return Nearest([], False)
    rows = np.concatenate([np.atleast_2d(each) for each in vectors.values()])
    depth = _PASSAGES_PER_MEMORY * limit + _MORE_PASSAGES
    found = reader.index.candidates(Question(where, None, _unit(rows.mean(axis=0))), depth)
    best: dict[int, float] = {}
    for number, cosine in zip(found.memory_nos, found.cosines, strict=True):
        if cosine >= least:  # false for a passage without a vector
            best[int(number)] = max(float(cosine), best.get(int(number), -1.0))
    order = sorted(best, key=lambda number: (-best[number], number))
    summaries = zip(order, reader.summaries(order), strict=True)
    similar = [
        Similar(text.text_id, round(min(1.0, best[number]), 4), text.summary)
        for number, text in summaries
        if text.memory_id != memory_id
    ]
    return Nearest(similar[:limit], True)


def _unit(vector: Any) -> Any:
    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)
