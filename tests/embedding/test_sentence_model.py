"""A folder says what its model is, and one we cannot load is refused by name."""

from __future__ import annotations

import json

import pytest

from byheart.embedding.sentence_model import read_sentence_model
from byheart.errors import ModelFilesError


def test_the_shape_is_read_from_the_files(tmp_path, write_tiny_model):
    folder = write_tiny_model(tmp_path / "m", pooling="cls_token")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 16}')
    model = read_sentence_model(folder, "m")
    assert (model.dimensions, model.layers, model.heads) == (32, 2, 4)
    assert (model.pooling, model.max_tokens) == ("cls", 16)


def test_without_its_own_limit_a_model_reads_as_far_as_its_positions(tmp_path, write_tiny_model):
    assert read_sentence_model(write_tiny_model(tmp_path / "m"), "m").max_tokens == 40


@pytest.mark.parametrize(
    ("name", "prefixes"),
    [
        ("intfloat/e5-small-v2", ("query: ", "passage: ")),
        ("intfloat/multilingual-e5-small", ("query: ", "passage: ")),
        (
            "BAAI/bge-small-en-v1.5",
            ("Represent this sentence for searching relevant passages: ", ""),
        ),
        ("BAAI/bge-small-zh", ("", "")),
        ("sentence-transformers/all-MiniLM-L6-v2", ("", "")),
    ],
)
def test_families_get_the_prefixes_their_authors_ask_for(
    name, prefixes, tmp_path, write_tiny_model
):
    model = read_sentence_model(write_tiny_model(tmp_path / "m"), name)
    assert (model.query_prefix, model.passage_prefix) == prefixes


def test_prompts_in_the_files_win_over_the_family(tmp_path, write_tiny_model):
    folder = write_tiny_model(tmp_path / "m")
    prompts = {"prompts": {"query": "ask: ", "document": "text: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    model = read_sentence_model(folder, "intfloat/e5-small-v2")
    assert (model.query_prefix, model.passage_prefix) == ("ask: ", "text: ")


@pytest.mark.parametrize(
    ("config", "pooling", "message"),
    [
        ({"model_type": "roberta"}, "mean_tokens", "roberta"),
        ({"hidden_act": "relu"}, "mean_tokens", "relu"),
        ({"position_embedding_type": "relative_key"}, "mean_tokens", "relative_key"),
        ({}, "max_tokens", "pooling_mode_max_tokens"),
    ],
)
def test_what_cannot_be_loaded_is_refused_by_name(
    config, pooling, message, tmp_path, write_tiny_model
):
    folder = write_tiny_model(tmp_path / "m", pooling=pooling, **config)
    with pytest.raises(ModelFilesError, match=message):
        read_sentence_model(folder, "m")


def test_a_further_layer_on_top_is_refused(tmp_path, write_tiny_model):
    folder = write_tiny_model(tmp_path / "m")
    modules = [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelFilesError, match="Dense"):
        read_sentence_model(folder, "m")


@pytest.mark.parametrize("content", [None, "{"])
def test_a_missing_or_broken_configuration_is_reported(content, tmp_path, write_tiny_model):
    folder = write_tiny_model(tmp_path / "m")
    (folder / "config.json").unlink()
    if content:
        (folder / "config.json").write_text(content)
    with pytest.raises(ModelFilesError, match=r"config\.json"):
        read_sentence_model(folder, "m")
