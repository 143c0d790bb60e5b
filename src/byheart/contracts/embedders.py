"""What turns text into vectors and counts its tokens, and what it may add to that."""

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
    """How an embedder is opened again: what the settings of the same names would say."""

    provider: str
    model: str


class TokenCounter(Protocol):
    """Find where the tokens of a text begin: the measure of chunks, windows and budgets."""

    def token_starts(self, text: str) -> Sequence[int]:
        """Give the character offset of each token's first character, ascending."""
        ...


class Embedder(TokenCounter, Protocol):
    """Turn text into unit vectors of one named model; any thread may ask, and several at once."""

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
    """Something that can let go of memory and take it up again by itself."""

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Let go of what can be loaded again, unless it was used within so many seconds."""
        ...


@runtime_checkable
class NamesCounter(Protocol):
    """What an embedder adds that knows how its tokens are counted: word by word.

    Then a text never has more of them than its lines have together.
    """

    @property
    def token_counter(self) -> str:
        """Name what counts tokens."""
        ...


@runtime_checkable
class MayBeAway(Protocol):
    """What an embedder adds whose name cannot be asked for without fetching it first."""

    def unavailable(self) -> str | None:
        """Say why no vectors can be made at the moment, if that is so, by looking only."""
        ...


@runtime_checkable
class RemembersFailure(Protocol):
    """What an embedder adds that does not look for its provider again for a while."""

    def forget_failure(self) -> None:
        """Look for the provider again at the next text: something was repaired."""
        ...


@runtime_checkable
class Reopenable(Protocol):
    """What an embedder adds that others can open again by its description."""

    @property
    def spec(self) -> EmbedderSpec | None:
        """Say how it is opened again, as far as that is known before it is."""
        ...


@runtime_checkable
class RemembersQueries(Protocol):
    """What an embedder adds that keeps the vectors of the latest questions."""

    def query_cache(self) -> tuple[int, int]:
        """Count the questions that were remembered, and those that were not."""
        ...

    def embed_once(self, text: str) -> Vectors:
        """Embed a question that nobody asked: neither remembered nor counted."""
        ...
