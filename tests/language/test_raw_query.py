"""Raw queries: what they mean, and where they are not valid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart import MemoryStore
from byheart.errors import QuerySyntaxError
from byheart.language.raw_query import (
    Combined,
    Near,
    Phrase,
    Within,
    parse_raw_query,
    to_fts5,
)
from tests.conftest import OpenStore


def parse(text: str) -> object:
    return parse_raw_query(text).expression


def test_not_binds_tighter_than_and_and_and_tighter_than_or() -> None:
    a, b, c, d = (Phrase((each,)) for each in "abcd")
    assert parse("a OR b AND c NOT d") == Combined(
        "OR", (a, Combined("AND", (b, Combined("NOT", (c, d)))))
    )


def test_parts_side_by_side_must_all_match_and_bind_tightest() -> None:
    a, b, c = (Phrase((each,)) for each in "abc")
    assert parse("a b NOT c") == Combined("NOT", (Combined("AND", (a, b)), c))


def test_phrases_prefixes_columns_and_near_groups_are_recognised() -> None:
    assert parse('"a b" *') == Phrase(("a b",), prefix=True)
    assert parse("one + two") == Phrase(("one", "two"))
    assert parse("^first") == Phrase(("first",), first=True)
    assert parse("NEAR(a b, 3)") == Near((Phrase(("a",)), Phrase(("b",))), 3)
    assert parse("- {title summary}: a") == Within(
        ("title", "summary"), Phrase(("a",)), others=True
    )


def test_a_query_nested_as_deep_as_allowed_is_executed(open_store: OpenStore) -> None:
    with open_store() as store:
        store.save("an apple, a banana and a zebra")
        for shape in ("(a OR b AND c NOT d ", "(", "(x OR ", "({title content}: ("):
            depth = 8 // shape.count("(")
            query = shape * depth + "zebra" + ")" * (depth * shape.count("("))
            assert store.search(query, raw=True).total_results == 1, shape


@pytest.mark.parametrize("depth", [9, 100, 5000])
def test_a_query_nested_too_deep_is_refused_where_it_is_too_deep(depth: int) -> None:
    query = "(a OR b AND c NOT d " * depth + "z" + ")" * depth
    with pytest.raises(QuerySyntaxError, match="parentheses") as error:
        parse_raw_query(query)
    assert query[error.value.position or 0] == "("


def test_words_of_another_space_do_not_change_the_score_of_a_prefix(store: MemoryStore) -> None:
    store.save("the prezzz is here", space="mine")
    before = [
        hit.score for hit in store.search("prez*", raw=True, mode="fts", space="mine").results
    ]
    store.save(" ".join(f"prez{number}" for number in range(5000)), space="other")
    after = [hit.score for hit in store.search("prez*", raw=True, mode="fts", space="mine").results]
    assert before == after
    assert before[0] > 0


def test_a_nul_is_refused_where_it_is_since_it_would_end_the_query_of_fts5() -> None:
    with pytest.raises(QuerySyntaxError, match="x00") as error:
        parse_raw_query('a "b\0c"')
    assert error.value.position == 4


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(words)
def test_any_text_is_parsed_or_refused_at_a_position_within_it(text: str) -> None:
    position = 0
    try:
        to_fts5(parse_raw_query(text).expression)
    except QuerySyntaxError as error:
        position = error.position or 0
    assert 0 <= position <= len(text)
