"""Models as multilingual-e5 has them: a vocabulary of SentencePiece, weights of BERT or XLM-R."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
PIECES = (
    "▁",
    "▁tea",
    "▁que",
    "ry",
    "▁passage",
    ":",
    "te",
    "a",
    "чай",
    "茶",
    "ชา",
    "('",
    "e",
    "t",
    ".",
)


def unigram_tokenizer() -> Tokenizer:
    """Give a tokenizer that is made as XLM-RoBERTa's."""
    scores = [
        *((each, 0.0) for each in SPECIAL),
        *((each, -3.0 - n / 10) for n, each in enumerate(PIECES)),
    ]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.enable_truncation(8)
    return tokenizer


def write_model(folder: Path, weights: dict[str, Any], tokenizer: Tokenizer, **config: Any) -> Path:
    """Write a folder as intfloat publishes its models."""
    (folder / "1_Pooling").mkdir(parents=True)
    shape = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "position_embedding_type": "absolute"}
    (folder / "config.json").write_text(json.dumps({**shape, **config}))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 512}')
    pooled = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooled))
    save_file(weights, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def random_weights(
    words: int, size: int, inner: int, layers: int, positions: int, segments: int, prefix: str = ""
) -> dict[str, Any]:
    """Give random weights of this shape, in half precision."""
    random = np.random.default_rng(3)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, size),
        "embeddings.position_embeddings.weight": (positions, size),
        "embeddings.token_type_embeddings.weight": (segments, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    for layer in range(layers):
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
        prefix + name: (
            random.standard_normal(shape, np.float32) * 0.1 + name.endswith("LayerNorm.weight")
        ).astype(np.float16)
        for name, shape in shapes.items()
    }
