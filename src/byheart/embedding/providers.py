"""Chooses who makes the vectors.

The openers import what they need when they are called: numpy, tokenizers and ONNX Runtime together
take longer to import than most commands take to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from byheart.contracts import Embedder
from byheart.embedding.lazy_embedder import LazyEmbedder, Opener
from byheart.embedding.progress import Progress
from byheart.errors import SettingsError

Provider = Literal["auto", "onnx", "ollama", "openai", "hash", "none"]

PROBE_SECONDS = 1.0


def open_embedder(
    provider: Provider = "auto",
    *,
    cache_dir: Path,
    model: str | None = None,
    model_path: Path | None = None,
    model_sources: Sequence[str] = ("cache", "hub", "wheel"),
    threads: int | None = None,
    ollama_url: str = "http://localhost:11434",
    openai_base_url: str = "https://api.openai.com/v1",
    openai_api_key: str | None = None,
    timeout_seconds: float = 30.0,
    offline: bool = False,
    progress: Progress | None = None,
) -> LazyEmbedder:
    """Give an embedder that looks for its provider on first use: opening costs nothing."""
    onnx = partial(
        _open_onnx, model, model_path, cache_dir, model_sources, offline, threads, progress
    )
    openers: dict[str, tuple[Opener, ...]] = {
        # A model that is named for ONNX is not one of Ollama's.
        "auto": (onnx, partial(_open_ollama_at_hand, ollama_url, timeout_seconds)),
        "onnx": (onnx,),
        "ollama": (partial(_open_ollama, model, ollama_url, timeout_seconds),),
        "openai": (partial(_open_openai, model, openai_base_url, openai_api_key, timeout_seconds),),
        "hash": (_open_hash,),
        "none": (),
    }
    if provider not in openers:
        raise SettingsError(
            f"there is no embedding provider {provider!r}", f"use one of {', '.join(openers)}"
        )
    return LazyEmbedder(openers[provider])


def _open_onnx(
    model: str | None,
    model_path: Path | None,
    cache_dir: Path,
    model_sources: Sequence[str],
    offline: bool,
    threads: int | None,
    progress: Progress | None,
) -> Embedder:
    from byheart.embedding.model_library import model_label
    from byheart.embedding.model_sources import ModelSources
    from byheart.embedding.onnx_embedder import OnnxEmbedder

    embedder = OnnxEmbedder(
        model_label(model, model_path),
        cache_dir=cache_dir,
        sources=ModelSources(tuple(model_sources), offline=offline),
        threads=threads,
        progress=progress,
    )
    embedder.files()
    return embedder


def _open_ollama(model: str | None, url: str, timeout_seconds: float) -> Embedder:
    from byheart.embedding.json_requests import JsonRequests
    from byheart.embedding.ollama import DEFAULT_MODEL, ollama_embedder

    requests = JsonRequests(timeout_seconds=timeout_seconds)
    embedder = ollama_embedder(model or DEFAULT_MODEL, url=url, requests=requests)
    embedder.dimensions  # noqa: B018 (asking for them shows that the model is there)
    return embedder


def _open_ollama_at_hand(url: str, timeout_seconds: float) -> Embedder:
    from byheart.embedding.ollama import check_answers

    check_answers(url, PROBE_SECONDS)
    return _open_ollama(None, url, timeout_seconds)


def _open_openai(
    model: str | None, url: str, api_key: str | None, timeout_seconds: float
) -> Embedder:
    from byheart.embedding.json_requests import JsonRequests
    from byheart.embedding.openai import DEFAULT_MODEL, openai_embedder

    requests = JsonRequests(timeout_seconds=timeout_seconds)
    return openai_embedder(model or DEFAULT_MODEL, api_key=api_key, url=url, requests=requests)


def _open_hash() -> Embedder:
    from byheart.embedding.hash_embedder import HashEmbedder

    return HashEmbedder()
