"""Chooses who makes the vectors, and keeps working when nobody can."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from byheart.contracts import Embedder, Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.errors import EmbedderUnavailable, EmbeddingError, SettingsError

if TYPE_CHECKING:
    from byheart.embedding.hub_download import Progress

Provider = Literal["auto", "onnx", "ollama", "openai", "hash", "none"]
Opener = Callable[[], Embedder]
Answer = TypeVar("Answer")

QUERY_CACHE_ENTRIES = 1000
RETRY_AFTER_SECONDS = 60.0
PROBE_SECONDS = 1.0


def open_embedder(
    provider: Provider = "auto",
    *,
    cache_dir: Path,
    model: str | None = None,
    model_path: Path | None = None,
    model_sources: Sequence[str] = ("hub", "wheel"),
    threads: int | None = None,
    ollama_url: str | None = None,
    openai_base_url: str | None = None,
    openai_api_key: str | None = None,
    timeout_seconds: float = 30.0,
    offline: bool = False,
    progress: Progress | None = None,
) -> LazyEmbedder:
    """Give an embedder that looks for its provider on first use: opening costs nothing.

    Each opener below imports what it needs when it is called: numpy, tokenizers and ONNX Runtime
    together take longer to import than a whole command of Byheart should.
    """

    def onnx() -> Embedder:
        from byheart.embedding.model_library import model_label
        from byheart.embedding.model_sources import ModelSources
        from byheart.embedding.onnx_embedder import OnnxEmbedder

        embedder = OnnxEmbedder(
            model_label(model, model_path),
            cache_dir=cache_dir,
            sources=ModelSources(order=tuple(model_sources), offline=offline),
            threads=threads,
            progress=progress,
        )
        embedder.files()
        return embedder

    def ollama(timeout_seconds: float = timeout_seconds, retries: int = 3) -> Embedder:
        from byheart.embedding.json_requests import JsonRequests
        from byheart.embedding.ollama import DEFAULT_MODEL, DEFAULT_URL, ollama_embedder

        requests = JsonRequests(timeout_seconds=timeout_seconds)
        probe = JsonRequests(timeout_seconds=PROBE_SECONDS, retries=0)
        url = ollama_url or DEFAULT_URL
        dimensions = ollama_embedder(model or DEFAULT_MODEL, url=url, requests=probe).dimensions
        return ollama_embedder(
            model or DEFAULT_MODEL, url=url, dimensions=dimensions, requests=requests
        )
