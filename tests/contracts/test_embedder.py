"""What every `Embedder` promises, run on each implementation."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.contracts import Embedder
from byheart.embedding.hash_embedder import HashEmbedder

# Others can be added here; each must be able to run without a network.
IMPLEMENTATIONS: list[Callable[[], Embedder]] = [
    HashEmbedder,
    lambda: HashEmbedder(dimensions=32, window_tokens=16),
]

TEXTS = [
    "short",
    "The quick brown fox jumps.",
    "記憶 🙂",
    "word " * 600,
    "a",
    "\n",
    "!?",
    "x" * 3000,
]


@pytest.fixture(scope="module", params=IMPLEMENTATIONS, ids=["hash", "hash-small"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = request.param()
    return made


def test_it_has_a_name_and_sizes(embedder: Embedder) -> None:
    assert embedder.name.strip()
    assert embedder.dimensions > 0
    assert embedder.window_tokens > 0


def test_each_text_gives_one_unit_vector_of_the_promised_length(embedder: Embedder) -> None:
    made = embedder.embed(TEXTS)
    assert made.shape == (len(TEXTS), embedder.dimensions)
    assert made.dtype == np.float32
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_a_question_is_one_unit_vector(embedder: Embedder) -> None:
    vector = embedder.embed_query("What is it?")
    assert vector.shape == (embedder.dimensions,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_vectors_come_in_the_order_of_the_texts(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert embedder.embed([text])[0] @ vector == pytest.approx(1, abs=1e-4)


def test_the_same_text_always_gives_the_same_vector(embedder: Embedder) -> None:
    assert np.array_equal(embedder.embed(["same"]), embedder.embed(["same"]))


def test_a_text_is_nearer_to_itself_than_to_another(embedder: Embedder) -> None:
    query = embedder.embed_query("the quick brown fox")
    same, other = embedder.embed(["the quick brown fox", "annual financial statement"])
    assert query @ same > query @ other


@settings(max_examples=50)
@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_tokens_begin_inside_the_text_in_ascending_order(embedder: Embedder, text: str) -> None:
    starts = list(embedder.token_starts(text))
    assert starts == sorted(starts)
    assert all(0 <= start < len(text) for start in starts)
    assert bool(starts) or not text.strip() or not any(char.isalnum() for char in text)


def test_longer_texts_have_more_tokens(embedder: Embedder) -> None:
    assert len(embedder.token_starts("one two three")) > len(embedder.token_starts("one"))
    assert len(embedder.token_starts("")) == 0
