from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.extraction import extract_entities, score_importance

PAGE = Path(__file__).parents[2] / "docs" / "importance.md"


def examples() -> list[tuple[str, str, str, str]]:
    table = PAGE.read_text(encoding="utf-8").split("## Examples")[1]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in row) for row in rows[2:]]  # type: ignore[misc]


@pytest.mark.parametrize(("text", "kind", "entities", "importance"), examples())
def test_the_examples_of_the_page_are_true(
    text: str, kind: str, entities: str, importance: str
) -> None:
    found = extract_entities(text)
    assert ", ".join(found) == entities
    assert score_importance(text, kind=kind, entities=found) == float(importance)


def test_the_page_holds_the_examples_of_the_seed() -> None:
    assert [(kind, importance) for _, kind, _, importance in examples()[:4]] == [
        ("fact", "7.7"),
        ("fact", "5.7"),
        ("relationship", "6.4"),
        ("fact", "3.0"),
    ]


@pytest.mark.parametrize(
    "text", ["we decided on tea", "always lock it", "never do so", "it must fit", "Ann prefers tea"]
)
def test_a_preference_a_decision_or_a_rule_weighs_two_points(text: str) -> None:
    assert score_importance(text) >= score_importance("x" * len(text)) + 2.0


def test_a_hedged_statement_counts_less_than_a_definite_one() -> None:
    assert score_importance("it is full") == score_importance("it may be full") + 1.0


def test_source_and_metadata_count_half_a_point_each() -> None:
    assert score_importance("hello", has_source=True) == 3.5
    assert score_importance("hello", has_source=True, has_metadata=True) == 4.0


def test_a_preference_deep_inside_a_long_document_says_nothing_about_the_document() -> None:
    filler = "word " * 200
    assert score_importance(filler + "always") == score_importance(filler + "forever")


def test_chinese_text_is_measured_by_its_characters() -> None:
    assert score_importance("数据库每天凌晨备份到另一台服务器上保存三十天以上") > 3.5


@given(st.text(), st.lists(st.text()), st.booleans(), st.booleans())
def test_importance_stays_between_0_and_10(
    text: str, entities: list[str], has_source: bool, has_metadata: bool
) -> None:
    score = score_importance(
        text, entities=entities, has_source=has_source, has_metadata=has_metadata
    )
    assert 0.0 <= score <= 10.0
