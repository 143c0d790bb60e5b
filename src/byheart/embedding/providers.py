"""Chooses who makes the vectors, and keeps working when nobody can."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from byheart.contracts import Embedder, Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.progress import Progress
from byheart.errors import EmbedderUnavailable, EmbeddingError, SettingsError

Provider = Literal["auto", "onnx", "ollama", "openai", "hash", "none"]
Opener = Callable[[], Embedder]

QUERY_CACHE_ENTRIES = 1000
RETRY_AFTER_SECONDS = 60.0
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

    # The openers import what they need when they are called: numpy, tokenizers and ONNX Runtime
    # together take longer to import than most commands take to run.
    def onnx() -> Embedder:
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

    def ollama(name: str | None = model) -> Embedder:
        from byheart.embedding.json_requests import JsonRequests
        from byheart.embedding.ollama import DEFAULT_MODEL, ollama_embedder

        requests = JsonRequests(timeout_seconds=timeout_seconds)
        embedder = ollama_embedder(name or DEFAULT_MODEL, url=ollama_url, requests=requests)
        embedder.dimensions  # noqa: B018 (asking for them shows that the model is there)
        return embedder

    def ollama_at_hand() -> Embedder:
        from byheart.embedding.ollama import check_answers

        check_answers(ollama_url, PROBE_SECONDS)
        return ollama(None)  # a model named for ONNX is not one of Ollama's

    def openai() -> Embedder:
        from byheart.embedding.json_requests import JsonRequests
        from byheart.embedding.openai import DEFAULT_MODEL, openai_embedder

        requests = JsonRequests(timeout_seconds=timeout_seconds)
        return openai_embedder(
            model or DEFAULT_MODEL, api_key=openai_api_key, url=openai_base_url, requests=requests
        )

    def hashing() -> Embedder:
        from byheart.embedding.hash_embedder import HashEmbedder

        return HashEmbedder()

    openers: dict[str, tuple[Opener, ...]] = {
        "auto": (onnx, ollama_at_hand),
        "onnx": (onnx,),
        "ollama": (ollama,),
        "openai": (openai,),
        "hash": (hashing,),
        "none": (),
    }
    if provider not in openers:
        raise SettingsError(
            f"there is no embedding provider {provider!r}", f"use one of {', '.join(openers)}"
        )
    return LazyEmbedder(openers[provider])


class LazyEmbedder:
    """An embedder that is found on first use, by the first opener that succeeds.

    A provider that is away is not asked again for a minute, so that it does not hold up every
    save and search; until then each call fails at once with the reason.
    """

    def __init__(
        self, openers: Sequence[Opener], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._openers = openers
        self._clock = clock
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._failure: EmbedderUnavailable | None = None
        self._failed_at = 0.0
        self._query_vector = lru_cache(QUERY_CACHE_ENTRIES)(self._embed_query)

    @property
    def name(self) -> str:
        """Name the model."""
        return self._found().name

    @property
    def dimensions(self) -> int:
        """Give the length of every vector."""
        return self._found().dimensions

    @property
    def window_tokens(self) -> int:
        """Give how many tokens of text one vector can see."""
        return self._found().window_tokens

    def token_starts(self, text: str) -> Sequence[int]:
        """Give where tokens begin; an estimate while there is no model."""
        try:
            counter = self._found()
        except EmbeddingError:
            return EstimatedTokens().token_starts(text)
        return counter.token_starts(text)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in the order given."""
        return self._use(lambda embedder: embedder.embed(texts))

    def embed_query(self, text: str) -> Vectors:
        """Embed a question; the last thousand are remembered."""
        return self._query_vector(text)

    def unavailable(self) -> str | None:
        """Say why no vectors can be made at the moment, if that is so."""
        try:
            self._found()
        except EmbeddingError as error:
            return str(error)
        return None

    def _embed_query(self, text: str) -> Vectors:
        vector = self._use(lambda embedder: embedder.embed_query(text))
        vector.setflags(write=False)  # it is handed out again
        return vector

    def _use(self, work: Callable[[Embedder], Vectors]) -> Vectors:
        embedder = self._found()
        try:
            return work(embedder)
        except EmbedderUnavailable as error:
            with self._lock:
                self._remember(error)
            raise

    def _found(self) -> Embedder:
        with self._lock:
            if self._failure and self._clock() - self._failed_at < RETRY_AFTER_SECONDS:
                raise self._failure
            self._failure = None
            if self._embedder is None:
                self._embedder = self._open()
            return self._embedder

    def _open(self) -> Embedder:
        failures: list[EmbeddingError] = []
        for opener in self._openers:
            try:
                return opener()
            except EmbeddingError as error:
                failures.append(error)
        hint = failures[0].hint if failures else "set embedding_provider to auto"
        reasons = "; ".join(failure.message for failure in failures)
        failure = EmbedderUnavailable(reasons or "embedding is switched off", hint)
        self._remember(failure)
        raise failure

    def _remember(self, failure: EmbedderUnavailable) -> None:
        self._failure, self._failed_at = failure, self._clock()
