"""A short run of the fuzz target that sets the clock at random."""

import pytest

from tests.fuzz.clock import run


@pytest.mark.parametrize("seed", [1, 2])
def test_random_verbs_under_random_clocks_keep_order_versions_and_memories(seed: int) -> None:
    report = run(seconds=4, seed=seed)
    assert report.tried
    assert report.failures == []
