"""Get vectors from a server: the code that Ollama and OpenAI share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from byheart.contracts import Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.json_requests import JsonRequests
from byheart.embedding.long_texts import embed_whole
from byheart.errors import EmbeddingError

# A user waits for the answer to a question, but not for the vectors of passages.
QUERY_SECONDS = 10.0


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

    @cached_property
    def dimensions(self) -> int:
        """Return the length of every vector; ask the server if it is not known."""
        return self._known_dimensions or self._ask(["dimensions"], QUERY_SECONDS).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in the order given."""
        return self._embed(texts, None)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question, with a shorter time limit than for passages."""
        vector: Vectors = self._embed([text], QUERY_SECONDS)[0]
        return vector

    def _embed(self, texts: Sequence[str], total_seconds: float | None) -> Vectors:
        def embed_fitting(fitting: Sequence[str]) -> Vectors:
            answers = [self._ask(batch, total_seconds) for batch in self._batches(fitting)]
            for vectors in answers:
                self._check_dimensions(vectors)
            return np.concatenate(answers)

        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return embed_whole(texts, embed_fitting, tokens=self, window_tokens=self.window_tokens)

    def _ask(self, texts: Sequence[str], total_seconds: float | None) -> Vectors:
        """Send one batch and return unit vectors, or raise an error that describes the answer."""
        answer = self._requests.post(self._url, self._body(texts), total_seconds)
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
        """Group texts, in order, so that no request is too large for the server."""
        grouped: list[list[str]] = []
        characters = 0
        for text in texts:
            characters += len(text)
            full = not grouped or len(grouped[-1]) == self._batch_texts
            if full or characters > self._batch_characters:
                grouped.append([])
                characters = len(text)
            grouped[-1].append(text)
        return grouped

    def _unexpected(self, what: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self._url} sent {what}", f"check that it serves the embedding model {self.name}"
        )
