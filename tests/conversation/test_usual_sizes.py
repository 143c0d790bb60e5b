"""Settings have the sizes of recalls and contexts that name none."""

from __future__ import annotations

from tests.conftest import OpenStore


def test_a_recall_that_names_no_budget_has_that_of_the_settings(open_store: OpenStore) -> None:
    store = open_store(recall_max_tokens=100)
    store.save_many({"content": f"tea {number} " + "leaf " * 20} for number in range(20))
    assert store.recall("tea").tokens_used <= 100
    assert store.recall("tea", max_tokens=1000).tokens_used > 100


def test_a_context_that_names_no_sizes_has_those_of_the_settings(open_store: OpenStore) -> None:
    store = open_store(context_max_tokens=777, context_recent=2, context_top_k=1)
    store.save_many({"content": f"tea {number}"} for number in range(5))
    for number in range(4):
        store.log("s1", "user", f"turn number {number}")

    def parts(**given: int) -> list[str]:
        receipt = store.context("s1", "tea", **given).receipt
        return [each.part for each in receipt.items]

    assert store.context("s1", "tea").receipt.max_tokens == 777
    assert sorted(parts()) == ["recent", "recent", "retrieved"]
    assert parts(recent=3, top_k=3).count("recent") == 3
    assert parts(recent=3, top_k=3).count("retrieved") == 3
