import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.contracts import Background
from byheart.search.evidence_fusion import rank_by_evidence
from byheart.search.rank_fusion import fuse, reciprocal_rank
from byheart.search.ranked_rows import KEYWORDS, VECTOR, Fused, keep_order
from tests.search.made_candidates import found_by_any, make_candidates

A, B, C = 1, 2, 3


def rrf(keywords: object, vector: object = ()) -> list[Fused]:
    found = make_candidates(keywords, vector)  # type: ignore[arg-type]
    return list(fuse(found, found_by_any(found)))


def test_rrf_of_a_b_and_b_c_gives_b_0_032522_a_0_016393_c_0_016129() -> None:
    assert [(each.chunk_no, round(each.score, 6)) for each in rrf([A, B], [B, C])] == [
        *((B, 0.032522), (A, 0.016393), (C, 0.016129)),
    ]


def test_the_first_place_is_worth_one_sixty_first() -> None:
    first, third, unranked = reciprocal_rank(np.array([0, 2, -1])).tolist()
    assert first == 1 / 61
    assert round(third, 4) == 0.0159
    assert unranked == 0


def test_the_seeds_example_comes_out_by_the_formula_not_by_its_table() -> None:
    auth, middleware, jwt, session = 1, 2, 3, 4
    fused = rrf([auth, middleware, jwt], [middleware, auth, session, jwt])
    assert [round(each.score, 5) for each in fused] == [0.03252, 0.03252, 0.0315, 0.01587]
    assert [each.chunk_no for each in fused] == [auth, middleware, jwt, session]


def test_a_tie_goes_to_the_better_scores_and_then_to_the_older_chunk() -> None:
    assert [each.chunk_no for each in rrf({A: 2.0}, {B: 3.0})] == [B, A]
    assert [each.chunk_no for each in rrf([B], [A])] == [A, B]


def test_a_later_tier_keeps_the_ranks_of_the_whole_list() -> None:
    found = make_candidates([A, B, C], [C])
    [part] = fuse(found, found.chunk_nos == C)
    assert part.places == next(each for each in rrf([A, B, C], [C]) if each.chunk_no == C).places


def test_a_single_retriever_keeps_its_order_and_its_scores() -> None:
    by_words = make_candidates({C: 7.5, A: 2.5})
    kept = keep_order(by_words, found_by_any(by_words), KEYWORDS)
    assert [(each.chunk_no, each.score) for each in kept] == [(C, 7.5), (A, 2.5)]
    by_vector = make_candidates(vector={B: 0.9, A: 0.1})
    kept = keep_order(by_vector, found_by_any(by_vector), VECTOR)
    assert [(each.chunk_no, each.score) for each in kept] == [(B, 0.9), (A, 0.1)]


rankings = st.lists(st.integers(1, 30), unique=True, max_size=20)


@given(rankings, rankings)
def test_the_score_is_the_sum_over_the_lists_and_a_missing_list_contributes_nothing(
    first: list[int], second: list[int]
) -> None:
    fused = rrf(first, second)
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
def test_the_order_of_the_retrievers_does_not_matter(first: list[int], second: list[int]) -> None:
    one, other = rrf(first, second), rrf(second, first)
    assert [each.chunk_no for each in one] == [each.chunk_no for each in other]
    assert [each.score for each in one] == pytest.approx([each.score for each in other])


@given(rankings)
def test_fusing_a_list_with_itself_keeps_its_order(ranking: list[int]) -> None:
    assert [each.chunk_no for each in rrf(ranking, ranking)] == ranking


# --- Evidence and neighbours ------------------------------------------------------------------

WIDE = Background(0.0, 0.1, 100)


def by_evidence(**made: object) -> list[Fused]:
    found = make_candidates(**made)  # type: ignore[arg-type]
    return list(rank_by_evidence(found, found_by_any(found), 1.0))


def test_evidence_is_bm25_plus_six_tenths_of_the_squared_deviations() -> None:
    [hit] = by_evidence(keywords={A: 2.0}, vector={A: 0.3}, background=WIDE)
    assert hit.score == pytest.approx(2.0 + 0.6 * 3.0**2)
    assert hit.beside == 0.0


def test_a_turn_gets_shares_of_the_turns_around_it() -> None:
    around = {B: (1, 0, 3, 0)}
    figures = {1: 5.0, 3: 10.0}
    hits = by_evidence(keywords={B: 1.0}, neighbours=around, bm25=figures, background=WIDE)
    [hit] = [each for each in hits if each.chunk_no == B]
    assert hit.beside == pytest.approx(0.2 * 5.0 + 0.1 * 10.0)
    assert hit.score == pytest.approx(1.0 + hit.beside)


def test_a_neighbour_with_evidence_is_listed_though_no_retriever_found_it() -> None:
    hits = by_evidence(
        keywords={B: 1.0}, neighbours={B: (A, 0, 0, 0)}, bm25={A: 0.5}, background=WIDE
    )
    assert {each.chunk_no for each in hits} == {A, B}


def test_a_neighbour_without_any_evidence_is_not_listed() -> None:
    """Nothing is said for it: exactly 0 is not more than 0."""
    hits = by_evidence(keywords={B: 1.0}, neighbours={B: (A, 0, 0, 0)}, background=WIDE)
    assert [each.chunk_no for each in hits] == [B]


def test_a_place_without_a_neighbour_brings_no_row_in() -> None:
    """The first row is outside of the tier, and nothing but its evidence speaks for it."""
    found = make_candidates(keywords={A: 5.0, C: 1.0}, neighbours={C: (0, B, 0, 0)}, bm25={B: 0.5})
    tier = found.chunk_nos == C
    listed = [each.chunk_no for each in rank_by_evidence(found, tier, 1.0)]
    assert sorted(listed) == [B, C]


def test_figures_of_a_place_without_a_neighbour_do_not_count() -> None:
    found = make_candidates(keywords={B: 1.0}, neighbours={B: (A, 0, 0, 0)}, bm25={A: 0.5, 0: 9.0})
    scores = {
        each.chunk_no: each.beside for each in rank_by_evidence(found, found_by_any(found), 1.0)
    }
    assert scores[B] == pytest.approx(0.2 * 0.5)


def test_a_chunk_without_a_vector_gets_no_evidence_from_one() -> None:
    near, none = by_evidence(keywords={A: 1.0, B: 1.0}, vector={A: 0.2}, background=WIDE)
    assert (near.chunk_no, none.chunk_no) == (A, B)
    assert none.score == 1.0
    assert VECTOR not in none.places
    assert none.cosine is None


def test_equal_evidence_goes_to_the_nearer_chunk_then_to_the_older_one() -> None:
    same = Background(0.5, 1e-6, 100)  # every cosine is the background's: no evidence
    hits = by_evidence(vector={C: 0.5, A: 0.4, B: 0.4}, background=same)
    assert [each.chunk_no for each in hits] == [C, A, B]


@given(st.dictionaries(st.integers(1, 40), st.floats(0, 20), max_size=20))
def test_evidence_never_lists_a_chunk_twice(figures: dict[int, float]) -> None:
    ordered = dict(sorted(figures.items(), key=lambda each: -each[1]))
    numbers = list(ordered)
    around = {each: (numbers[at - 1], 0, 0, 0) for at, each in enumerate(numbers)}
    hits = by_evidence(keywords=ordered, neighbours=around, background=WIDE)
    assert len({each.chunk_no for each in hits}) == len(hits) == len(figures)
    assert all(np.isfinite(each.score) for each in hits)
