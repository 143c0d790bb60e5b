"""A cross-encoder scores pairs of texts as an independent forward pass does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from byheart.contracts import Reranker
from byheart.embedding.bert_graph import build_graph
from byheart.embedding.cross_encoder import CrossEncoder
from byheart.embedding.model_sources import ModelSources
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.embedding.onnx_model import OnnxModel
from byheart.embedding.sentence_model import read_sentence_model
from byheart.errors import EmbedderUnavailable, ModelFilesError
from tests.embedding.multilingual_model import random_weights, unigram_tokenizer, write_model
from tests.embedding.tiny_model import VOCABULARY, tiny_tokenizer

SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "layer_norm_eps": 1e-12,
}
TEXTS = ["tea", "coffee and tea", "a long text about tea, of many words: " * 5, ""]


def dense(name, rows, size):
    random = np.random.default_rng(len(name))
    return {
        f"{name}.weight": random.normal(0, 0.3, (rows, size)).astype(np.float32),
        f"{name}.bias": random.normal(0, 0.3, rows).astype(np.float32),
    }


@pytest.fixture
def bert(tmp_path):
    """Write a tiny BertForSequenceClassification, as ms-marco-MiniLM is one."""
    encoder = random_weights(len(VOCABULARY), 32, 64, 2, 40, 2, prefix="bert.")
    weights = {**encoder, **dense("bert.pooler.dense", 32, 32), **dense("classifier", 1, 32)}
    config = {
        **SHAPE,
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "max_position_embeddings": 40,
    }
    return write_model(tmp_path / "reranker", weights, tiny_tokenizer(), **config), weights


@pytest.fixture
def xlm_roberta(tmp_path):
    """Write a tiny XLMRobertaForSequenceClassification, as bge-reranker is one."""
    tokenizer = unigram_tokenizer()
    encoder = random_weights(tokenizer.get_vocab_size(), 32, 64, 2, 42, 1, prefix="roberta.")
    head = {**dense("classifier.dense", 32, 32), **dense("classifier.out_proj", 1, 32)}
    config = {
        **SHAPE,
        "model_type": "xlm-roberta",
        "architectures": ["XLMRobertaForSequenceClassification"],
        "max_position_embeddings": 42,
        "pad_token_id": 1,
    }
    return write_model(tmp_path / "reranker", {**encoder, **head}, tokenizer, **config), {
        **encoder,
        **head,
    }


def first_vector(numpy_embed, weights, prefix, ids, segments, first_position):
    """Give the last layer's vector of the first token, and the weights without their prefix."""
    plain = {name.removeprefix(prefix): each.astype(np.float64) for name, each in weights.items()}
    words = plain["embeddings.word_embeddings.weight"][ids]
    kinds = plain["embeddings.token_type_embeddings.weight"]
    # The independent implementation knows the first segment only: the difference goes to the words.
    plain["embeddings.word_embeddings.weight"] = words + kinds[segments] - kinds[0]
    table = "embeddings.position_embeddings.weight"
    plain[table] = plain[table][first_position:]
    return numpy_embed(plain, SHAPE, list(range(len(ids))), "first"), plain


def head(plain, pooler, last, vector):
    inner = np.tanh(plain[f"{pooler}.weight"] @ vector + plain[f"{pooler}.bias"])
    return (plain[f"{last}.weight"] @ inner + plain[f"{last}.bias"]).item()


@pytest.mark.parametrize("family", ["bert", "xlm_roberta"])
def test_the_graph_scores_as_an_independent_forward_pass(family, request, numpy_embed, tmp_path):
    folder, weights = request.getfixturevalue(family)
    model = read_sentence_model(folder, "reranker")
    assert (model.pooling, model.max_tokens) == ("score", 40)
    ids, segments = [2, 10, 7, 3, 12, 5, 3], [0, 0, 0, 0, 1, 1, 1]
    if family == "xlm_roberta":
        segments = [0] * len(ids)
    graph = tmp_path / "graph.onnx"
    graph.write_bytes(build_graph(weights, model, "fp32"))
    made = OnnxModel(graph, may_pair=False).run(np.array([ids, segments], np.int32), alone=True)
    prefix = "bert." if family == "bert" else "roberta."
    first, plain = first_vector(numpy_embed, weights, prefix, ids, segments, model.first_position)
    names = {
        "bert": ("pooler.dense", "classifier"),
        "xlm_roberta": ("classifier.dense", "classifier.out_proj"),
    }
    assert made[0] == pytest.approx(head(plain, *names[family], first), abs=1e-4)


@pytest.mark.parametrize("family", ["bert", "xlm_roberta"])
def test_passages_are_scored_each_by_itself_and_the_end_of_a_long_one_is_cut(
    family, request, tmp_path
):
    folder, _ = request.getfixturevalue(family)
    encoder = CrossEncoder(str(folder), cache_dir=tmp_path / "cache", sources=ModelSources(()))
    assert isinstance(encoder, Reranker)
    together = encoder.score("what tea?", TEXTS)
    assert together == [encoder.score("what tea?", [each])[0] for each in TEXTS]
    assert all(map(math.isfinite, together))
    assert len(set(together)) == len(TEXTS)
    assert len(encoder.score("tea " * 500, TEXTS)) == len(TEXTS)
    assert encoder.score("tea", []) == []
    encoder.unload()
    assert encoder.score("what tea?", TEXTS) == together


def test_models_for_vectors_and_for_pairs_are_not_mixed_up(bert, tmp_path, write_tiny_model):
    cache, none = tmp_path / "cache", ModelSources(())
    plain = write_tiny_model(tmp_path / "plain")
    with pytest.raises(ModelFilesError, match="does not rerank"):
        CrossEncoder(str(plain), cache_dir=cache, sources=none).score("a", ["b"])
    with pytest.raises(ModelFilesError, match="makes no vectors"):
        OnnxEmbedder(str(bert[0]), cache_dir=cache, sources=none).embed(["a"])


def test_a_head_with_several_scores_is_refused(bert, tmp_path):
    folder, weights = bert
    several = {**weights, **dense("classifier", 3, 32)}
    with pytest.raises(ModelFilesError, match="3 scores"):
        build_graph(several, read_sentence_model(folder, "reranker"), "int8")


def test_a_model_that_cannot_be_had_is_not_looked_for_with_every_search(tmp_path, monkeypatch):
    encoder = CrossEncoder(
        "nobody/has-it", cache_dir=tmp_path, sources=ModelSources((), offline=True)
    )
    with pytest.raises(EmbedderUnavailable, match="has-it"):
        encoder.score("a", ["b"])
    monkeypatch.setattr(ModelSources, "fetch", lambda *_: pytest.fail("asked again"))
    with pytest.raises(EmbedderUnavailable, match="has-it"):
        encoder.score("a", ["b"])
