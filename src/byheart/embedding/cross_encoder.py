"""Rerank with a cross-encoder in this process, which reads a question and a passage together."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from byheart.contracts import Vectors
from byheart.embedding.model_cache import get_model
from byheart.embedding.model_library import model_label
from byheart.embedding.model_sources import ModelSources
from byheart.embedding.model_tokens import ModelTokens
from byheart.embedding.onnx_embedder import MOST_THREADS
from byheart.embedding.onnx_model import OnnxModel, is_main_thread_alone
from byheart.embedding.thread_sharing import share
from byheart.errors import EmbedderUnavailable, EmbeddingError, ModelFilesError
from byheart.startup.late_numpy import NDArray, np
from byheart.system.freed_memory import return_freed_memory

# The question gets at most this share of the tokens that the model reads.
_MOST_QUESTION = 0.5
# A model that cannot be had is not looked for again for this time.
_RETRY_AFTER_SECONDS = 60.0


class _Loaded:
    """Hold the tokenizer and the graph of a cross-encoder."""

    def __init__(self, model: str, cache_dir: Path, sources: ModelSources, threads: int) -> None:
        files = get_model(model, cache_dir, sources, lambda _done, _total: None)
        if files.shape.pooling != "score":
            raise ModelFilesError(
                f"{model} makes vectors and does not rerank", "name a cross-encoder"
            )
        self.shape = files.shape
        self.tokens = ModelTokens(files.tokenizer)
        self.model = OnnxModel(files.graph, may_pair=threads > 1)


class CrossEncoder:
    """Score passages with a BERT-family model for pairs of texts; it is loaded on first use."""

    def __init__(
        self,
        model: str,
        *,
        cache_dir: Path,
        sources: ModelSources | None = None,
        threads: int | None = None,
    ) -> None:
        self._model = model_label(model)
        self._cache_dir = cache_dir
        self._sources = sources or ModelSources()
        self._threads = threads or min(os.cpu_count() or 1, MOST_THREADS)
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._failure: tuple[str, str] | None = None
        self._failed_at = 0.0
        self._used_at = time.monotonic()

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Score each passage; the end of a passage that is too long for the model is not read."""
        loaded = self._load()
        pairs = [self._pair(loaded, question, passage) for passage in passages]
        alone = len(pairs) == 1

        def run(pair: NDArray[np.int32]) -> Vectors:
            return loaded.model.run(pair, alone=alone)

        threads = 1 if is_main_thread_alone() else self._threads
        return [float(each[0]) for each in share(run, pairs, threads)]

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Release the model's memory, unless the model was used within `idle_seconds`."""
        with self._lock:
            if self._loaded is None or time.monotonic() - self._used_at < idle_seconds:
                return
            self._loaded = None
        gc.collect()  # objects in cycles keep their memory until then
        return_freed_memory()

    def _load(self) -> _Loaded:
        with self._lock:
            self._used_at = time.monotonic()
            if self._loaded is None:
                if self._failure and self._used_at - self._failed_at < _RETRY_AFTER_SECONDS:
                    raise EmbedderUnavailable(*self._failure)
                try:
                    self._loaded = _Loaded(
                        self._model, self._cache_dir, self._sources, self._threads
                    )
                except EmbeddingError as error:
                    self._failure, self._failed_at = (error.message, error.hint), self._used_at
                    raise
            return self._loaded

    def _pair(self, loaded: _Loaded, question: str, passage: str) -> NDArray[np.int32]:
        """Number the tokens of both texts, and the text that each belongs to."""
        tokens, most = loaded.tokens, loaded.shape.max_tokens
        before, after = tokens.special_ids
        # BERT has one separator between the texts and tells them apart by segments; XLM-RoBERTa has
        # two separators, and one segment.
        is_xlm = loaded.shape.first_position > 0
        between = [*after, *after] if is_xlm else after
        asked = tokens.ids(question)[: int(most * _MOST_QUESTION)]
        room = most - len(before) - len(asked) - len(between) - len(after)
        first = [*before, *asked, *between]
        second = [*tokens.ids(passage)[:room], *after]
        segments = [0] * len(first) + [0 if is_xlm else 1] * len(second)
        return np.array([[*first, *second], segments], np.int32)
