"""A tiny random BERT: a real model that takes no time to build, load and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

TINY = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]


def tiny_weights() -> dict[str, Any]:
    """Give the random weights of a BERT with two layers."""
    random = np.random.default_rng(7)
    size, inner = TINY["hidden_size"], TINY["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), size),
        "embeddings.position_embeddings.weight": (TINY["max_position_embeddings"], size),
        "embeddings.token_type_embeddings.weight": (2, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    for layer in range(TINY["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{name}.attention.{part}.weight"] = (size, size)
            shapes[f"{name}.attention.{part}.bias"] = (size,)
        shapes[f"{name}.intermediate.dense.weight"] = (inner, size)
        shapes[f"{name}.intermediate.dense.bias"] = (inner,)
        shapes[f"{name}.output.dense.weight"] = (size, inner)
        shapes[f"{name}.output.dense.bias"] = (size,)
        for part in ("attention.output", "output"):
            shapes[f"{name}.{part}.LayerNorm.weight"] = (size,)
            shapes[f"{name}.{part}.LayerNorm.bias"] = (size,)
    return {
        name: (random.normal(0, 0.2, shape) + name.endswith("LayerNorm.weight")).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_tiny(
    folder: Path, weights: dict[str, Any], *, pooling: str = "mean_tokens", **config: Any
) -> Path:
    """Write a sentence-transformers folder of the tiny model."""
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**TINY, **config}))
    pooled = {f"pooling_mode_{pooling}": True, "word_embedding_dimension": 32}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooled))
    save_file(weights, folder / "model.safetensors")
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def tiny_tokenizer() -> Tokenizer:
    """Give a tokenizer that knows letters."""
    vocabulary = {token: index for index, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(8)  # as all-MiniLM-L6-v2's own file does, at 128
    tokenizer.enable_padding(length=8)
    return tokenizer
