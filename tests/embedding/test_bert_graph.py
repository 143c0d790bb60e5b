"""The graph computes what BERT computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from safetensors.numpy import load_file

from byheart.embedding.bert_graph import build_graph
from byheart.embedding.model_sources import DEFAULT_MODEL
from byheart.embedding.model_tokens import ModelTokens
from byheart.embedding.sentence_model import read_sentence_model
from byheart.errors import ModelFilesError

REFERENCE = Path(__file__).with_name("reference_vectors.npz")
SEQUENCES = [[2, 3], [2, 10, 11, 12, 3], list(range(2, 42))]


def load(graph):
    session = onnxruntime.InferenceSession(graph)
    return lambda ids: session.run(None, {"input_ids": np.array([ids], np.int32)})[0][0]


def run(graph, ids):
    return load(graph)(ids)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("ids", SEQUENCES, ids=len)
def test_full_precision_equals_an_independent_forward_pass(
    pooling, ids, tmp_path, write_tiny_model, tiny_weights, numpy_embed
):
    folder = write_tiny_model(tmp_path / "tiny", pooling=pooling)
    model = read_sentence_model(folder, "tiny")
    expected = numpy_embed(
        tiny_weights, json.loads((folder / "config.json").read_text()), ids, pooling[:4].strip("_")
    )
    vector = run(build_graph(tiny_weights, model, "fp32"), ids)
    assert vector.shape == expected.shape
    assert np.abs(vector - expected).max() < 1e-5
    assert run(build_graph(tiny_weights, model, "int8"), ids) @ expected > 0.99


def test_a_channel_with_outliers_does_not_blur_the_others(
    tmp_path, write_tiny_model, tiny_weights, numpy_embed, monkeypatch
):
    folder = write_tiny_model(tmp_path / "tiny")
    model = read_sentence_model(folder, "tiny")
    loud = {name: each.copy() for name, each in tiny_weights.items()}
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        loud[f"{layer}.intermediate.dense.bias"][5] = 40
        loud[f"{layer}.output.dense.weight"][3, 5] = 10
        # As in real models, what comes after makes up for the one dimension that grows so large.
        loud[f"{layer}.output.LayerNorm.weight"] *= np.where(np.arange(32) == 3, 0, 60)
    config = json.loads((folder / "config.json").read_text())
    expected = numpy_embed(loud, config, SEQUENCES[2], "mean")
    assert run(build_graph(loud, model, "fp32"), SEQUENCES[2]) @ expected > 0.9999
    apart = run(build_graph(loud, model, "int8"), SEQUENCES[2]) @ expected
    monkeypatch.setattr("byheart.embedding.bert_graph.LOUD", np.inf)
    together = run(build_graph(loud, model, "int8"), SEQUENCES[2]) @ expected
    assert 1 - apart < (1 - together) / 5


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_the_package_onnx_reads_the_file_and_finds_every_operator_in_order(
    precision, tmp_path, write_tiny_model, tiny_weights
):
    model = read_sentence_model(write_tiny_model(tmp_path / "tiny"), "tiny")
    written = build_graph(tiny_weights, model, precision)
    read = onnx.load_from_string(written)
    onnx.checker.check_model(read)
    assert read.SerializeToString(deterministic=True) == written
    [words] = [each for each in read.graph.initializer if each.name == "words"]
    table = tiny_weights["embeddings.word_embeddings.weight"]
    assert onnx.numpy_helper.to_array(words).shape == table.shape
    assert read.graph.node[0].op_type == "Gather"
    assert read.graph.node[-1].output == ["embedding"]
    axis = {each.name: each.i for each in read.graph.node[-1].attribute}
    assert axis == {"axis": -1, "p": 2}


def test_weights_under_a_task_head_or_in_half_precision_are_read(
    tmp_path, write_tiny_model, tiny_weights
):
    model = read_sentence_model(write_tiny_model(tmp_path / "tiny"), "tiny")
    expected = run(build_graph(tiny_weights, model, "fp32"), SEQUENCES[1])
    nested = {f"bert.{name}": each.astype(np.float16) for name, each in tiny_weights.items()}
    assert run(build_graph(nested, model, "fp32"), SEQUENCES[1]) @ expected > 0.9999


def test_a_missing_tensor_is_named(tmp_path, write_tiny_model, tiny_weights):
    model = read_sentence_model(write_tiny_model(tmp_path / "tiny"), "tiny")
    weights = {name: each for name, each in tiny_weights.items() if "layer.1.output" not in name}
    with pytest.raises(ModelFilesError, match=r"encoder\.layer\.1\.output"):
        build_graph(weights, model, "int8")


# One test for all texts: with one for each, both workers would download the weights.
@pytest.mark.model
def test_full_precision_equals_sentence_transformers_on_the_genuine_weights(minilm_folder):
    model = read_sentence_model(minilm_folder, DEFAULT_MODEL)
    embed = load(build_graph(load_file(minilm_folder / "model.safetensors"), model, "fp32"))
    tokens = ModelTokens(minilm_folder / "tokenizer.json")
    before, after = tokens.special_ids
    reference = np.load(REFERENCE)
    cosines = {
        str(text): embed([*before, *tokens.ids(str(text)), *after]) @ expected
        for text, expected in zip(reference["texts"], reference["vectors"], strict=True)
    }
    assert len(cosines) == 9
    assert {text: cosine for text, cosine in cosines.items() if cosine < 0.9999} == {}
