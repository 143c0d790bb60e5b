"""The hash embedder is deterministic everywhere, and likes like words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byheart.embedding.hash_embedder import HashEmbedder


def test_the_vector_of_a_text_is_the_same_on_every_machine():
    vector = HashEmbedder(8).embed_query("Hello, world")
    expected = [-0.282843, 0.0, 0.0, 0.707107, -0.565685, 0.0, -0.282843, -0.141421]
    assert np.allclose(vector, expected, atol=1e-6)


def test_texts_that_share_words_are_more_alike_than_texts_that_do_not():
    question, answer, other = HashEmbedder().embed(
        ["Where is the harbour office?", "The harbour office is white.", "Bake bread at 200 °C."]
    )
    assert question @ answer > 0.4 > question @ other + 0.2


def test_case_does_not_matter():
    upper, lower = HashEmbedder().embed(["SQLite WAL", "sqlite wal"])
    assert np.array_equal(upper, lower)


@given(st.lists(st.text(), max_size=5))
def test_every_vector_is_of_unit_length(texts):
    vectors = HashEmbedder(16).embed(texts)
    assert vectors.shape == (len(texts), 16)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
