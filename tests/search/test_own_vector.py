"""A search whose caller has made the vector of the query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byheart import MemoryStore
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput

TEXTS = ("Anna drinks green tea", "The car is red", "Tea grows on hills", "Ben repairs cars")


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    store.save_many([{"content": text} for text in TEXTS])
    return store


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_the_vector_of_the_query_gives_the_answer_of_the_query(
    filled: MemoryStore, mode: str
) -> None:
    own = HashEmbedder().embed_query("green tea")
    asked = filled.search("green tea", mode=mode)
    for vector in (own, own.tolist(), (3 * own).tolist()):  # of any length
        answer = filled.search("green tea", mode=mode, vector=vector)
        assert [hit.chunk_id for hit in answer.results] == [hit.chunk_id for hit in asked.results]
        assert answer.verdict == asked.verdict


def test_the_vector_decides_and_not_the_words_of_the_query(filled: MemoryStore) -> None:
    vector = HashEmbedder().embed_query(TEXTS[1])
    answer = filled.search("green tea", mode="vector", vector=vector)
    assert answer.results[0].snippet == TEXTS[1]


def test_a_store_without_vectors_answers_by_keyword_and_says_so(store: MemoryStore) -> None:
    assert "no vectors" in (store.search("tea", vector=[1.0, 0.0]).degraded or "")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"vector": [1.0, 2.0]}, "vector has 2 numbers"),
        ({"vector": [0.0] * 384}, "is no vector"),
        ({"vector": "text"}, "is no vector"),
        ({"vector": [True]}, "is no vector"),
        ({"vector": [float("nan")]}, "is no vector"),
        ({"vector": [10**400]}, "is no vector"),
        ({"vector": np.ones((2, 2))}, "is no vector"),
        ({"vector": np.array(1.0)}, "is no vector"),
        ({"vector": np.ones(20_000)}, "is no vector"),
        ({"vector": [1.0], "mode": "fts"}, "vector needs mode=hybrid or mode=vector"),
        ({"vector": [1.0], "query": "", "granularity": "coarse"}, "vector needs a query"),
    ],
)
def test_a_vector_that_cannot_be_compared_is_refused(
    filled: MemoryStore, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        filled.search(**{"query": "tea", **given})
