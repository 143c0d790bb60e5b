"""Define the embedder interface, and the optional interfaces that an embedder may add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:  # numpy takes a tenth of a second to import: `byheart --help` does without
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"


class Model(NamedTuple):
    """The identity of an embedding model; vectors of two models are never compared."""

    name: str
    dimensions: int


class EmbedderSpec(NamedTuple):
    """Describe how to open an embedder again, by the values of the settings of the same names."""

    provider: str
    model: str


class TokenCounter(Protocol):
    """Find where the tokens of a text begin; chunks, windows and budgets are measured in tokens."""

    def token_starts(self, text: str) -> Sequence[int]:
        """Give the character offset of each token's first character, ascending."""
        ...


class Embedder(TokenCounter, Protocol):
    """Turn text into unit vectors of one named model; several threads may call it at once."""

    @property
    def name(self) -> str:
        """Name the model; vectors of two names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Give the length of every vector."""
        ...

    @property
    def window_tokens(self) -> int:
        """Give how many tokens of text one vector can see."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: one unit-length float32 row per text, in the order given."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a question: one unit-length float32 vector."""
        ...


@runtime_checkable
class Unloadable(Protocol):
    """Release memory, and load the same contents again when they are needed."""

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Release everything that can be loaded again, unless it was used in the last seconds."""
        ...


@runtime_checkable
class NamesCounter(Protocol):
    """Add the name of the token counter to an embedder that counts tokens word by word.

    With such a counter, a text never has more tokens than its lines have together.
    """

    @property
    def token_counter(self) -> str:
        """Name the token counter."""
        ...


@runtime_checkable
class SharesCounter(Protocol):
    """Add to an embedder a token counter that another process can use."""

    def counter_to_send(self) -> TokenCounter | None:
        """Give a counter that can be pickled and counts the same; `None` if there is none now."""
        ...


@runtime_checkable
class MayBeAway(Protocol):
    """Add a check to an embedder whose model has to be fetched before it has a name."""

    def unavailable(self) -> str | None:
        """Say why the embedder is unavailable, if it is; fetch and load nothing."""
        ...


@runtime_checkable
class RemembersFailure(Protocol):
    """Add a reset to an embedder that waits for a while before it tries a failed provider again."""

    def forget_failure(self) -> None:
        """Try the provider again at the next text, because something was repaired."""
        ...


@runtime_checkable
class Reopenable(Protocol):
    """Add a description by which other processes can open the same embedder."""

    @property
    def spec(self) -> EmbedderSpec | None:
        """Describe how to open this embedder again, as far as that is known before it is opened."""
        ...


@runtime_checkable
class RemembersQueries(Protocol):
    """Add figures of the cache to an embedder that keeps the vectors of the latest questions."""

    def query_cache(self) -> tuple[int, int]:
        """Count the questions that were in the cache, and the questions that were not."""
        ...

    def embed_once(self, text: str) -> Vectors:
        """Embed a question that no user asked; do not cache it and do not count it."""
        ...
