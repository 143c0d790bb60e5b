"""BERT in plain numpy: what the ONNX graph is checked against.

Written from the paper, sharing nothing with `byheart`.
"""

from __future__ import annotations

import math

import numpy as np


def embed(weights, config, ids, pooling):
    """Embed one sequence of token ids; with the pooling `first`, give the first token's vector."""
    heads, size = (
        config["num_attention_heads"],
        config["hidden_size"] // config["num_attention_heads"],
    )

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def dense(x, name):
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        q, k, v = (
            dense(x, f"{name}.attention.self.{part}").reshape(len(ids), heads, size).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = q @ k.swapaxes(1, 2) / math.sqrt(size)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        attended = (scores @ v).swapaxes(0, 1).reshape(len(ids), -1)
        x = norm(
            x + dense(attended, f"{name}.attention.output.dense"),
            f"{name}.attention.output.LayerNorm",
        )
        inner = dense(x, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = norm(x + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    if pooling == "first":
        return x[0]
    pooled = x.mean(0) if pooling == "mean" else x[0]
    return (pooled / np.linalg.norm(pooled)).astype(np.float32)
