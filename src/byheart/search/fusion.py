"""Fusion: how two rankings become one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Ranked

RRF_K = 60


class Tier(NamedTuple):
    """Part of a leg's ranking; ranks are those of the whole leg, so that a part fuses alike."""

    ranks: NDArray[np.int64]
    found: Ranked


class Place(NamedTuple):
    """Where a chunk stood in one leg, from rank 0 if it was found there, and what that brought."""

    rank: int | None
    score: float
    contribution: float


class Fused(NamedTuple):
    """A chunk with its final score, its place in each leg, and the share of its neighbours."""

    chunk_no: int
    score: float
    places: Mapping[str, Place]
    beside: float = 0.0


def reciprocal_rank(rank: int) -> float:
    """Give what a place is worth: `1 / (60 + rank + 1)` with rank from 0."""
    return 1 / (RRF_K + rank + 1)


def fuse(legs: Mapping[str, Tier]) -> Iterator[Fused]:
    """Merge rankings by Reciprocal Rank Fusion; ties go to the better scores, then to age."""
    numbers, which = np.unique(
        np.concatenate([leg.found.chunk_nos for leg in legs.values()]), return_inverse=True
    )
    totals, scores = np.zeros(len(numbers)), np.zeros(len(numbers))
    places = {}
    begin = 0
    for name, leg in legs.items():
        mine = which[begin : begin + len(leg.ranks)]
        begin += len(leg.ranks)
        totals[mine] += 1 / (RRF_K + leg.ranks + 1)
        scores[mine] += leg.found.scores
        places[name] = np.full(len(numbers), -1)
        places[name][mine] = np.arange(len(mine))
    # Numbers are in order of age already, and of equals the first stays first.
    for at in np.lexsort((-scores, -totals)):
        # Made one by one, since a page takes 11 of hundreds.
        found = {
            name: _place(legs[name], rows[at]) for name, rows in places.items() if rows[at] >= 0
        }
        yield Fused(int(numbers[at]), float(totals[at]), found)


def _place(leg: Tier, row: int) -> Place:
    rank = int(leg.ranks[row])
    return Place(rank, float(leg.found.scores[row]), reciprocal_rank(rank))


def keep_order(name: str, leg: Tier) -> Iterator[Fused]:
    """Take a single ranking as it is, its scores as final scores."""
    for rank, number, score in zip(
        leg.ranks.tolist(), leg.found.chunk_nos.tolist(), leg.found.scores.tolist(), strict=True
    ):
        yield Fused(number, score, {name: Place(rank, score, score)})
