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
    """Where a chunk stood in one leg, from rank 0, and what that brought it."""

    rank: int
    score: float
    contribution: float


class Fused(NamedTuple):
    """A chunk with its final score and its place in each leg that found it."""

    chunk_no: int
    score: float
    places: Mapping[str, Place]


def reciprocal_rank(rank: int) -> float:
    """Give what a place is worth: `1 / (60 + rank + 1)` with rank from 0."""
    return 1 / (RRF_K + rank + 1)


def fuse(legs: Mapping[str, Tier]) -> Iterator[Fused]:
    """Merge rankings by Reciprocal Rank Fusion; ties go to the better scores, then to age."""
    numbers, which = np.unique(
        np.concatenate([leg.found.chunk_nos for leg in legs.values()]), return_inverse=True
    )
    worth = np.concatenate([1 / (RRF_K + leg.ranks + 1) for leg in legs.values()])
    totals = np.bincount(which, worth, len(numbers))
    scores = np.bincount(
        which, np.concatenate([leg.found.scores for leg in legs.values()]), len(numbers)
    )
    # Numbers are in order of age already, and of equals the first stays first.
    order = np.lexsort((-scores, -totals))
    places = {name: _rows_by_number(leg) for name, leg in legs.items()}
    for number, total in zip(numbers[order].tolist(), totals[order].tolist(), strict=True):
        # Made one by one, since a page takes 11 of up to 600.
        found = {
            name: _place(legs[name], at[number]) for name, at in places.items() if number in at
        }
        yield Fused(number, total, found)


def _rows_by_number(leg: Tier) -> dict[int, int]:
    numbers = leg.found.chunk_nos.tolist()
    return dict(zip(numbers, range(len(numbers)), strict=True))


def _place(leg: Tier, row: int) -> Place:
    rank = int(leg.ranks[row])
    return Place(rank, float(leg.found.scores[row]), reciprocal_rank(rank))


def keep_order(name: str, leg: Tier) -> Iterator[Fused]:
    """Take a single ranking as it is, its scores as final scores."""
    for rank, number, score in zip(
        leg.ranks.tolist(), leg.found.chunk_nos.tolist(), leg.found.scores.tolist(), strict=True
    ):
        yield Fused(number, score, {name: Place(rank, score, score)})
