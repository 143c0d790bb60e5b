"""Order figures, best first, in one way for every index and every ranking."""

from __future__ import annotations

from typing import Any

from byheart.startup.late_numpy import NDArray, np

# Below this number, sorting takes less time than looking for ties.
_FEW = 1000


def best_first(*scores: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Order places by their score, highest first; further scores decide ties, then the place."""
    first, *further = scores
    if len(first) < _FEW:
        return np.lexsort([-each for each in reversed(scores)])
    # A sort that keeps equal values in their order takes at least five times as long as one that
    # does not.
    order = np.argsort(-first)
    ranked = first.take(order)
    is_tied = np.zeros(len(order) + 1, np.bool_)
    np.equal(ranked[1:], ranked[:-1], out=is_tied[1:-1])
    at = np.flatnonzero(is_tied[1:] | is_tied[:-1])
    if len(at):
        tied = np.sort(order.take(at))
        if further:
            tied = tied.take(best_first(*(each.take(tied) for each in further)))
        order[at] = tied.take(np.argsort(-first.take(tied), kind="stable"))
    return order
