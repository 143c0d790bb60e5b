import random
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.contracts import Ranked
from byheart.search import fusion
from byheart.search.fusion import Fused, Tier, keep_order, reciprocal_rank

A, B, C = 1, 2, 3


def leg(*chunk_nos: int, scores: list[float] | None = None, first: int = 0) -> Tier:
    ranked = Ranked(np.array(chunk_nos, np.int64), np.array(scores or [1.0] * len(chunk_nos)))
    return Tier(np.arange(first, first + len(chunk_nos)), ranked)


def fuse(legs: Mapping[str, Tier]) -> list[Fused]:
    return list(fusion.fuse(legs))


def scores_of(fused: list[Fused]) -> dict[int, float]:
    return {each.chunk_no: each.score for each in fused}


def test_rrf_of_a_b_and_b_c_gives_b_0_032522_a_0_016393_c_0_016129() -> None:
    fused = fuse({"fts": leg(A, B), "vector": leg(B, C)})
    assert [(each.chunk_no, round(each.score, 6)) for each in fused] == [
        *((B, 0.032522), (A, 0.016393), (C, 0.016129)),
    ]


def test_the_first_place_is_worth_one_sixty_first() -> None:
    assert reciprocal_rank(0) == 1 / 61
    assert round(reciprocal_rank(2), 4) == 0.0159


def test_the_seeds_example_comes_out_by_the_formula_not_by_its_table() -> None:
    auth, middleware, jwt, session = 1, 2, 3, 4
    fused = fuse({"fts": leg(auth, middleware, jwt), "vector": leg(middleware, auth, session, jwt)})
    assert [round(each.score, 5) for each in fused] == [0.03252, 0.03252, 0.0315, 0.01587]
    assert [each.chunk_no for each in fused] == [auth, middleware, jwt, session]


def test_a_tie_goes_to_the_better_scores_and_then_to_the_older_chunk() -> None:
    by_score = fuse({"fts": leg(A, scores=[2.0]), "vector": leg(B, scores=[3.0])})
    assert [each.chunk_no for each in by_score] == [B, A]
    by_age = fuse({"fts": leg(B), "vector": leg(A)})
    assert [each.chunk_no for each in by_age] == [A, B]


def test_a_part_of_a_leg_keeps_the_ranks_of_the_whole() -> None:
    whole = fuse({"fts": leg(A, B, C), "vector": leg(C)})
    part = fuse({"fts": leg(C, first=2), "vector": leg()})
    assert part[0].places["fts"] == next(e for e in whole if e.chunk_no == C).places["fts"]


def test_a_single_leg_keeps_its_order_and_its_scores() -> None:
    fused = keep_order("fts", leg(C, A, scores=[7.5, 2.5]))
    assert [(each.chunk_no, each.score) for each in fused] == [(C, 7.5), (A, 2.5)]


rankings = st.lists(st.integers(1, 30), unique=True, max_size=20)


@given(rankings, rankings)
def test_the_score_is_the_sum_over_the_lists_and_a_missing_list_contributes_nothing(
    first: list[int], second: list[int]
) -> None:
    fused = fuse({"fts": leg(*first), "vector": leg(*second)})
    assert {each.chunk_no for each in fused} == {*first, *second}
    for each in fused:
        expected = sum(
            1 / (60 + ranking.index(each.chunk_no) + 1)
            for ranking in (first, second)
            if each.chunk_no in ranking
        )
        assert each.score == pytest.approx(expected, abs=1e-15)
        assert each.score == sum(place.contribution for place in each.places.values())


@given(rankings, rankings)
def test_the_order_of_the_legs_does_not_matter(first: list[int], second: list[int]) -> None:
    one = fuse({"fts": leg(*first), "vector": leg(*second)})
    other = fuse({"vector": leg(*second), "fts": leg(*first)})
    assert [each.chunk_no for each in one] == [each.chunk_no for each in other]
    assert scores_of(one) == pytest.approx(scores_of(other), abs=1e-15)


@given(rankings, rankings, st.randoms())
def test_ties_are_broken_the_same_way_whatever_the_order_of_arrival(
    first: list[int], second: list[int], chance: random.Random
) -> None:
    shuffled = {"fts": leg(*first), "vector": leg(*second)}
    expected = [each.chunk_no for each in fuse(shuffled)]
    for name, ranking in shuffled.items():
        order = list(range(len(ranking.ranks)))
        chance.shuffle(order)
        found = Ranked(*(column[order] for column in ranking.found))
        shuffled[name] = Tier(ranking.ranks[order], found)
    assert [each.chunk_no for each in fuse(shuffled)] == expected


@given(rankings)
def test_fusing_a_list_with_itself_keeps_its_order(ranking: list[int]) -> None:
    assert [e.chunk_no for e in fuse({"fts": leg(*ranking), "vector": leg(*ranking)})] == ranking
