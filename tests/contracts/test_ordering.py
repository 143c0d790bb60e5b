"""The order of figures: the highest first, ties by further figures and then by place."""

from __future__ import annotations

import numpy as np
import pytest

from byheart.contracts.ordering import best_first


@pytest.mark.parametrize("count", [0, 1, 2, 50, 999, 1000, 1001, 5000])
@pytest.mark.parametrize("steps", [1, 3, 200, 10**9], ids=lambda steps: f"{steps} values")
def test_figures_are_ordered_as_by_a_sort_that_keeps_ties_in_place(count: int, steps: int) -> None:
    chance = np.random.default_rng(count + steps)
    first = chance.integers(0, steps, count) / 7
    second = chance.integers(-2, steps, count) / 3
    places = np.arange(count)
    for scores in (first, first.astype(np.float32)):
        expected = np.lexsort((places, -scores))
        assert best_first(scores).tolist() == expected.tolist()
    expected = np.lexsort((places, -second, -first))
    assert best_first(first, second).tolist() == expected.tolist()
