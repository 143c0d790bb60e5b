"""The token budget of a recall holds, whatever is saved and however it is counted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import byheart
from byheart.contracts import TokenCounter
from byheart.model import RecallAnswer
from byheart.search.recall_budget import Budget
from byheart.store import MemoryStore
from tests.properties.counting import EMBEDDERS, open_stores

WORD = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=60)
TEXTS = st.lists(st.tuples(WORD, WORD, st.integers(0, 10)), max_size=12)


def tokens_of(answer: RecallAnswer, tokens: TokenCounter) -> int:
    return len(tokens.token_starts(answer.text))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, MemoryStore]]:
    with open_stores(tmp_path_factory.mktemp("stores"), EMBEDDERS) as opened:
        yield opened


# Each example has a space of its own: a store takes longer to open than an example takes.
SPACES = map(str, itertools.count())


@settings(max_examples=40, deadline=None)
@given(texts=TEXTS, max_tokens=st.integers(1, 3000), limit=st.integers(1, 15))
@example(texts=[("", "", 5)], max_tokens=1, limit=1)
@example(texts=[("x " * 5000, "y", 5), ("z", "", 0)], max_tokens=400, limit=5)
@example(texts=[("", "", 0)] * 3, max_tokens=183, limit=3)
@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_recall_never_takes_more_tokens_than_it_may(
    stores: dict[str, MemoryStore],
    name: str,
    texts: Sequence[tuple[str, str, int]],
    max_tokens: int,
    limit: int,
) -> None:
    store, space = stores[name], next(SPACES)
    store.save_many(
        {
            "content": f"tea {number} {text}",
            "summary": summary.strip() or None,
            "importance": importance,
            "space": space,
        }
        for number, (text, summary, importance) in enumerate(texts)
    )
    answer = store.recall("tea", max_tokens=max_tokens, limit=limit, space=space)
    assert tokens_of(answer, EMBEDDERS[name]) == answer.tokens_used <= max_tokens
    whole = {each.id for each in answer.details}
    assert answer.text.count("\n- 0") == len({each.id for each in answer.index} - whole)
    assert whole <= {each.id for each in answer.index}
    assert answer.total_count == len(texts)
    assert len(answer.index) <= min(limit, len(texts))
    unlisted = min(limit, len(texts)) - len(answer.index)
    assert answer.has_more == (unlisted > 0 or limit < len(texts))


@given(entries=st.lists(WORD.filter(bool)), most=st.integers(1, 90))
@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_budget_takes_an_entry_exactly_when_it_fits(
    name: str, entries: list[str], most: int
) -> None:
    budget = Budget(EMBEDDERS[name], most)
    for entry in entries:
        cost = len(EMBEDDERS[name].token_starts(entry))
        before, fits = budget.used, cost <= budget.left
        assert budget.spend(budget.cost(entry, budget.left)) == fits
        assert budget.used == before + (cost if fits else 0)
    assert budget.used <= most


@pytest.mark.model
def test_the_budget_holds_with_the_tokens_of_the_model(tmp_path: Path) -> None:
    texts = [
        "naïve café ☕",
        "東京タワー " * 30,
        "x" * 9000,
        "a_b-c.d/e " * 50,
        "\n\n# Tea\n\n- tea",
    ]
    with byheart.open(tmp_path / "memory.db", embedding_provider="onnx") as store:
        store.save_many({"content": f"tea {text}"} for text in texts)
        for max_tokens in (1, 60, 100, 333, 1000, 20_000):
            answer = store.recall("tea", max_tokens=max_tokens)
            assert answer.degraded is None
            assert (
                tokens_of(answer, store._engine.vectorizer.tokens())
                == answer.tokens_used
                <= max_tokens
            )
        assert len(answer.details) == len(texts)
