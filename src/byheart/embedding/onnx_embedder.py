"""Make vectors in this process with ONNX Runtime, which is the default."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from byheart.contracts import Vectors
from byheart.embedding.long_texts import embed_whole
from byheart.embedding.model_cache import (
    CachedModel,
    damage_of,
    forget_verified,
    get_model,
)
from byheart.embedding.model_sources import DEFAULT_MODEL, ModelSources
from byheart.embedding.model_tokens import ModelTokens
from byheart.embedding.onnx_model import OnnxModel, is_main_thread_alone
from byheart.embedding.progress import Progress
from byheart.embedding.thread_sharing import share
from byheart.errors import ModelFilesError
from byheart.startup.late_numpy import np
from byheart.system.freed_memory import return_freed_memory

# At most this many threads embed at once, each one text, because other programs need cores too.
MOST_THREADS = 4

Loaded = TypeVar("Loaded", ModelTokens, OnnxModel)


class OnnxEmbedder:
    """Embed with a BERT-family sentence model, which is loaded on first use.

    The tokenizer is loaded separately, since cutting a text into chunks needs only the tokenizer.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        cache_dir: Path,
        sources: ModelSources | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._model = model
        self._cache_dir = cache_dir
        self._sources = sources or ModelSources()
        self._threads = threads or min(os.cpu_count() or 1, MOST_THREADS)
        self._progress = progress or (lambda _done, _total: None)
        self._lock = threading.RLock()
        self._cached: CachedModel | None = None
        self._tokens: ModelTokens | None = None
        self._onnx: OnnxModel | None = None
        self._used_at = time.monotonic()

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self.files().name

    @property
    def dimensions(self) -> int:
        """Return the length of every vector."""
        return self.files().shape.dimensions

    @cached_property
    def window_tokens(self) -> int:
        """Return how many tokens a text may have, without special tokens and prefixes."""
        shape, tokens = self.files().shape, self._tokenizer()
        before, after = tokens.special_ids
        prefixes = (shape.query_prefix, shape.passage_prefix)
        reserved = max(len(tokens.ids(prefix)) for prefix in prefixes)
        return shape.max_tokens - len(before) - len(after) - reserved

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offset of each token, by the model's own tokenizer."""
        return self._tokenizer().token_starts(text)

    def counter_to_send(self) -> ModelTokens:
        """Return the token counter for another process."""
        return self._tokenizer()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in the order given; a passage that is too long gets its windows' mean."""
        return self._embed(texts, self.files().shape.passage_prefix)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        vector: Vectors = self._embed([text], self.files().shape.query_prefix)[0]
        return vector

    def files(self) -> CachedModel:
        """Return the model's files; fetch and build them first if needed."""
        with self._lock:
            if self._cached is None:
                found = get_model(self._model, self._cache_dir, self._sources, self._progress)
                if found.shape.pooling == "score":
                    raise ModelFilesError(
                        f"{self._model} compares texts and makes no vectors",
                        "use it as reranker_model, and name another embedding_model",
                    )
                self._cached = found
            return self._cached

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Release the model's memory, unless the model was used within `idle_seconds`."""
        with self._lock:
            idle = time.monotonic() - self._used_at >= idle_seconds
            if self._onnx is None or not idle:
                return
            self._onnx = self._tokens = None
        gc.collect()  # objects in cycles keep their memory until then
        return_freed_memory()

    def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return embed_whole(
            texts,
            lambda fitting: self._run([prefix + text for text in fitting]),
            tokens=self,
            window_tokens=self.window_tokens,
        )

    def _run(self, texts: Sequence[str]) -> Vectors:
        """Embed texts that fit into the window, each separately.

        Batches gain nothing here: they need padding, they do not fit into the processor's cache,
        and the quantisation of one text would depend on the other texts. Without batches, the same
        text always gets the same vector, and each thread embeds texts of its own.
        """
        tokens, model = self._tokenizer(), self._loaded()
        before, after = tokens.special_ids

        def run(text: str) -> Vectors:
            ids = np.array([[*before, *tokens.ids(text), *after]], np.int32)
            return model.run(ids, alone=len(texts) == 1)

        if len(texts) == 1:
            return run(texts[0])[np.newaxis]
        threads = 1 if is_main_thread_alone() else self._threads
        return np.stack(share(run, texts, threads))

    def _tokenizer(self) -> ModelTokens:
        with self._lock:
            if self._tokens is None:
                self._tokens = self._load_sound(lambda files: ModelTokens(files.tokenizer))
            return self._tokens

    def _loaded(self) -> OnnxModel:
        with self._lock:
            self._used_at = time.monotonic()
            if self._onnx is None:
                self._onnx = self._load_sound(
                    lambda files: OnnxModel(files.graph, may_pair=self._threads > 1)
                )
            return self._onnx

    def _load_sound(self, load: Callable[[CachedModel], Loaded]) -> Loaded:
        """Load a file of the model; fetch it once more if it was damaged after its verification."""
        try:
            return load(self.files())
        except ModelFilesError:
            # A failing disk changes bytes but not the modification time, so check every byte now.
            # Keep an undamaged file that cannot be loaded, for example because memory is short.
            if not damage_of(self._model, self._cache_dir, every_byte=True):
                raise
            self._cached = None
            forget_verified(self._model, self._cache_dir)
            return load(self.files())
