"""Carry out each change of models and vectors in one transaction: read, decide, write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from byheart.contracts import (
    EmbedderSpec,
    Model,
    ModelRows,
    Models,
    PendingChunk,
    Storage,
    Window,
    one_transaction,
)
from byheart.embedding import generations

# Chunks, each with the vectors of its windows.
Made: TypeAlias = Iterable[tuple[PendingChunk, Sequence[Window]]]
# Dropped vectors are overwritten: this many take the write lock for some hundredths of a second.
_DROPPED_AT_A_TIME = 2000


@one_transaction
def read(storage: Storage) -> Models:
    """Give the models of a store."""
    with storage.reading() as reader:
        return reader.models.read()


@one_transaction
def waiting(
    storage: Storage,
    limit: int,
    of: Sequence[str] = (),
    without: Sequence[int] = (),
    space: str | None = None,
) -> list[PendingChunk]:
    """List chunks that wait for vectors, oldest first: of some memories, or of all.

    Leave out the chunks whose numbers are in `without`. With `space`, a store that keeps spaces
    apart looks only near that space.
    """
    with storage.reading(space) as reader:
        return reader.models.lacking(None, limit, of=of, without=without)


@one_transaction
def count_waiting(storage: Storage, of: Sequence[str] = ()) -> int:
    """Count the chunks that wait for vectors, of some memories, or in all spaces."""
    with storage.reading() as reader:
        return reader.models.count_lacking(None, of)


def describe_missing(chunks: int) -> str:
    """Say for how many chunks vectors are missing."""
    return f"vectors are missing for {chunks:,} {'chunk' if chunks == 1 else 'chunks'}"


@one_transaction
def count_lacking(storage: Storage, model: Model) -> tuple[int, int]:
    """Count the chunks without vectors of a model, and all chunks."""
    with storage.reading() as reader:
        return reader.models.count_lacking(model), reader.models.counts().chunks


@one_transaction
def count_unused(storage: Storage) -> int:
    """Count the vectors of all models but the one in use."""
    with storage.reading() as reader:
        names = generations.unused(reader.models.read(), next_too=True)
        held = reader.models.counts().vectors
    return sum(held.get(name, 0) for name in names)


def adopt(rows: ModelRows, model: Model | None) -> Model | None:
    """Have a store without a model use this one; give the model if it is the one in use."""
    if model is None:
        return None
    before = rows.read()
    after = generations.adopt(before, model)
    _write(rows, before, after)
    return model if after.in_use() == model else None


@one_transaction
def note(storage: Storage, model: Model, spec: EmbedderSpec) -> None:
    """Record a model, and how to open its embedder again."""
    with storage.writing(None) as writer:
        before = writer.models.read()
        _write(writer.models, before, generations.note(before, model, spec))


@one_transaction
def begin(storage: Storage, model: Model) -> None:
    """Record which model comes next."""
    with storage.writing(None) as writer:
        before = writer.models.read()
        known = before.find(model.name)
        has_vectors = known not in (None, model) and model.name in writer.models.counts().vectors
        _write(writer.models, before, generations.begin(before, model, has_vectors=has_vectors))


def add_waiting(storage: Storage, model: Model, made: Made) -> int:
    """Add vectors of the model in use to chunks that wait for them, and count the chunks."""
    return sum(_add_waiting(storage, model, *each) for each in _by_space(made))


@one_transaction
def _add_waiting(
    storage: Storage, model: Model, space: str, by_number: Mapping[int, Sequence[Window]]
) -> int:
    with storage.writing(space) as writer:
        usable = adopt(writer.models, model)
        return 0 if usable is None else writer.models.add_vectors(usable, by_number)


def add_beside(storage: Storage, model: Model, made: Made) -> int:
    """Add vectors of any known model to chunks that lack them, and count the chunks.

    A store without a model uses this one from now on.
    """
    return sum(_add_beside(storage, model, *each) for each in _by_space(made))


@one_transaction
def _add_beside(
    storage: Storage, model: Model, space: str, by_number: Mapping[int, Sequence[Window]]
) -> int:
    with storage.writing(space) as writer:
        if writer.models.read().in_use() is None:
            adopt(writer.models, model)
        return writer.models.add_vectors(model, by_number)


def _by_space(made: Made) -> Iterable[tuple[str, dict[int, Sequence[Window]]]]:
    spaces: dict[str, dict[int, Sequence[Window]]] = {}
    for chunk, windows in made:
        spaces.setdefault(chunk.space, {})[chunk.chunk_no] = windows
    return spaces.items()


@one_transaction
def switch(storage: Storage, model: Model, most_lacking: int | None) -> int | None:
    """Search by another model from now on, unless too many chunks lack vectors of that model.

    Return how many chunks wait for vectors now, or `None` if the model was not switched.
    """
    with storage.writing(None) as writer:
        before = writer.models.read()
        # A store without vectors has adopted the first model that came.
        lacking = writer.models.count_lacking(None if before.in_use() == model else model)
        if not generations.may_switch(lacking, most_lacking):
            return None
        _write(writer.models, before, generations.switch(before, model))
        return lacking


def drop_unused(storage: Storage, *, next_too: bool) -> int:
    """Remove and count vectors of models not in use; with `next_too`, of the next one too."""
    dropped, last_chunk = 0, 0
    while chunk_nos := _drop_some(storage, last_chunk, next_too=next_too):
        dropped, last_chunk = dropped + len(chunk_nos), chunk_nos[-1]
    return dropped


@one_transaction
def _drop_some(storage: Storage, last_chunk: int, *, next_too: bool) -> list[int]:
    with storage.writing(None) as writer:
        # Look up the models each time: another process may have switched meanwhile.
        before = writer.models.read()
        unused = generations.unused(before, next_too=next_too)
        _write(writer.models, before, generations.drop_unused(before, next_too=next_too))
        return writer.models.drop_vectors(unused, last_chunk, _DROPPED_AT_A_TIME)


def _write(rows: ModelRows, before: Models, after: Models) -> None:
    if after != before:
        rows.write(after)
