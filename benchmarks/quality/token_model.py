"""The store's own model with what it holds for each token, so that other poolings can be tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from byheart.embedding.model_tokens import ModelTokens
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.settings import load_settings

Figures = NDArray[np.float32]
# What the smoothed weight of a token is half of: as frequent as one in a thousand.
_HALF = 1e-3


class Tokens(NamedTuple):
    """The tokens of a text, special ones too, and the state that the last layer has for each."""

    ids: Sequence[int]
    states: Figures


@dataclass(frozen=True, slots=True)
class Pooling:
    """How much each token counts in the vector of a text."""

    name: str
    weigh: Callable[[Sequence[int]], Figures]

    def pool(self, tokens: Tokens) -> Figures:
        """Give the weighted mean, of unit length."""
        together: Figures = self.weigh(tokens.ids) @ tokens.states
        unit: Figures = together / np.linalg.norm(together)
        return unit


def _first_alone(ids: Sequence[int]) -> Figures:
    return np.eye(1, len(ids), dtype=np.float32)[0]


MEAN = Pooling("mean", lambda ids: np.ones(len(ids), np.float32))
FIRST = Pooling("first token", _first_alone)


class TokenModel:
    """Run the model that stores use by default, one text at a time, on one thread."""

    def __init__(self) -> None:
        self.embedder = OnnxEmbedder(cache_dir=load_settings().cache_dir)
        files = self.embedder.files()
        self._tokens = ModelTokens(files.tokenizer)
        self._session = _open_with_states(files.graph, files.shape.dimensions)

    def ids(self, text: str) -> list[int]:
        """Number the tokens of a text, with those that the model wants around it."""
        before, after = self._tokens.special_ids
        return [*before, *self._tokens.ids(text), *after]

    def run(self, text: str) -> Tokens:
        """Give the states of a text; nothing but the model's positions bounds its length."""
        ids = self.ids(text)
        states = self._session.run(["states"], {"input_ids": np.array([ids], np.int32)})[0][0]
        return Tokens(ids, states)

    def rare_first(self, name: str, texts: Iterable[str]) -> Pooling:
        """Let a token count the less, the more often these texts have it."""
        counts = Counter(number for text in texts for number in self.ids(text))
        total = sum(counts.values())

        def weigh(ids: Sequence[int]) -> Figures:
            return np.array([_HALF / (_HALF + counts[each] / total) for each in ids], np.float32)

        return Pooling(f"rare tokens first, {name}", weigh)


def _open_with_states(graph: Path, dimensions: int) -> Any:
    import onnxruntime

    model = onnx.load(graph)
    made_by = {output: node for node in model.graph.node for output in node.output}
    pooled = made_by["embedding"].input[0]
    model.graph.node.append(helper.make_node("Identity", [made_by[pooled].input[0]], ["states"]))
    model.graph.output.append(
        helper.make_tensor_value_info("states", TensorProto.FLOAT, [1, "tokens", dimensions])
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
