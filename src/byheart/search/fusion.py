"""Fusion: how two rankings become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byheart.contracts import Ranked

RRF_K = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk stood in one leg, from rank 0, and what that brought it."""

    rank: int
    score: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Fused:
    """A chunk with its final score and its place in each leg that found it."""

    chunk_no: int
    score: float
    places: Mapping[str, Place]


def reciprocal_rank(rank: int) -> float:
    """Give what a place is worth: `1 / (60 + rank + 1)` with rank from 0."""
    return 1 / (RRF_K + rank + 1)


def fuse(legs: Mapping[str, Sequence[tuple[int, Ranked]]]) -> list[Fused]:
    """Merge rankings by Reciprocal Rank Fusion; ties go to the better scores, then the older chunk.

    Each leg lists (rank, chunk): ranks are those of the whole leg, so that a part of it fuses alike.
    """
    places: dict[int, dict[str, Place]] = {}
    for leg, ranking in legs.items():
        for rank, found in ranking:
            place = Place(rank, found.score, reciprocal_rank(rank))
            places.setdefault(found.chunk_no, {})[leg] = place
    fused = [
        Fused(chunk_no, sum(place.contribution for place in by_leg.values()), by_leg)
        for chunk_no, by_leg in places.items()
    ]
    return sorted(fused, key=_order)


def keep_order(leg: str, ranking: Sequence[tuple[int, Ranked]]) -> list[Fused]:
    """Take a single ranking as it is, its scores as final scores."""
    return [
        Fused(found.chunk_no, found.score, {leg: Place(rank, found.score, found.score)})
        for rank, found in ranking
    ]


def _order(fused: Fused) -> tuple[float, float, int]:
    return (
        -fused.score,
        -sum(place.score for place in fused.places.values()),
        fused.chunk_no,
    )
