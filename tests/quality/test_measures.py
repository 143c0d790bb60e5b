"""The figures of `benchmarks/quality` are what their names say."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

_MEASURES = runpy.run_path(
    str(Path(__file__).parents[2] / "benchmarks" / "quality" / "measures.py")
)
measure, compare = _MEASURES["measure"], _MEASURES["compare"]


def test_a_perfect_ranking_scores_one_throughout() -> None:
    assert measure(["a", "b", "x"], {"a": 2, "b": 1}) == dict.fromkeys(
        ("ndcg@10", "recall@5", "recall@10", "mrr", "hit@1"), 1.0
    )


def test_gain_is_linear_and_discounted_by_the_logarithm_of_the_rank() -> None:
    got = measure(["x", "b", "a"], {"a": 2, "b": 1})
    ideal = 2 + 1 / math.log2(3)
    assert got["ndcg@10"] == pytest.approx((1 / math.log2(3) + 2 / 2) / ideal)
    assert (got["mrr"], got["hit@1"]) == (0.5, 0.0)


def test_only_the_first_ten_count_and_recall_is_of_all_that_is_wanted() -> None:
    found = [*"abcdefghij", "wanted"]
    assert measure(found, {"wanted": 1, "f": 1}) | {"ndcg@10": 0, "mrr": 0} == {
        "ndcg@10": 0,
        "recall@5": 0.0,
        "recall@10": 0.5,
        "mrr": 0,
        "hit@1": 0.0,
    }


def test_a_difference_is_sure_only_if_its_range_leaves_zero_out() -> None:
    steady = compare([0.5] * 100, [0.6] * 100)
    assert steady.sure
    assert steady.mean == pytest.approx(0.1)
    shaky = compare([0.0, 1.0] * 50, [1.0, 0.0] * 50)
    assert not shaky.sure
    assert shaky.low < 0 < shaky.high
