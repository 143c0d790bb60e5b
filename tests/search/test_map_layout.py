"""The layout of a map and the names of its regions, without a store."""

import numpy as np

from byheart.search.map_layout import divide, find_terms, lay_out


def clusters(count: int, each: int, dimensions: int = 24) -> np.ndarray:  # type: ignore[type-arg]
    """Make vectors around some directions, always the same ones."""
    chance = np.random.default_rng(5)
    middles = np.repeat(np.eye(dimensions)[:count], each, axis=0)
    made = middles + chance.normal(0, 0.05, (count * each, dimensions))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def test_the_same_vectors_give_the_same_map_within_the_unit_square() -> None:
    vectors = clusters(6, 80)
    places = lay_out(vectors)
    assert places.shape == (480, 2)
    assert places.min() >= 0
    assert places.max() <= 1
    assert np.array_equal(places, lay_out(vectors.copy()))
    assert np.array_equal(divide(places), divide(places.copy()))


def test_vectors_that_are_alike_are_near_on_the_map() -> None:
    for each in (20, 120):  # with fewer vectors than landmarks, and with more
        places = lay_out(clusters(5, each)).reshape(5, each, 2)
        middles = places.mean(axis=1)
        spread = np.linalg.norm(places - middles[:, np.newaxis], axis=2).mean()
        apart = np.linalg.norm(middles[:, np.newaxis] - middles, axis=2)
        nearest = np.sort(apart, axis=1)[:, 1].min()
        assert nearest > 2 * spread, (each, nearest, spread)


def test_few_and_equal_vectors_have_places_too() -> None:
    for count in (0, 1, 2, 3, 7):
        places = lay_out(np.ones((count, 8), np.float32))
        assert places.shape == (count, 2)
        assert np.isfinite(places).all()
        assert count == 0 or len(divide(places)) == count


def test_regions_are_named_by_words_that_are_frequent_only_there() -> None:
    texts = ["The cat sleeps daily"] * 6 + ["The train leaves daily"] * 6
    assert find_terms(texts, [0] * 6 + [1] * 6) == [["cat", "sleeps"], ["leaves", "train"]]
    assert find_terms(["Cat and cat.", "A dog 2026"], [0, 0]) == [["cat", "dog"]]
    assert find_terms([], []) == []
