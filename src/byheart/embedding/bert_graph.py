"""Build the ONNX graph of a BERT-family sentence model straight from its weights.

The graph uses ONNX Runtime's own fused operators. An exporter would need torch, and would depend
on an optimiser pass to find these operators. The graph takes one text at a time, so it needs no
padding and no mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from byheart.embedding.onnx_format import (
    FLOAT,
    INT32,
    Attribute,
    Graph,
    Node,
    Value,
    write_model,
)
from byheart.embedding.sentence_model import ONLY_BERT, SentenceModel
from byheart.errors import ModelFilesError

Weights = Mapping[str, NDArray[Any]]
Matrix = NDArray[np.float32]
Precision = Literal["int8", "fp32"]

# The oldest versions that have every operator used here, so that older runtimes can read the file.
ONNX_OPSET = 17
IR_VERSION = 8
FUSED = "com.microsoft"
FUSED_OPERATORS = {
    "Attention",
    "DynamicQuantizeMatMul",
    "FastGelu",
    "Gelu",
    "QAttention",
}
ACTIVATION_OPERATORS = {"gelu": "Gelu", "gelu_new": "FastGelu", "gelu_fast": "FastGelu"}
# Seven bits, not eight: processors without VNNI add pairs of byte products in 16 bits, and eight
# bits would overflow there. With seven bits, every processor computes the same vectors.
LARGEST_MATRIX_VALUE = 63
LARGEST_TABLE_VALUE = 127
# A channel of a feed-forward block carries outliers if its largest weight is this many times that
# of the median channel. all-MiniLM-L6-v2 has one or two such channels in each layer but the last,
# mostly with a factor above 20.
LOUD = 10
WORDS = "embeddings.word_embeddings.weight"
INPUT = "input_ids"


def build_graph(weights: Weights, model: SentenceModel, precision: Precision) -> bytes:
    """Build the graph from `input_ids` (one row of them) to the unit-length `embedding`.

    The graph of a cross-encoder leads from two rows, of token ids and of segments, to a `score`.
    Return it in ONNX's file format.
    """
    return _GraphBuilder(weights, model, precision).build()


class _GraphBuilder:
    """Collect nodes and tensors; each method adds one part and returns its output's name."""

    def __init__(self, weights: Weights, model: SentenceModel, precision: Precision) -> None:
        self._weights = weights
        self._model = model
        self._int8 = precision == "int8"
        # A model saved together with a task head has its encoder under a prefix such as `bert.`.
        self._prefix = next((name[: -len(WORDS)] for name in weights if name.endswith(WORDS)), "")
        self._nodes: list[Node] = []
        self._tensors: dict[str, NDArray[Any]] = {}
        # The rows of token ids and, in a cross-encoder, of segments.
        self._ids, self._segments = INPUT, ""

    def build(self) -> bytes:
        if self._model.pooling == "score":
            self._ids = self._row(0)
            self._segments = self._row(1)
        hidden = self._embeddings()
        for layer in range(self._model.layers):
            hidden = self._encoder_layer(f"encoder.layer.{layer}", hidden)
        if self._model.pooling == "score":
            self._scored(hidden)
            rows, made = 2, Value("score", FLOAT, (1, 1))
        else:
            self._pooled(hidden)
            rows, made = 1, Value("embedding", FLOAT, (1, self._model.dimensions))
        ids = Value(INPUT, INT32, (rows, "tokens"))
        graph = Graph("sentence_model", self._nodes, self._tensors, (ids,), (made,))
        return write_model(graph, IR_VERSION, {"": ONNX_OPSET, FUSED: 1})

    def _row(self, number: int) -> str:
        return self._add("Gather", INPUT, self._given(f"row_{number}", np.array([number])), axis=0)

    def _embeddings(self) -> str:
        table = self._tensor(WORDS)
        if self._int8:
            quantized, scales = _quantized(table, LARGEST_TABLE_VALUE, axis=1)
            rows = self._add("Gather", self._given("words", quantized), self._ids)
            row_scales = self._add("Gather", self._given("word_scales", scales), self._ids)
            values = self._add("Cast", rows, to=FLOAT)
            words = self._add("Mul", values, row_scales)
        else:
            words = self._add("Gather", self._given("words", table), self._ids)
        embedded = self._add("Add", words, self._positions())
        if self._segments:
            embedded = self._add("Add", embedded, self._segment_rows())
        norm = self._layer_norm("embeddings.LayerNorm")
        return self._add("LayerNormalization", embedded, *norm, epsilon=self._model.epsilon)

    def _positions(self) -> str:
        """Add the position rows, one per token, and return their name."""
        positions = self._tensor("embeddings.position_embeddings.weight")
        positions = positions[self._model.first_position :]
        # Most tokens belong to the first segment, so its row is added to every position.
        segments = self._tensor("embeddings.token_type_embeddings.weight")
        table = self._given("positions", positions + segments[0])
        tokens = self._add("Shape", self._ids, start=1)
        return self._add("Slice", table, self._given("zero", np.array([0])), tokens)

    def _segment_rows(self) -> str:
        """Add, for each token, how far its segment is from the first one, and return their name."""
        segments = self._tensor("embeddings.token_type_embeddings.weight")
        return self._add("Gather", self._given("segments", segments - segments[0]), self._segments)

    def _encoder_layer(self, name: str, hidden: str) -> str:
        attended = self._attention(f"{name}.attention.self", hidden)
        dense = f"{name}.attention.output.dense"
        projected = self._product(dense, attended, *self._dense(dense))
        hidden = self._add_and_norm(f"{name}.attention.output", projected, hidden)
        outer = self._feed_forward(name, hidden)
        return self._add_and_norm(f"{name}.output", outer, hidden)

    def _feed_forward(self, name: str, hidden: str) -> str:
        """Widen, activate and narrow again, in bytes except for the channels with outliers.

        If the outliers were rounded to 256 steps together with the other activations, these
        would lose as much accuracy as through all other rounding. So the few channels with
        outliers get small matrix products of their own, in floats.
        """
        widen, shift = self._dense(f"{name}.intermediate.dense")
        narrow, bias = self._dense(f"{name}.output.dense")
        peaks = np.abs(narrow).max(axis=1)
        loud = peaks > LOUD * np.median(peaks)
        inner = self._product(f"{name}.inner", hidden, widen[:, ~loud], shift[~loud])
        outer = self._product(f"{name}.outer", self._activated(inner), narrow[~loud], bias)
        if not loud.any():
            return outer
        inner = self._exact_product(f"{name}.loud_inner", hidden, widen[:, loud], shift[loud])
        apart = self._exact_product(f"{name}.loud_outer", self._activated(inner), narrow[loud])
        return self._add("Add", outer, apart)

    def _activated(self, value: str) -> str:
        return self._add(ACTIVATION_OPERATORS[self._model.activation], value)

    def _attention(self, name: str, hidden: str) -> str:
        parts = [self._dense(f"{name}.{part}") for part in ("query", "key", "value")]
        matrix = np.concatenate([matrix for matrix, _ in parts], axis=1)
        bias = self._given(f"{name}.bias", np.concatenate([bias for _, bias in parts]))
        heads = self._model.heads
        if not self._int8:
            weight = self._given(f"{name}.weight", matrix)
            return self._add("Attention", hidden, weight, bias, num_heads=heads)
        weight, scales = self._given_quantized(f"{name}.weight", matrix)
        values, scale, zero = (f"{name}.{part}" for part in ("values", "scale", "zero"))
        self._nodes.append(Node("DynamicQuantizeLinear", (hidden,), (values, scale, zero), {}))
        inputs = (values, weight, bias, scale, scales, "", zero)
        return self._add("QAttention", *inputs, num_heads=heads)

    def _product(self, name: str, value: str, matrix: Matrix, bias: Matrix) -> str:
        if not self._int8:
            return self._exact_product(name, value, matrix, bias)
        weight, scales = self._given_quantized(f"{name}.weight", matrix)
        inputs = (value, weight, scales, "", self._given(f"{name}.bias", bias))
        return self._add("DynamicQuantizeMatMul", *inputs)

    def _exact_product(
        self, name: str, value: str, matrix: Matrix, bias: Matrix | None = None
    ) -> str:
        product = self._add("MatMul", value, self._given(f"{name}.weight", matrix))
        if bias is None:
            return product
        return self._add("Add", product, self._given(f"{name}.bias", bias))

    def _add_and_norm(self, name: str, value: str, skip: str) -> str:
        # Two operators, because the fused one (SkipLayerNormalization) takes twice as long.
        added = self._add("Add", value, skip)
        norm = self._layer_norm(f"{name}.LayerNorm")
        return self._add("LayerNormalization", added, *norm, epsilon=self._model.epsilon)

    def _pooled(self, hidden: str) -> None:
        if self._model.pooling == "mean":
            pooled = self._add("ReduceMean", hidden, axes=[1], keepdims=0)
        else:
            pooled = self._add("Gather", hidden, self._given("first", np.array(0)), axis=1)
        self._nodes.append(Node("LpNormalization", (pooled,), ("embedding",), {"axis": -1, "p": 2}))

    def _scored(self, hidden: str) -> None:
        """Turn the first token's vector into a score, by the head of the model's family."""
        first = self._add("Gather", hidden, self._given("first", np.array(0)), axis=1)
        if f"{self._prefix}pooler.dense.weight" in self._weights:
            dense, last = "pooler.dense", "classifier"
        else:
            dense, last = "classifier.dense", "classifier.out_proj"
        inner = self._exact_product(dense, first, *self._dense(dense))
        matrix, bias = self._dense(last)
        if matrix.shape[1] != 1:
            raise ModelFilesError(
                f"the model gives {matrix.shape[1]} scores for a pair of texts",
                "name a cross-encoder that gives one",
            )
        product = self._add("MatMul", self._add("Tanh", inner), self._given(last, matrix))
        self._nodes.append(
            Node("Add", (product, self._given(f"{last}.bias", bias)), ("score",), {})
        )

    def _layer_norm(self, name: str) -> tuple[str, str]:
        return self._weight(f"{name}.weight"), self._weight(f"{name}.bias")

    def _dense(self, name: str) -> tuple[Matrix, Matrix]:
        return self._tensor(f"{name}.weight").T, self._tensor(f"{name}.bias")

    def _weight(self, name: str) -> str:
        return self._given(name, self._tensor(name))

    def _tensor(self, name: str) -> Matrix:
        # The head of a model is not part of its encoder, so it has no prefix.
        full = name if name.startswith("classifier") else self._prefix + name
        try:
            return self._weights[full].astype(np.float32, copy=False)
        except KeyError:
            raise ModelFilesError(f"the weights have no tensor {name!r}", ONLY_BERT) from None

    def _given_quantized(self, name: str, matrix: Matrix) -> tuple[str, str]:
        quantized, scales = _quantized(matrix, LARGEST_MATRIX_VALUE, axis=0)
        return self._given(name, quantized), self._given(f"{name}.scales", scales[0])

    def _given(self, name: str, values: NDArray[Any]) -> str:
        self._tensors[name] = values
        return name

    def _add(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        output = f"{operator}_{len(self._nodes)}"
        domain = FUSED if operator in FUSED_OPERATORS else ""
        self._nodes.append(Node(operator, inputs, (output,), attributes, domain))
        return output


def _quantized(values: Matrix, largest: int, axis: int) -> tuple[NDArray[np.int8], Matrix]:
    """Round to whole numbers up to `largest`, with one scale per row or column."""
    peaks = np.abs(values).max(axis=axis, keepdims=True)
    scales = np.where(peaks > 0, peaks / largest, 1.0).astype(np.float32)
    return np.round(values / scales).astype(np.int8), scales
