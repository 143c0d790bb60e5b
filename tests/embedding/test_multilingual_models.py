"""E5 models, with a vocabulary of WordPiece or of SentencePiece, read as their authors say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from byheart.embedding.model_sources import ModelSources
from byheart.embedding.model_tokens import ModelTokens
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.embedding.sentence_model import E5_INSTRUCTION, read_sentence_model
from tests.embedding.multilingual_model import (
    PIECES,
    SPECIAL,
    random_weights,
    unigram_tokenizer,
    write_model,
)
from tests.embedding.tiny_model import tiny_tokenizer

WORDS = len(SPECIAL) + len(PIECES)
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


@pytest.fixture
def tokens(tmp_path):
    unigram_tokenizer().save(str(tmp_path / "tokenizer.json"))
    return ModelTokens(tmp_path / "tokenizer.json")


@pytest.fixture
def xlm_roberta(tmp_path):
    """Write a tiny model of the family XLM-RoBERTa, whose positions begin at 2."""
    weights = random_weights(WORDS, 32, 64, 2, 42, 1, prefix="roberta.")
    config = {
        **SMALL,
        "model_type": "xlm-roberta",
        "max_position_embeddings": 42,
        "pad_token_id": 1,
    }
    folder = tmp_path / "multilingual-e5-tiny"
    return write_model(folder, weights, unigram_tokenizer(), **config), weights, config


def as_reference(weights, first_position):
    """Give the weights as the independent implementation expects them."""
    plain = {
        name.removeprefix("roberta."): each.astype(np.float32) for name, each in weights.items()
    }
    table = "embeddings.position_embeddings.weight"
    return {**plain, table: plain[table][first_position:]}


def embedder_of(folder, tmp_path):
    return OnnxEmbedder(str(folder), cache_dir=tmp_path / "cache", sources=ModelSources(()))


def test_positions_of_xlm_roberta_begin_after_the_padding_token(xlm_roberta, tmp_path, numpy_embed):
    folder, weights, config = xlm_roberta
    model = read_sentence_model(folder, str(folder))
    assert (model.first_position, model.max_tokens) == (2, 40)
    config = {**config, "layer_norm_eps": 1e-12}
    ids = [0, *ModelTokens(folder / "tokenizer.json").ids("query: tea"), 2]
    expected = numpy_embed(as_reference(weights, 2), config, ids, "mean")
    shifted = numpy_embed(as_reference(weights, 0), config, ids, "mean")
    vector = embedder_of(folder, tmp_path).embed_query("tea")
    assert vector @ expected > 0.99
    assert vector @ expected > vector @ shifted


def test_a_text_up_to_the_last_position_is_embedded(xlm_roberta, tmp_path):
    embedder = embedder_of(xlm_roberta[0], tmp_path)
    assert embedder.window_tokens == 40 - 2 - 4  # <s>, </s> and "query: "
    for count in (33, 34, 35, 200):
        text = " ".join(["tea"] * count)
        assert len(embedder.token_starts(text)) == count
        [vector] = embedder.embed([text])
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("tea", [0]),
        ("tea tea", [0, 3]),
        ("  tea\n tea.", [1, 6, 10]),
        ("чай茶ชา", [0, 0, 3, 4]),
        ("tea ('a", [0, 3, 4, 6]),
        ("", []),
    ],
)
def test_pieces_may_span_words_marks_and_spaces(tokens, text, starts):
    assert list(tokens.token_starts(text)) == starts
    assert len(tokens.ids(text)) == len(starts)


def test_every_text_has_as_many_tokens_as_the_model_reads(tokens):
    for text in ("tea " * 5000, "茶" * 500, "(' " * 40 + "чай.", "te\ud800a"):
        assert len(tokens.token_starts(text)) >= len(tokens.ids(text))


def test_a_run_of_unknown_characters_counts_by_its_length(tokens):
    assert len(tokens.ids("qqqqqqqq")) == 2
    assert len(tokens.token_starts("qqqqqqqq")) == 3


def test_long_words_are_not_cut_where_the_vocabulary_has_no_limit(tokens):
    text = "茶" * 300
    assert tokens.ids(text)[1:] == [SPECIAL.__len__() + PIECES.index("茶")] * 300


def test_models_with_instructions_get_the_instruction_of_their_authors(xlm_roberta):
    model = read_sentence_model(xlm_roberta[0], "intfloat/multilingual-e5-large-instruct")
    assert (model.query_prefix, model.passage_prefix) == (E5_INSTRUCTION, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "tokenizer"),
    [("e5-small-v2", 30522, tiny_tokenizer), ("multilingual-e5-small", 250037, unigram_tokenizer)],
)
def test_models_of_the_size_of_e5_small_are_read(name, words, tokenizer, tmp_path, numpy_embed):
    shape = {
        "hidden_size": 384,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    }
    weights = random_weights(words, 384, 1536, 12, 512, 2)
    config = {**shape, "model_type": "bert", "vocab_size": words, "pad_token_id": 0}
    folder = write_model(tmp_path / name, weights, tokenizer(), **config)
    embedder = embedder_of(folder, tmp_path)
    [vector] = embedder.embed(["tea a te"])
    files = embedder.files()
    assert (files.shape.dimensions, files.shape.max_tokens) == (384, 512)
    assert (files.shape.query_prefix, files.shape.passage_prefix) == ("query: ", "passage: ")
    tokens = ModelTokens(folder / "tokenizer.json")
    before, after = tokens.special_ids
    ids = [*before, *tokens.ids("passage: tea a te"), *after]
    config = json.loads((folder / "config.json").read_text())
    expected = numpy_embed(as_reference(weights, 0), config, ids, "mean")
    assert vector @ expected > 0.97
