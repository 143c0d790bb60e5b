"""Open an embedder on first use, and remember for a while why it is unavailable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from byheart.contracts import (
    Embedder,
    EmbedderSpec,
    NamesCounter,
    SharesCounter,
    TokenCounter,
    Unloadable,
    Vectors,
)
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.errors import EmbedderUnavailable, EmbeddingError, ModelFilesError, join_hints

Opener = Callable[[], Embedder]
Made = TypeVar("Made")

QUERY_CACHE_ENTRIES = 1000
RETRY_AFTER_SECONDS = 60.0


class LazyEmbedder:
    """Embed with an embedder that the first successful opener provides on first use.

    An unavailable provider is not asked again for a minute, so that it does not slow down every
    save and search; until then each call fails at once with the reason. Openers may download a
    model. `check_at_hand` raises if an opener would download, so that `unavailable` need not wait.
    """

    def __init__(
        self,
        openers: Sequence[Opener],
        *,
        specs: Sequence[Callable[[], EmbedderSpec]] = (),
        check_at_hand: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._openers = openers
        self._specs = specs
        self._check_at_hand = check_at_hand
        self._clock = clock
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._found_by = 0
        self._failure: tuple[str, str] | None = None
        self._failed_at = 0.0
        self._query_vector = lru_cache(QUERY_CACHE_ENTRIES)(self._embed_query)

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._found().name

    @property
    def dimensions(self) -> int:
        """Return the length of every vector."""
        return self._found().dimensions

    @property
    def window_tokens(self) -> int:
        """Return how many tokens of text one vector can represent."""
        return self._using(lambda embedder: embedder.window_tokens)

    def token_starts(self, text: str) -> Sequence[int]:
        """Return where tokens begin; this is an estimate while no model is available."""
        try:
            return self._using(lambda embedder: embedder.token_starts(text))
        except EmbeddingError:
            return EstimatedTokens().token_starts(text)

    def counter_to_send(self) -> TokenCounter | None:
        """Return the current token counter for another process."""
        try:
            embedder = self._found()
            return embedder.counter_to_send() if isinstance(embedder, SharesCounter) else None
        except EmbeddingError:
            return None

    @property
    def token_counter(self) -> str:
        """Return the name of the current token counter."""
        try:
            counter = self._found()
        except EmbeddingError:
            return EstimatedTokens.token_counter
        return counter.token_counter if isinstance(counter, NamesCounter) else counter.name

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in the order given."""
        return self._using(lambda embedder: embedder.embed(texts))

    def embed_query(self, text: str) -> Vectors:
        """Embed a question; the vectors of the last thousand questions are cached."""
        return self._query_vector(text)

    def embed_once(self, text: str) -> Vectors:
        """Embed a question that no user asked, without caching or counting it."""
        return self._embed_query(text)

    @property
    def spec(self) -> EmbedderSpec | None:
        """Return how to reopen the embedder: with the opener that succeeded, else the first one."""
        return self._specs[self._found_by]() if self._specs else None

    def query_cache(self) -> tuple[int, int]:
        """Count the questions whose vectors were in the cache, and the other questions."""
        used = self._query_vector.cache_info()
        return used.hits, used.misses

    def unavailable(self) -> str | None:
        """Return why no vectors can be made now, or None; download nothing."""
        try:
            if self._embedder is None and not self._failed_lately():
                self._check_at_hand()
            self._found()
        except EmbeddingError as error:
            return str(error)
        return None

    def forget_failure(self) -> None:
        """Ask the provider again at the next text, because something was repaired."""
        with self._lock:
            self._failure = None

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Release the model's memory until the next text, if the model is idle."""
        if isinstance(self._embedder, Unloadable):
            self._embedder.unload(idle_seconds)

    def _embed_query(self, text: str) -> Vectors:
        vector = self._using(lambda embedder: embedder.embed_query(text))
        vector.setflags(write=False)  # the cache returns the same array again
        return vector

    def _using(self, work: Callable[[Embedder], Made]) -> Made:
        embedder = self._found()
        try:
            return work(embedder)
        except (EmbedderUnavailable, ModelFilesError) as error:
            with self._lock:
                self._remember(error)
            raise

    def _found(self) -> Embedder:
        with self._lock:
            if self._failure and self._failed_lately():
                # Raise a new error each time: the traceback of a reused error would keep the texts
                # of every caller in memory.
                raise EmbedderUnavailable(*self._failure)
            self._failure = None
            if self._embedder is None:
                self._embedder = self._open()
            return self._embedder

    def _open(self) -> Embedder:
        failures: list[EmbeddingError] = []
        for at, opener in enumerate(self._openers):
            try:
                embedder = opener()
            except EmbeddingError as error:
                failures.append(error)
            else:
                self._found_by = at
                return embedder
        hint = failures[0].hint if failures else "set embedding_provider to auto"
        reasons = join_hints("; ", (failure.message for failure in failures))
        failure = EmbedderUnavailable(reasons or "embedding is switched off", hint)
        self._remember(failure)
        raise failure

    def _failed_lately(self) -> bool:
        return bool(self._failure) and self._clock() - self._failed_at < RETRY_AFTER_SECONDS

    def _remember(self, failure: EmbeddingError) -> None:
        self._failure = (failure.message, failure.hint)
        self._failed_at = self._clock()
