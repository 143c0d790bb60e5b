"""Builds the ONNX graph of a BERT-family sentence model straight from its weights.

ONNX Runtime's own fused operators are used instead of an exporter: no torch, and no optimiser
pass to hope for. One text at a time goes in, so there is no padding and no mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from byheart.embedding.sentence_model import ONLY_BERT, SentenceModel
from byheart.errors import ModelFilesError

Weights = Mapping[str, NDArray[Any]]
Precision = Literal["int8", "fp32"]

# The oldest pair that has everything used here, so that older runtimes can read the file too.
ONNX_OPSET = 17
IR_VERSION = 8
FUSED = "com.microsoft"
FUSED_OPERATORS = {
    "Attention",
    "BiasGelu",
    "DynamicQuantizeMatMul",
    "FastGelu",
    "QAttention",
    "SkipLayerNormalization",
}
ACTIVATION_OPERATORS = {"gelu": "BiasGelu", "gelu_new": "FastGelu", "gelu_fast": "FastGelu"}
# Seven bits, not eight: processors without VNNI add products of bytes in pairs of 16 bits, which
# overflow with eight. So every processor computes the same.
LARGEST_MATRIX_VALUE = 63
LARGEST_TABLE_VALUE = 127
WORDS = "embeddings.word_embeddings.weight"


def build_graph(weights: Weights, model: SentenceModel, precision: Precision) -> onnx.ModelProto:
    """Build the graph from `input_ids` (one row of them) to the unit-length `embedding`."""
    return _GraphBuilder(weights, model, precision).build()


class _GraphBuilder:
    """Collects nodes and initialisers; each method adds one part and names its output."""

    def __init__(self, weights: Weights, model: SentenceModel, precision: Precision) -> None:
        self._weights = weights
        self._model = model
        self._int8 = precision == "int8"
        # Models saved from a task head carry the encoder under a name such as `bert.`.
        self._prefix = next((name[: -len(WORDS)] for name in weights if name.endswith(WORDS)), "")
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def build(self) -> onnx.ModelProto:
        hidden = self._embeddings()
        for layer in range(self._model.layers):
            hidden = self._encoder_layer(f"encoder.layer.{layer}", hidden)
        self._pooled(hidden)
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT32, [1, "tokens"])
        shape = [1, self._model.dimensions]
        embedding = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, shape)
        graph = helper.make_graph(
            self._nodes, "sentence_model", [ids], [embedding], self._initializers
        )
        opsets = [helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def _embeddings(self) -> str:
        table = self._tensor(WORDS)
        if self._int8:
            quantized, scales = _quantized(table, LARGEST_TABLE_VALUE, axis=1)
            rows = self._add("Gather", self._given("words", quantized), "input_ids")
            row_scales = self._add("Gather", self._given("word_scales", scales), "input_ids")
            values = self._add("Cast", rows, to=TensorProto.FLOAT)
            words = self._add("Mul", values, row_scales)
        else:
            words = self._add("Gather", self._given("words", table), "input_ids")
        embedded = self._add("Add", words, self._positions())
        norm = self._layer_norm("embeddings.LayerNorm")
        return self._add("LayerNormalization", embedded, *norm, epsilon=self._model.epsilon)

    def _positions(self) -> str:
        """Give the rows of the first positions, one per token."""
        positions = self._tensor("embeddings.position_embeddings.weight")
        # Every token is of the first segment, so that segment's row belongs to each position.
        segments = self._tensor("embeddings.token_type_embeddings.weight")
        table = self._given("positions", positions + segments[0])
        tokens = self._add("Shape", "input_ids", start=1)
        return self._add("Slice", table, self._given("zero", np.array([0])), tokens)

    def _encoder_layer(self, name: str, hidden: str) -> str:
        attended = self._attention(f"{name}.attention.self", hidden)
        projected = self._product(f"{name}.attention.output.dense", attended)
        hidden = self._add_and_norm(f"{name}.attention.output", projected, hidden)
        inner = self._product(f"{name}.intermediate.dense", hidden)
        bias = self._weight(f"{name}.intermediate.dense.bias")
        activated = self._add(ACTIVATION_OPERATORS[self._model.activation], inner, bias)
        # Not quantised: what comes out of the activation has outliers, and rounding them to 256
        # steps costs as much accuracy as all the rest together.
        matrix = self._tensor(f"{name}.output.dense.weight").T
        outer = self._add("MatMul", activated, self._given(f"{name}.output.dense.weight", matrix))
        return self._add_and_norm(f"{name}.output", outer, hidden)

    def _attention(self, name: str, hidden: str) -> str:
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([self._tensor(f"{part}.weight").T for part in parts], axis=1)
        biases = np.concatenate([self._tensor(f"{part}.bias") for part in parts])
        bias = self._given(f"{name}.bias", biases)
        heads = self._model.heads
        if not self._int8:
            weight = self._given(f"{name}.weight", matrix)
            return self._add("Attention", hidden, weight, bias, num_heads=heads)
        weight, scales = self._given_quantized(f"{name}.weight", matrix)
        values, scale, zero = (f"{name}.{part}" for part in ("values", "scale", "zero"))
        self._nodes.append(
            helper.make_node("DynamicQuantizeLinear", [hidden], [values, scale, zero])
        )
        inputs = (values, weight, bias, scale, scales, "", zero)
        return self._add("QAttention", *inputs, num_heads=heads)

    def _product(self, name: str, value: str) -> str:
        matrix = self._tensor(f"{name}.weight").T
        if self._int8:
            weight, scales = self._given_quantized(f"{name}.weight", matrix)
            return self._add("DynamicQuantizeMatMul", value, weight, scales)
        return self._add("MatMul", value, self._given(f"{name}.weight", matrix))

    def _add_and_norm(self, name: str, value: str, skip: str) -> str:
        norm = self._layer_norm(f"{name}.LayerNorm")
        inputs = (value, skip, *norm, self._weight(f"{name}.dense.bias"))
        return self._add("SkipLayerNormalization", *inputs, epsilon=self._model.epsilon)

    def _pooled(self, hidden: str) -> None:
        if self._model.pooling == "mean":
            pooled = self._add("ReduceMean", hidden, axes=[1], keepdims=0)
        else:
            pooled = self._add("Gather", hidden, self._given("first", np.array(0)), axis=1)
        unit = helper.make_node("LpNormalization", [pooled], ["embedding"], axis=-1, p=2)
        self._nodes.append(unit)

    def _layer_norm(self, name: str) -> tuple[str, str]:
        return self._weight(f"{name}.weight"), self._weight(f"{name}.bias")

    def _weight(self, name: str) -> str:
        return self._given(name, self._tensor(name))

    def _tensor(self, name: str) -> NDArray[np.float32]:
        try:
            return self._weights[self._prefix + name].astype(np.float32, copy=False)
        except KeyError:
            raise ModelFilesError(f"the weights have no tensor {name!r}", ONLY_BERT) from None

    def _given_quantized(self, name: str, matrix: NDArray[np.float32]) -> tuple[str, str]:
        quantized, scales = _quantized(matrix, LARGEST_MATRIX_VALUE, axis=0)
        return self._given(name, quantized), self._given(f"{name}.scales", scales[0])

    def _given(self, name: str, values: NDArray[Any]) -> str:
        self._initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"{operator}_{len(self._nodes)}"
        domain = FUSED if operator in FUSED_OPERATORS else ""
        self._nodes.append(
            helper.make_node(operator, inputs, [output], domain=domain, **attributes)
        )
        return output


def _quantized(
    values: NDArray[np.float32], largest: int, axis: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Round to whole numbers up to `largest`, with one scale per row or column."""
    peaks = np.abs(values).max(axis=axis, keepdims=True)
    scales = np.where(peaks > 0, peaks / largest, 1.0).astype(np.float32)
    return np.round(values / scales).astype(np.int8), scales
