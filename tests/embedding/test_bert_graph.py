"""The graph computes what BERT computes."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest

from byheart.embedding.bert_graph import build_graph
from byheart.embedding.sentence_model import read_sentence_model
from byheart.errors import ModelFilesError

SEQUENCES = [[2, 3], [2, 10, 11, 12, 3], list(range(2, 42))]


def run(graph, ids):
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    return session.run(None, {"input_ids": np.array([ids], np.int32)})[0][0]


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
    assert np.abs(vector - expected).max() < 1e-5
    assert run(build_graph(tiny_weights, model, "int8"), ids) @ expected > 0.99


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
