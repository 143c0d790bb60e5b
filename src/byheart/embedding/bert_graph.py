"""Builds the ONNX graph of a BERT-family sentence model straight from its weights.

ONNX Runtime's own fused operators are used instead of an exporter: no torch, and no optimiser pass
to hope for. Unpadded lengths, not masks, keep padding out of the attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from byheart.embedding.sentence_model import SentenceModel
from byheart.errors import ModelFilesError

Weights = Mapping[str, NDArray[Any]]

# The oldest pair that has everything used here, so that older runtimes can read the file too.
ONNX_OPSET = 17
IR_VERSION = 8
FUSED = "com.microsoft"
ACTIVATION_OPERATORS = {"gelu": "BiasGelu", "gelu_new": "FastGelu", "gelu_fast": "FastGelu"}


def build_graph(weights: Weights, model: SentenceModel) -> onnx.ModelProto:
    """Build the graph from `input_ids` and `attention_mask` to the unit-length `embedding`."""
    return _GraphBuilder(weights, model).build()


class _GraphBuilder:
    """Collects nodes and initialisers; each method adds one part and names its output."""

    def __init__(self, weights: Weights, model: SentenceModel) -> None:
        self._weights = weights
        self._model = model
        # Models saved from a task head carry the encoder under a name such as `bert.`.
        marker = "embeddings.word_embeddings.weight"
        self._prefix = next((name[: -len(marker)] for name in weights if name.endswith(marker)), "")
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def build(self) -> onnx.ModelProto:
        hidden, lengths = self._embeddings()
        for layer in range(self._model.layers):
            hidden = self._encoder_layer(f"encoder.layer.{layer}", hidden, lengths)
        self._pooled(hidden)
        graph = helper.make_graph(
            self._nodes,
            "sentence_model",
            [
                helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "sequence"])
                for name in ("input_ids", "attention_mask")
            ],
            [
                helper.make_tensor_value_info(
                    "embedding", TensorProto.FLOAT, ["batch", self._model.dimensions]
                )
            ],
            self._initializers,
        )
        opsets = [helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def _embeddings(self) -> tuple[str, str]:
        hidden, lengths = "embeddings", "lengths"
        inputs = [
            "input_ids",
            "",
            self._weight("embeddings.word_embeddings.weight"),
            self._positions(),
            "",
            *self._layer_norm("embeddings.LayerNorm"),
            "attention_mask",
        ]
        self._add("EmbedLayerNormalization", inputs, [hidden, lengths], epsilon=self._model.epsilon)
        return hidden, lengths

    def _encoder_layer(self, name: str, hidden: str, lengths: str) -> str:
        attended = self._attention(f"{name}.attention.self", hidden, lengths)
        projected = self._matmul(f"{name}.attention.output.dense", attended)
        hidden = self._add_and_norm(f"{name}.attention.output", projected, hidden)
        inner = self._matmul(f"{name}.intermediate.dense", hidden)
        activated = self._add(
            ACTIVATION_OPERATORS[self._model.activation],
            [inner, self._weight(f"{name}.intermediate.dense.bias")],
            [f"{name}.activated"],
        )
        outer = self._matmul(f"{name}.output.dense", activated)
        return self._add_and_norm(f"{name}.output", outer, hidden)

    def _attention(self, name: str, hidden: str, lengths: str) -> str:
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        stacked = np.concatenate([self._tensor(f"{part}.weight").T for part in parts], axis=1)
        biases = np.concatenate([self._tensor(f"{part}.bias") for part in parts])
        return self._add(
            "Attention",
            [
                hidden,
                self._initializer(f"{name}.weight", stacked),
                self._initializer(f"{name}.bias", biases),
                lengths,
            ],
            [f"{name}.attended"],
            num_heads=self._model.heads,
        )

    def _matmul(self, name: str, value: str) -> str:
        matrix = self._initializer(f"{name}.weight", self._tensor(f"{name}.weight").T)
        return self._add("MatMul", [value, matrix], [f"{name}.product"], domain="")

    def _add_and_norm(self, name: str, value: str, skip: str) -> str:
        inputs = [
            value,
            skip,
            *self._layer_norm(f"{name}.LayerNorm"),
            self._weight(f"{name}.dense.bias"),
        ]
        return self._add(
            "SkipLayerNormalization", inputs, [f"{name}.normed"], epsilon=self._model.epsilon
        )

    def _pooled(self, hidden: str) -> None:
        if self._model.pooling == "mean":
            # A sum will do: the number of tokens divides out when the vector is made unit length.
            self._add("Cast", ["attention_mask"], ["kept"], domain="", to=TensorProto.FLOAT)
            axis = self._initializer("sum_axis", np.array([1]))
            self._add("Unsqueeze", ["kept", axis], ["selector"], domain="")
            self._add("MatMul", ["selector", hidden], ["pooled_row"], domain="")
            self._add("Squeeze", ["pooled_row", axis], ["pooled"], domain="")
        else:
            first = self._initializer("first_token", np.array(0))
            self._add("Gather", [hidden, first], ["pooled"], domain="", axis=1)
        self._add("LpNormalization", ["pooled"], ["embedding"], domain="", axis=-1, p=2)

    def _layer_norm(self, name: str) -> tuple[str, str]:
        return self._weight(f"{name}.weight"), self._weight(f"{name}.bias")

    def _positions(self) -> str:
        # Every token is of the first segment, so that segment's row belongs to each position.
        positions = self._tensor("embeddings.position_embeddings.weight")
        segments = self._tensor("embeddings.token_type_embeddings.weight")
        return self._initializer("embeddings.positions", positions + segments[0])

    def _weight(self, name: str) -> str:
        return self._initializer(name, self._tensor(name))

    def _tensor(self, name: str) -> NDArray[np.float32]:
        try:
            return self._weights[self._prefix + name].astype(np.float32, copy=False)
        except KeyError:
            raise ModelFilesError(
                f"the model's weights have no tensor {name!r}",
                "only BERT-family sentence-transformers models can be loaded",
            ) from None

    def _initializer(self, name: str, values: NDArray[Any]) -> str:
        self._initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _add(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str],
        *,
        domain: str = FUSED,
        **attributes: Any,
    ) -> str:
        self._nodes.append(
            helper.make_node(operator, inputs, outputs, outputs[0], domain=domain, **attributes)
        )
        return outputs[0]
