"""Chunks ranked by the index, against comparing and sorting all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from byheart.index import sign_scan
from byheart.index import view as index
from byheart.index.bm25 import K1
from byheart.index.selections import Selection, select_chunks
from tests.index.test_near_duplicates import DIMENSIONS, view_of

WANTED = 100
EXACT_VECTORS = index.EXACT_VECTORS


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a few thousand vectors treated as if they were hundreds of thousands."""
    monkeypatch.setattr(index, "EXACT_VECTORS", 256)
    monkeypatch.setattr(index, "LEAST_CANDIDATES", WANTED)
    monkeypatch.setattr(index, "_BLOCK", 512)
    monkeypatch.setattr(sign_scan, "_SAMPLED", 500)
    monkeypatch.setattr(index, "_SAMPLED_SCORES", 50)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def all_of(count: int) -> Selection:
    return Selection(np.ones(count, np.bool_), count, count, np.ones(count, np.int32))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("period", "phase"), [(1, 0), (2, 0), (2, 1), (6, 0), (6, 5)])
def test_the_nearest_are_found_however_they_recur(parts: int, period: int, phase: int) -> None:
    """The sample of 500 among 3,000 takes every sixth."""
    chance = np.random.default_rng(7)
    rows = chance.normal(size=(3000, DIMENSIONS))
    question = unit(chance.normal(size=(1, DIMENSIONS)))[0]
    near = np.arange(3000) % period == phase
    rows[near] += 12 * question * chance.random((near.sum(), 1))
    made = unit(rows)
    view = view_of(*np.array_split(made, parts), made[:0])
    allowed = [np.arange(len(each.vector_slots)) for each in view.segments]
    candidates = sign_scan.near_by_signs(view.segments, allowed, question, WANTED)
    assert WANTED <= sum(map(len, candidates)) <= 2 * WANTED
    found = view.rank_by_vector(question, all_of(3000), 10)
    cosines = made @ question
    nearest = np.argsort(-cosines)[:10] + 1
    assert found.slots[0] + 1 == nearest[0]
    assert len(set((found.slots + 1).tolist()) & set(nearest.tolist())) >= 8
    assert found.scores == pytest.approx(cosines[found.slots], abs=1e-3)
    assert (np.diff(found.scores) <= 0).all()


def test_up_to_4096_vectors_that_a_filter_lets_through_are_all_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "EXACT_VECTORS", EXACT_VECTORS)
    chance = np.random.default_rng(5)
    made = unit(chance.normal(size=(6000, DIMENSIONS)))
    allowed = np.sort(chance.permutation(6000)[:4096])
    chosen = np.zeros(6000, np.bool_)
    chosen[allowed] = True
    question = unit(chance.normal(size=(1, DIMENSIONS)))[0]
    found = view_of(made).rank_by_vector(question, replace(all_of(6000), chunks=chosen), 300)
    cosines = np.round(made[allowed] @ question, 3)
    assert np.round(found.scores, 3) == pytest.approx(np.sort(cosines)[::-1][:300], abs=0.0011)
    assert chosen[found.slots].all()


def test_the_mean_length_of_chunks_is_right_beyond_32_bits() -> None:
    view = view_of(np.zeros((3, DIMENSIONS), np.float32))
    long = replace(view, chunks=replace(view.chunks, length=np.full(3, 2**30, np.int32)))
    selection = select_chunks(long.chunks, np.ones(3, np.bool_))
    assert selection.norms_of(np.arange(3)) == pytest.approx([K1] * 3)


@pytest.mark.parametrize("density", [0.0, 0.001, 0.05, 1.0])
@pytest.mark.parametrize("limit", [1, 10, 300])
def test_the_best_by_words_are_those_of_a_full_sort(limit: int, density: float) -> None:
    chance = np.random.default_rng(limit)
    for count in (0, 1, 49, 51, 4000):
        ties = np.round(chance.gamma(1, 1, count), 1).astype(np.float32)
        scores = np.where(chance.random(count) < density, ties, np.float32(0))
        ranked = view_of(np.zeros((count, DIMENSIONS), np.float32)).rank_by_words(scores, limit)
        order = [at for at in np.lexsort((np.arange(count), -scores)) if scores[at] > 0][:limit]
        assert ranked.slots.tolist() == order
