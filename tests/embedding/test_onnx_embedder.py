"""The default embedder makes the vectors that the model's authors publish."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from byheart.embedding.model_cache import get_model
from byheart.embedding.model_sources import ModelSources
from byheart.embedding.model_tokens import ModelTokens
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.errors import EmbedderUnavailable

REFERENCE = Path(__file__).with_name("reference_vectors.npz")
# Measured against the exact computation: 0.996 on average and 0.993 at worst on 1,800 abstracts,
# 0.982 at worst on 2,760 turns of chats.
INT8_COSINE_AT_LEAST = 0.98


@pytest.fixture
def tiny(tmp_path, write_tiny_model):
    folder = write_tiny_model(tmp_path / "e5-tiny")
    return OnnxEmbedder(str(folder), cache_dir=tmp_path / "cache", sources=ModelSources(()))


def test_nothing_is_touched_before_first_use(tmp_path):
    embedder = OnnxEmbedder(cache_dir=tmp_path / "cache", sources=ModelSources(order=()))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EmbedderUnavailable, match="could not be got"):
        embedder.embed(["text"])


def test_vectors_are_unit_length_in_order_and_do_not_depend_on_their_neighbours(tiny):
    texts = ["b", "a longer text than the other", "", "b", "dots... and 0123"]
    vectors = tiny.embed(texts)
    assert vectors.shape == (5, 32)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(tiny.embed([text])[0], vector)
    assert tiny.embed([]).shape == (0, 32)


def test_threads_take_the_longest_texts_first(tmp_path, write_tiny_model, monkeypatch):
    folder = write_tiny_model(tmp_path / "tiny")
    embedder = OnnxEmbedder(str(folder), cache_dir=tmp_path / "cache", threads=1)
    texts = ["b", "dots... and 0123", "", "a longer text"]
    alone = [embedder.embed([text])[0] for text in texts]
    taken = []
    number = ModelTokens.ids
    monkeypatch.setattr(ModelTokens, "ids", lambda *at: taken.append(at[1]) or number(*at))
    assert np.array_equal(embedder.embed(texts), np.stack(alone))
    assert taken == ["dots... and 0123", "a longer text", "b", ""]


def test_questions_and_passages_get_their_prefixes(tiny, numpy_embed, tiny_weights):
    assert not np.allclose(tiny.embed_query("abc"), tiny.embed(["abc"])[0])
    # 40 positions, less two special tokens, less "passage: " in letters.
    assert tiny.window_tokens == 40 - 2 - len("passage:")


def test_a_text_longer_than_the_window_is_the_mean_of_its_windows(tiny):
    text = " ".join("abcdefghij"[: 1 + index % 10] for index in range(12))
    middle = text.index(" ", len(text) // 2 - 6) + 1
    halves = tiny.embed([text[:middle], text[middle:]])
    mean = halves.sum(0) / np.linalg.norm(halves.sum(0))
    assert len(tiny.token_starts(text)) > tiny.window_tokens
    assert tiny.embed([text])[0] @ mean > 0.95
    changed = tiny.embed([text[:-3] + "zzz"])[0]
    assert not np.allclose(tiny.embed([text])[0], changed)


def test_a_damaged_graph_is_built_again(tiny, tmp_path):
    expected = tiny.embed(["abc"])
    tiny.files().graph.write_bytes(bytes(tiny.files().graph.stat().st_size))
    again = OnnxEmbedder(
        str(tmp_path / "e5-tiny"), cache_dir=tmp_path / "cache", sources=ModelSources(())
    )
    assert np.array_equal(again.embed(["abc"]), expected)
    assert get_model(str(tmp_path / "e5-tiny"), tmp_path / "cache", ModelSources(()), print)


def test_threads_may_share_an_embedder(tiny):
    texts = [f"text {index} {'abc ' * (index % 7)}" for index in range(40)]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(tiny.embed_query, texts))
    assert np.array_equal(np.stack(parts), np.stack([tiny.embed_query(text) for text in texts]))


@pytest.mark.model
def test_the_real_model_equals_the_reference(minilm):
    reference = np.load(REFERENCE)
    vectors = minilm.embed([str(text) for text in reference["texts"]])
    cosines = (vectors * reference["vectors"]).sum(axis=1)
    assert cosines.min() >= INT8_COSINE_AT_LEAST


@pytest.mark.model
def test_the_real_model_gives_the_published_cosine(minilm):
    food, bread = minilm.embed(["A man is eating food.", "A man is eating a piece of bread."])
    assert food @ bread == pytest.approx(0.755, abs=0.02)


@pytest.mark.model
def test_the_real_model_is_what_it_says(minilm):
    assert minilm.name == "all-MiniLM-L6-v2-int8"
    assert (minilm.dimensions, minilm.window_tokens) == (384, 254)


@pytest.mark.model
def test_the_end_of_a_long_text_counts(minilm):
    start = "The harbour office is painted white. " * 60
    question = minilm.embed_query("How do I bake bread?")
    plain, with_bread = minilm.embed([start, start + "Bake the bread at 220 degrees. " * 30])
    assert question @ with_bread > question @ plain + 0.15


def test_an_idle_model_is_let_go_of_and_comes_back_by_itself(tiny):
    before = tiny.embed(["a text"])
    tiny.unload(idle_seconds=60)
    assert tiny._onnx is not None, "it was used just now"
    tiny.unload()
    assert tiny._onnx is None
    assert np.array_equal(tiny.embed(["a text"]), before)


def test_a_model_may_be_let_go_of_while_threads_use_it(tiny):
    texts = [f"text {number}" for number in range(200)]
    expected = tiny.embed(texts)
    with ThreadPoolExecutor(3) as pool:
        made = [pool.submit(tiny.embed, texts) for _ in range(3)]
        while not all(each.done() for each in made):
            tiny.unload()
        assert all(np.array_equal(each.result(), expected) for each in made)
