"""Take an embedder of the caller's own: check it once, and count tokens where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from byheart.contracts import Embedder, Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.errors import InvalidInput

# Most sentence models read about so many tokens; a caller's embedder may say otherwise.
_USUAL_WINDOW_TOKENS = 254
_LONGEST_NAME = 200


class SimpleEmbedder(Protocol):
    """The least that an embedder needs: a name, a length, and two functions."""

    @property
    def name(self) -> str:
        """Name the model; vectors of two names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Give the length of every vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Any:
        """Embed passages: one row for each text, in the order given."""
        ...

    def embed_query(self, text: str) -> Any:
        """Embed a question."""
        ...


def check_embedder(given: object) -> Embedder:
    """Accept an embedder of the caller's own; complete one that does not count tokens."""
    name, dimensions = getattr(given, "name", None), getattr(given, "dimensions", None)
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
        raise _refuse("a `name`: a text that says which model it is")
    if not isinstance(dimensions, int) or isinstance(dimensions, bool) or dimensions < 1:
        raise _refuse("`dimensions`: the length of its vectors, a whole number")
    for method in ("embed", "embed_query"):
        if not callable(getattr(given, method, None)):
            raise _refuse(f"a method `{method}`")
    window = getattr(given, "window_tokens", _USUAL_WINDOW_TOKENS)
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise _refuse("valid `window_tokens`: a whole number of at least 1")
    if hasattr(given, "token_starts") and hasattr(given, "window_tokens"):
        return cast(Embedder, given)
    return _Completed(cast(SimpleEmbedder, given))


def _refuse(lacks: str) -> InvalidInput:
    return InvalidInput(
        f"the embedder lacks {lacks}",
        "give an object with name, dimensions, embed(texts) and embed_query(text)",
    )


class _Completed(EstimatedTokens):
    """A caller's embedder with estimated tokens and vectors as float32 arrays."""

    def __init__(self, given: SimpleEmbedder) -> None:
        self._given = given
        self.name = given.name
        self.dimensions = given.dimensions
        self.window_tokens = int(getattr(given, "window_tokens", _USUAL_WINDOW_TOKENS))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in the order given."""
        return _to_float32(self._given.embed(texts))

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        return _to_float32(self._given.embed_query(text)).reshape(-1)


def _to_float32(vectors: Any) -> Vectors:
    import numpy as np  # imported here: `byheart --help` does without

    return np.asarray(vectors, np.float32)
