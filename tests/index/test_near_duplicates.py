"""Pairs found by bands of signs, against comparing each with each."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from byheart.index.columns import (
    CHUNK_TYPES,
    MEMORY_TYPES,
    NEVER,
    OPEN_ENDED,
    ChunkColumns,
    MemoryColumns,
)
from byheart.index.near_duplicates import find_pairs, resembling
from byheart.index.segment import Segment, build_vectors, empty_segment
from byheart.index.view import View

DIMENSIONS = 384


def view_of(*parts: NDArray[np.float32], kinds: int = 1) -> View:
    """Show vectors, one chunk and one memory each, in one segment per part."""
    segments, first = [], 0
    for part in parts:
        empty = empty_segment(DIMENSIONS)
        slots = list(range(first, first + len(part)))
        postings = (empty.terms, empty.starts, empty.slots, empty.counts)
        segments.append(Segment(*postings, *build_vectors(slots, part)))
        first += len(part)
    memories = {name: np.zeros(first, kind) for name, kind in MEMORY_TYPES.items()}
    memories |= {name: np.full(first, NEVER) for name in OPEN_ENDED}
    memories["memory_nos"] = np.arange(first) + 1
    memories["present"] = np.ones(first, np.bool_)
    memories["kind"] = (np.arange(first) % kinds).astype(np.int32)
    chunks = {name: np.ones(first, kind) for name, kind in CHUNK_TYPES.items()}
    chunks["chunk_nos"] = np.arange(first) + 1
    chunks["owner"] = np.arange(first, dtype=np.int32)
    return View(
        (1, 1),
        1,
        DIMENSIONS,
        MemoryColumns(**memories),
        ChunkColumns(**chunks),
        {},
        tuple(segments),
        np.empty(0, np.int64),
    )


def vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Make unit vectors that lean one way, as those of real models do."""
    made = np.random.default_rng(seed).normal(size=(count, DIMENSIONS)) + 0.3
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def turned(some: NDArray[np.float32], low: float, high: float) -> NDArray[np.float32]:
    """Make of each vector another at a cosine between two bounds."""
    chance = np.random.default_rng(1)
    aside = chance.normal(size=some.shape)
    aside -= np.vecdot(aside, some)[:, np.newaxis] * some
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    cosine = chance.uniform(low, high, (len(some), 1))
    return (cosine * some + np.sqrt(1 - cosine**2) * aside).astype(np.float32)


def found(view: View, least: float) -> set[tuple[int, int]]:
    pairs = find_pairs(view, view.chunks.alive, least)
    return set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))


@pytest.mark.parametrize("least", [0.95, 0.9, 0.8])
def test_nearly_every_pair_is_found_that_comparing_all_finds(least: float) -> None:
    some = vectors(5000)
    doubled = np.concatenate([some, turned(some[:1000], least, 1)])
    exact = np.round(doubled * 32767).astype(np.float32) / 32767
    true = {
        (int(low) + 1, int(high) + 1)
        for low, high in np.argwhere(exact @ exact.T >= least)
        if low < high
    }
    got = found(view_of(doubled), least)
    assert len(true) > 900
    assert len(got & true) >= 0.985 * len(true)
    assert len(got - true) <= 2  # the last digit


def test_pairs_are_found_across_segments() -> None:
    some = vectors(2000)
    assert (1, 2001) in found(view_of(some, some[:5]), 0.95)


def test_pairs_of_another_kind_are_not_looked_at() -> None:
    some = vectors(2001)
    assert found(view_of(np.concatenate([some, some[:6]]), kinds=2), 0.95) == set()


def test_chunks_that_are_not_selected_are_not_compared() -> None:
    some = vectors(1500)
    view = view_of(np.concatenate([some, some[:2]]))
    chosen = view.chunks.alive.copy()
    chosen[0] = False
    pairs = find_pairs(view, chosen, 0.95)
    assert pairs.first.tolist() == [2]
    assert pairs.second.tolist() == [1502]
    assert pairs.similarity.tolist() == [1.0]


def test_thousands_of_the_same_are_found_without_comparing_each_with_each() -> None:
    same = turned(np.repeat(vectors(1), 3000, axis=0), 0.999, 1)
    pairs = found(view_of(np.concatenate([vectors(3000, seed=2), same])), 0.95)
    assert len({number for pair in pairs for number in pair}) > 2700
    assert len(pairs) <= 100_000 < 3000 * 2999 / 2


def test_one_is_compared_with_all_by_signs_as_exactly_as_one_by_one() -> None:
    some = vectors(6000)
    view = view_of(np.concatenate([some, turned(some[:1], 0.9, 1), turned(some[:1], 0.1, 0.2)]))
    assert [number for number, _ in resembling(view, 1, 0.9, 5, now=0)] == [6001]
