"""Get vectors from a server: the code that Ollama, OpenAI and Voyage share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from byheart.contracts import Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.json_requests import JsonRequests
from byheart.embedding.long_texts import embed_whole
from byheart.embedding.thread_sharing import share
from byheart.errors import EmbeddingError
from byheart.startup.late_numpy import np

# A user waits for the answer to a question, but not for the vectors of passages.
QUERY_SECONDS = 10.0
# Fewer texts than these are not divided among several requests.
LEAST_TEXTS = 16


class ServedEmbedder(EstimatedTokens):
    """Embed over HTTP; token counts are estimates, since servers do not share their tokenizers."""

    def __init__(
        self,
        *,
        name: str,
        url: str,
        body: Callable[[Sequence[str]], Mapping[str, Any]],
        rows: Callable[[Any], Any],
        dimensions: int | None,
        window_tokens: int,
        batch_texts: int,
        batch_characters: int,
        requests: JsonRequests,
        query_body: Callable[[Sequence[str]], Mapping[str, Any]] | None = None,
    ) -> None:
        self.name = name
        self.window_tokens = window_tokens
        self._url = url
        self._body = body
        self._rows = rows
        self._known_dimensions = dimensions
        self._batch_texts = batch_texts
        self._batch_characters = batch_characters
        self._requests = requests
        self._query_body = query_body or body

    @cached_property
    def dimensions(self) -> int:
        """Return the length of every vector; ask the server if it is not known."""
        return self._known_dimensions or self._ask(["dimensions"], query=True).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in the order given."""
        return self._embed(texts, query=False)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question, with a shorter time limit than for passages."""
        vector: Vectors = self._embed([text], query=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        def embed_fitting(fitting: Sequence[str]) -> Vectors:
            ask = partial(self._ask, query=query)
            answers = share(ask, self._batches(fitting), self._requests.parallel)
            for vectors in answers:
                self._check_dimensions(vectors)
            return np.concatenate(answers)

        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return embed_whole(texts, embed_fitting, tokens=self, window_tokens=self.window_tokens)

    def _ask(self, texts: Sequence[str], *, query: bool) -> Vectors:
        """Send one batch and return unit vectors, or raise an error that describes the answer."""
        body = self._query_body(texts) if query else self._body(texts)
        answer = self._requests.post(self._url, body, QUERY_SECONDS if query else None)
        try:
            vectors = np.asarray(self._rows(answer), dtype=np.float32)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._unexpected("something that is no list of vectors") from None
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise self._unexpected(f"an array of shape {vectors.shape} for {len(texts)} texts")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not (lengths > 0).all():
            raise self._unexpected("vectors that are zero or not finite")
        unit: Vectors = vectors / lengths
        return unit

    def _check_dimensions(self, vectors: Vectors) -> None:
        if vectors.shape[1] != self.dimensions:
            raise EmbeddingError(
                f"{self.name} sent vectors of {vectors.shape[1]} dimensions, not {self.dimensions}",
                "use one model with one setting of its dimensions",
            )

    def _batches(self, texts: Sequence[str]) -> list[list[str]]:
        """Group texts, in order: no request too large for the server, and work for each request."""
        share_of_one = max(LEAST_TEXTS, -(-len(texts) // self._requests.parallel))
        most = min(self._batch_texts, share_of_one)
        grouped: list[list[str]] = []
        characters = 0
        for text in texts:
            characters += len(text)
            full = not grouped or len(grouped[-1]) == most
            if full or characters > self._batch_characters:
                grouped.append([])
                characters = len(text)
            grouped[-1].append(text)
        return grouped

    def _unexpected(self, what: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self._url} sent {what}", f"check that it serves the embedding model {self.name}"
        )
