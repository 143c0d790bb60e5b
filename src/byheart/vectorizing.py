"""Vectorizing: whatever the embedder can do now, and the reason for what it cannot.

Nothing here raises because a provider is away: a text without vectors is saved and found by its
words, the answer says why, and the vectors are made up for later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from byheart.contracts import Embedder, Model, Storage, Vectors, Window
from byheart.embedding import window_texts
from byheart.errors import EmbeddingError
from byheart.model import HEADING_SEPARATOR, Chunk

_HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with what the embedder is shown around it: its title and the text before it."""

    chunk: Chunk
    before: str
    title: str | None


def passages(chunks: Sequence[Chunk], title: str | None) -> list[Passage]:
    """Pair each chunk with the one before it, where both stand under the same headings."""
    befores: list[Chunk | None] = [None, *chunks[:-1]]
    return [
        Passage(chunk, previous_text(chunk, before), title)
        for chunk, before in zip(chunks, befores, strict=True)
    ]


def previous_text(chunk: Chunk, before: Chunk | None) -> str:
    """Give the text before a chunk, if it belongs to the same section."""
    return before.content if before is not None and before.headings == chunk.headings else ""


class Vectorizer:
    """Make vectors of the store's model, each text's once."""

    def __init__(self, storage: Storage, embedder: Embedder, overlap_tokens: int) -> None:
        self._storage = storage
        self._embedder = embedder
        self._overlap_tokens = overlap_tokens

    @property
    def model(self) -> Model | None:
        """Name the model that vectors are made with, if any can be."""
        try:
            return Model(self._embedder.name, self._embedder.dimensions)
        except EmbeddingError:
            return None

    def unavailable(self) -> str | None:
        """Say why no vectors can be made at the moment, if that is so."""
        try:
            return self._foreign_model()
        except EmbeddingError as error:
            return str(error)

    def query_vector(self, text: str) -> tuple[Vectors | None, str | None]:
        """Embed a question, or say why that cannot be done."""
        try:
            reason = self._foreign_model()
            if reason is None:
                return self._embedder.embed_query(text), None
        except EmbeddingError as error:
            reason = str(error)
        except ValueError as error:  # an embedder of the caller's own, reading a bad answer
            reason = f"the embedder failed: {error}"
        return None, reason

    def windows(self, wanted: Sequence[Passage]) -> tuple[list[tuple[Window, ...]], str | None]:
        """Embed passages, or say why vectors are missing from what is returned."""
        try:
            reason = self._foreign_model()
            if reason is None:
                return self._embed(wanted), None
        except EmbeddingError as error:
            reason = str(error)
        return [() for _ in wanted], reason

    def _foreign_model(self) -> str | None:
        stored = self._storage.model()
        mine = Model(self._embedder.name, self._embedder.dimensions)
        if stored is None or stored == mine:
            return None
        return (
            f"the store's vectors are of model {stored.name}, but the embedder is {mine.name} "
            "(set embedding_provider and embedding_model to the store's, or use another store)"
        )

    def _embed(self, wanted: Sequence[Passage]) -> list[tuple[Window, ...]]:
        texts = [self._texts(each) for each in wanted]
        hashes = {text: _hash(text) for part in texts for text in part}
        model = Model(self._embedder.name, self._embedder.dimensions)
        known = self._storage.vectors_of(model, list(hashes.values()))
        missing = [text for text, text_hash in hashes.items() if text_hash not in known]
        if missing:
            made = self._embedder.embed(missing)
            if made.shape != (len(missing), model.dimensions):
                # Stored, they would make every later search fail.
                raise EmbeddingError(
                    f"the embedder {model.name} gave vectors of shape {made.shape} for "
                    f"{len(missing)} texts of {model.dimensions} dimensions"
                )
            known |= {hashes[text]: vector for text, vector in zip(missing, made, strict=True)}
        return [tuple(Window(hashes[text], known[hashes[text]]) for text in part) for part in texts]

    def _texts(self, passage: Passage) -> list[str]:
        outer = (passage.title, *(heading.title for heading in passage.chunk.headings))
        return window_texts(
            passage.chunk.content,
            before=passage.before,
            # A document's title is often its first heading as well.
            header=HEADING_SEPARATOR.join(dict.fromkeys(each for each in outer if each)),
            tokens=self._embedder,
            window_tokens=self._embedder.window_tokens,
            overlap_tokens=self._overlap_tokens,
        )


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()[:_HASH_BYTES]
