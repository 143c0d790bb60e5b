"""Fusion: how two rankings become one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from byheart.contracts import Ranked

RRF_K = 60


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


def fuse(legs: Mapping[str, Sequence[tuple[int, Ranked]]]) -> Iterator[Fused]:
    """Merge rankings by Reciprocal Rank Fusion; ties go to the better scores, then the older chunk.

    Each leg lists (rank, chunk); ranks are those of the whole leg, so that a part fuses alike.
    """
    totals: dict[int, float] = {}
    scores: dict[int, float] = {}
    for ranking in legs.values():
        for rank, (number, score) in ranking:
            totals[number] = totals.get(number, 0.0) + 1 / (RRF_K + rank + 1)
            scores[number] = scores.get(number, 0.0) + score
    ranks = {
        leg: {number: (rank, score) for rank, (number, score) in ranking}
        for leg, ranking in legs.items()
    }
    for _, _, number in sorted([(-totals[each], -scores[each], each) for each in totals]):
        places = {
            leg: Place(*by_number[number], reciprocal_rank(by_number[number][0]))
            for leg, by_number in ranks.items()
            if number in by_number
        }
        yield Fused(number, totals[number], places)


def keep_order(leg: str, ranking: Sequence[tuple[int, Ranked]]) -> Iterator[Fused]:
    """Take a single ranking as it is, its scores as final scores."""
    for rank, found in ranking:
        yield Fused(found.chunk_no, found.score, {leg: Place(rank, found.score, found.score)})
