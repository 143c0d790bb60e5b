"""Candidates made by hand: ranking is a function of them, and needs no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from byheart.contracts import Background, Candidates

NO_NEIGHBOURS = (0, 0, 0, 0)


def make_candidates(
    keywords: Mapping[int, float] | Sequence[int] = (),
    vector: Mapping[int, float] | Sequence[int] = (),
    *,
    neighbours: Mapping[int, Sequence[int]] | None = None,
    bm25: Mapping[int, float] | None = None,
    cosines: Mapping[int, float] | None = None,
    background: Background = Background(0.0, 0.1, 100),  # noqa: B008 - a named tuple is fixed
) -> Candidates:
    """Make candidates from the ranking of each retriever, best first, with or without scores.

    `bm25` and `cosines` give figures for chunks that no retriever ranked.
    """
    words, near = _scored(keywords), _scored(vector)
    all_bm25, all_cosines = {**(bm25 or {}), **words}, {**(cosines or {}), **near}
    around = dict(neighbours or {})
    beside = {each for several in around.values() for each in several if each}
    numbers = sorted({*words, *near, *around, *beside})
    rows = np.array(numbers, np.int64)
    table = np.array([around.get(each, NO_NEIGHBOURS) for each in numbers], np.int64)
    table = table.reshape(len(numbers), 4)

    def look_up(figures: Mapping[int, float], none: float) -> np.ndarray:
        return np.array([[figures.get(int(n), none) for n in row] for row in table]).reshape(
            len(numbers), 4
        )

    return Candidates(
        terms=("term",),
        background=background,
        highest_bm25=max(all_bm25.values(), default=0.0),
        document_frequency={"term": len(words)} if words else {},
        chunk_nos=rows,
        memory_nos=rows,
        bm25=np.array([all_bm25.get(each, 0.0) for each in numbers]),
        cosines=np.array([all_cosines.get(each, np.nan) for each in numbers]),
        keyword_ranks=_ranks(words, numbers),
        vector_ranks=_ranks(near, numbers),
        terms_present=np.array([[each in words] for each in numbers], np.bool_).reshape(
            len(numbers), 1
        )[:, : 1 if words else 0],
        neighbours=table,
        neighbours_bm25=look_up(all_bm25, 0.0),
        neighbours_cosines=look_up(all_cosines, np.nan),
        more=False,
        holds_superseded=False,
    )


def found_by_any(candidates: Candidates) -> np.ndarray:
    """Mark the rows that a retriever ranked: the first tier."""
    return (candidates.keyword_ranks >= 0) | (candidates.vector_ranks >= 0)


def _scored(ranking: Mapping[int, float] | Sequence[int]) -> dict[int, float]:
    return dict(ranking) if isinstance(ranking, Mapping) else dict.fromkeys(ranking, 1.0)


def _ranks(ranking: Mapping[int, float], numbers: Sequence[int]) -> np.ndarray:
    places = {number: rank for rank, number in enumerate(ranking)}
    return np.array([places.get(each, -1) for each in numbers], np.int64)
