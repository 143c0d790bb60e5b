"""Define the models of a store, and the rows of their vectors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from byheart.contracts.embedders import EmbedderSpec, Model, Vectors
from byheart.contracts.records import PendingChunk, Window
from byheart.startup.dataclass_types import dataclass


class KnownModel(NamedTuple):
    """A model that a store has met; `spec` describes how to open its embedder again."""

    name: str
    dimensions: int
    spec: EmbedderSpec | None = None

    @property
    def model(self) -> Model:
        """Give the model without its embedder."""
        return Model(self.name, self.dimensions)


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a store, each by its name: the one in use, the next one, and the one before.

    `known` are all models, in the order in which the store met them. No two have the same name.
    """

    known: tuple[KnownModel, ...] = ()
    active: str | None = None
    next: str | None = None
    previous: str | None = None

    def find(self, name: str | None) -> Model | None:
        """Give the known model of a name."""
        return next((each.model for each in self.known if each.name == name), None)

    def in_use(self) -> Model | None:
        """Give the model whose vectors searches use; `None` until there are any."""
        return self.find(self.active)

    def spec_of(self, model: Model) -> EmbedderSpec | None:
        """Describe how to open the embedder of a model again, if that was recorded."""
        return next((each.spec for each in self.known if each.model == model), None)


class VectorCounts(NamedTuple):
    """Count all chunks of a store, and the vectors of each model by its name."""

    chunks: int
    vectors: Mapping[str, int]


class ModelReader(Protocol):
    """Look up models, vectors, and chunks without vectors.

    All chunks count here, even if no search finds them: earlier and forgotten texts can come back.
    A store that keeps spaces apart looks only at the space of the transaction, if it has one.
    """

    def read(self) -> Models:
        """Give the models of the store."""
        ...

    def lacking(
        self,
        model: Model | None,
        limit: int,
        after: int = 0,
        of: Sequence[str] = (),
        without: Sequence[int] = (),
    ) -> list[PendingChunk]:
        """List chunks without vectors of a model, or of the model in use, by their numbers.

        Begin after the number `after`. List chunks of the memories `of`, or else of all memories;
        leave out the chunks whose numbers are in `without`.
        """
        ...

    def count_lacking(self, model: Model | None, of: Sequence[str] = ()) -> int:
        """Count chunks without vectors of a model, or of the model in use."""
        ...

    def any_waiting(self) -> bool:
        """Say whether a chunk lacks vectors of the model in use."""
        ...

    def counts(self) -> VectorCounts:
        """Count all chunks, and the vectors of each model."""
        ...

    def vectors_of(self, model: Model, text_hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Find the vectors of texts that were embedded before."""
        ...


class ModelRows(ModelReader, Protocol):
    """Look up and change models and vectors."""

    def write(self, models: Models) -> None:
        """Write the models of the store. If another one is in use now, searches follow it."""
        ...

    def add_vectors(self, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
        """Add vectors of a known model to chunks that lack them, and count these chunks.

        Leave out a chunk if one of its vectors is not made.
        """
        ...

    def drop_vectors(self, models: Collection[str], after: int, limit: int) -> list[int]:
        """Remove some vectors of models, by their names; give the number of each one's chunk.

        Begin with the vectors of the chunk `after`.
        """
        ...
