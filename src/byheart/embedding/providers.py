"""Choose the provider that makes the vectors.

The openers import their libraries when they are called, because importing numpy, tokenizers and
ONNX Runtime takes longer than most commands take to run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from byheart.contracts import Embedder, EmbedderSpec
from byheart.embedding.lazy_embedder import LazyEmbedder, Opener
from byheart.embedding.progress import Progress
from byheart.errors import Do, EmbedderUnavailable, Hint, SettingsError

Provider = Literal["auto", "onnx", "ollama", "openai", "voyage", "hash", "none"]

PROBE_SECONDS = 1.0
DEFAULT_HASH = "hash-384"


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
    voyage_api_key: str | None = None,
    parallel_requests: int = 4,
    timeout_seconds: float = 30.0,
    offline: bool = False,
    progress: Progress | None = None,
) -> LazyEmbedder:
    """Return an embedder that opens its provider on first use, so this call costs nothing."""
    files = (model, model_path, cache_dir, model_sources, offline)
    served = (timeout_seconds, parallel_requests)
    onnx = partial(_open_onnx, *files, threads, progress)
    openers: dict[str, tuple[Opener, ...]] = {
        # `model` names an ONNX model here, so it is not passed to Ollama.
        "auto": (onnx, partial(_open_ollama_at_hand, ollama_url, *served)),
        "onnx": (onnx,),
        "ollama": (partial(_open_ollama, model, ollama_url, *served),),
        "openai": (partial(_open_openai, model, openai_base_url, openai_api_key, *served),),
        "voyage": (partial(_open_voyage, model, voyage_api_key, *served),),
        "hash": (partial(_open_hash, model),),
        "none": (),
    }
    if provider not in openers:
        raise SettingsError(
            f"there is no embedding provider {provider!r}", f"use one of {', '.join(openers)}"
        )
    chosen = ("onnx", "ollama") if provider == "auto" else (provider,)
    specs = [partial(_spec, each, model, model_path) for each in chosen]
    if onnx in openers[provider]:
        check = partial(_check_downloaded, *files)
        return LazyEmbedder(openers[provider], specs=specs, check_at_hand=check)
    return LazyEmbedder(openers[provider], specs=specs)


def _spec(provider: str, model: str | None, model_path: Path | None) -> EmbedderSpec:
    """Name the model in full, so that a later change of the defaults does not affect it."""
    if provider == "onnx":
        from byheart.embedding.model_library import model_label

        return EmbedderSpec(provider, model_label(model, model_path))
    if provider == "ollama":
        from byheart.embedding.ollama import DEFAULT_MODEL as DEFAULT_OLLAMA

        return EmbedderSpec(provider, model or DEFAULT_OLLAMA)
    if provider == "openai":
        from byheart.embedding.openai import DEFAULT_MODEL as DEFAULT_OPENAI

        return EmbedderSpec(provider, model or DEFAULT_OPENAI)
    if provider == "voyage":
        from byheart.embedding.voyage import DEFAULT_MODEL as DEFAULT_VOYAGE

        return EmbedderSpec(provider, model or DEFAULT_VOYAGE)
    return EmbedderSpec(provider, (model or DEFAULT_HASH) if provider == "hash" else "")


def _check_downloaded(
    model: str | None,
    model_path: Path | None,
    cache_dir: Path,
    model_sources: Sequence[str],
    offline: bool,
) -> None:
    """Raise if first use would download the model."""
    from byheart.embedding.model_cache import find_model
    from byheart.embedding.model_library import model_label
    from byheart.embedding.model_sources import ModelSources

    label = model_label(model, model_path)
    sources = ModelSources(tuple(model_sources), offline=offline)
    if sources.would_download(label) and not find_model(label, cache_dir):
        raise EmbedderUnavailable(
            f"the model {label} is not downloaded yet",
            Hint("get it with: ", Do("model download")),
        )


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


def _open_ollama(model: str | None, url: str, timeout_seconds: float, parallel: int) -> Embedder:
    from byheart.embedding.json_requests import JsonRequests
    from byheart.embedding.ollama import DEFAULT_MODEL, ollama_embedder

    requests = JsonRequests(timeout_seconds=timeout_seconds, parallel=parallel)
    embedder = ollama_embedder(model or DEFAULT_MODEL, url=url, requests=requests)
    embedder.dimensions  # noqa: B018 (the server answers only if it has the model)
    return embedder


def _open_ollama_at_hand(url: str, timeout_seconds: float, parallel: int) -> Embedder:
    from byheart.embedding.ollama import check_answers

    check_answers(url, PROBE_SECONDS)
    return _open_ollama(None, url, timeout_seconds, parallel)


def _open_openai(
    model: str | None, url: str, api_key: str | None, timeout_seconds: float, parallel: int
) -> Embedder:
    from byheart.embedding.json_requests import JsonRequests
    from byheart.embedding.openai import DEFAULT_MODEL, openai_embedder

    requests = JsonRequests(timeout_seconds=timeout_seconds, parallel=parallel)
    return openai_embedder(model or DEFAULT_MODEL, api_key=api_key, url=url, requests=requests)


def _open_voyage(
    model: str | None, api_key: str | None, timeout_seconds: float, parallel: int
) -> Embedder:
    from byheart.embedding.json_requests import JsonRequests
    from byheart.embedding.voyage import DEFAULT_MODEL, voyage_embedder

    requests = JsonRequests(timeout_seconds=timeout_seconds, parallel=parallel)
    return voyage_embedder(model or DEFAULT_MODEL, api_key=api_key, requests=requests)


def _open_hash(model: str | None) -> Embedder:
    from byheart.embedding.hash_embedder import HashEmbedder

    dimensions = re.fullmatch(r"hash-([1-9][0-9]{0,3})", model or DEFAULT_HASH)
    if dimensions is None:
        raise EmbedderUnavailable(
            f"the hash embedder has no model {model!r}",
            "leave embedding_model empty, or name its dimensions: hash-64",
        )
    return HashEmbedder(int(dimensions[1]))
