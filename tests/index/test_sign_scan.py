"""The rows that signs choose, against comparing all vectors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from byheart.index import sign_scan
from byheart.index.segment import Segment, build_vectors, empty_segment, mix, pack_bits, pack_signs
from byheart.index.sign_scan import count_differences, near_by_signs
from tests.index.test_view import unit

DIMENSIONS = 384


def segment_of(vectors: NDArray[np.float32]) -> Segment:
    empty = empty_segment(vectors.shape[1])
    postings = (empty.terms, empty.starts, empty.slots, empty.counts)
    return Segment(*postings, *build_vectors(list(range(len(vectors))), vectors))


@pytest.mark.parametrize("dimensions", [1, 64, 65, 384, 1024])
@pytest.mark.parametrize("count", [1, 511, 512, 1300])
def test_differences_are_counted_in_every_block_and_word(dimensions: int, count: int) -> None:
    chance = np.random.default_rng(dimensions)
    made = unit(chance.normal(size=(count, dimensions)))
    segment = segment_of(made)
    bits = pack_signs(made[:1])[:, 0]
    each = sum(
        np.bitwise_count(w ^ b).astype(int) for w, b in zip(segment.signs, bits, strict=True)
    )
    for share in (0.0, 0.2, 0.5, 1.0):
        rows = np.flatnonzero(chance.random(count) < share)
        assert count_differences(segment, bits, rows).tolist() == np.take(each, rows).tolist()


@pytest.mark.parametrize("dimensions", [1, 65, 384])
def test_a_differing_sign_weighs_as_much_as_the_question_says_in_its_dimension(
    dimensions: int,
) -> None:
    made = unit(np.random.default_rng(dimensions).normal(size=(40, dimensions)))
    question, segment = made[0], segment_of(made)
    mixed = mix(made)
    size = np.abs(mixed[0]) * np.sqrt(dimensions) / np.linalg.norm(mixed[0])
    weights = np.minimum(np.round(size * 7 / 2.2), 7)
    expected = ((mixed > 0) != (mixed[0] > 0)) @ weights
    planes = sign_scan._weigh_dimensions(mix(question[np.newaxis])[0])
    rows = np.arange(0, 40, 3)
    counted = sign_scan._weigh_differences(segment, pack_bits(mixed[0] > 0), planes, rows)
    assert counted.tolist() == expected[rows].tolist()


def test_weighed_signs_find_more_of_the_nearest_than_twice_as_many_by_signs_alone() -> None:
    """Vectors are mixtures of a few directions, as those of texts about a few subjects."""
    chance = np.random.default_rng(7)
    subjects = chance.normal(size=(200, DIMENSIONS))
    made = unit(
        subjects[chance.integers(0, 200, (20_000, 3))].sum(axis=1)
        + chance.normal(size=(20_000, DIMENSIONS))
    )
    segments = [segment_of(part) for part in np.split(made, [15_000])]
    allowed = [np.arange(len(each.vector_slots)) for each in segments]
    first = np.array([0, 15_000])
    weighed = alone = 0
    for question in unit(subjects[:30] + 2 * chance.normal(size=(30, DIMENSIONS))):
        nearest = np.argsort(-(made @ question))[:100]
        chosen = near_by_signs(segments, allowed, question, 500)
        rows = np.concatenate([some + at for some, at in zip(chosen, first, strict=True)])
        assert 500 <= len(rows) <= 600
        weighed += len(np.intersect1d(rows, nearest))
        signs = pack_signs(question[np.newaxis])[:, 0]
        differences = [
            count_differences(segment, signs, some)
            for segment, some in zip(segments, allowed, strict=True)
        ]
        alone += len(np.intersect1d(np.argsort(np.concatenate(differences))[:1000], nearest))
    assert weighed > alone


def test_more_rows_are_kept_of_a_million_than_of_a_hundred_thousand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_scan, "_MANY_ROWS", 500)
    made = unit(np.random.default_rng(3).normal(size=(8000, DIMENSIONS)))
    [rows] = near_by_signs([segment_of(made)], [np.arange(8000)], made[0], 50)
    assert 100 <= len(rows) <= 120  # twice as many, since there are sixteen times 500 rows
