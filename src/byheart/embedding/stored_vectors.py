"""Carry out each change of models and vectors in one transaction: read, decide, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from byheart.contracts import (
    EmbedderSpec,
    Model,
    ModelRows,
    Models,
    PendingChunk,
    Storage,
    Window,
)
from byheart.embedding import generations

# Dropped vectors are overwritten: this many take the write lock for some hundredths of a second.
_DROPPED_AT_A_TIME = 2000


def read(storage: Storage) -> Models:
    """Give the models of a store."""
    with storage.reading() as reader:
        return reader.models.read()


def waiting(
    storage: Storage, limit: int, of: Sequence[str] = (), without: Sequence[int] = ()
) -> list[PendingChunk]:
    """List chunks that wait for vectors, oldest first: of some memories, or of all.

    Leave out the chunks whose numbers are in `without`.
    """
    with storage.reading() as reader:
        return reader.models.lacking(None, limit, of=of, without=without)


def count_waiting(storage: Storage, of: Sequence[str] = ()) -> int:
    """Count the chunks that wait for vectors, of some memories, or in all spaces."""
    with storage.reading() as reader:
        return reader.models.count_lacking(None, of)


def count_lacking(storage: Storage, model: Model) -> tuple[int, int]:
    """Count the chunks without vectors of a model, and all chunks."""
    with storage.reading() as reader:
        return reader.models.count_lacking(model), reader.models.counts().chunks


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


def note(storage: Storage, model: Model, spec: EmbedderSpec) -> None:
    """Record a model, and how to open its embedder again."""
    with storage.writing() as writer:
        before = writer.models.read()
        _write(writer.models, before, generations.note(before, model, spec))


def begin(storage: Storage, model: Model) -> None:
    """Record which model comes next."""
    with storage.writing() as writer:
        before = writer.models.read()
        known = before.find(model.name)
        has_vectors = known not in (None, model) and model.name in writer.models.counts().vectors
        _write(writer.models, before, generations.begin(before, model, has_vectors=has_vectors))


def add_waiting(storage: Storage, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
    """Add vectors of the model in use to chunks that wait for them, and count the chunks."""
    with storage.writing() as writer:
        usable = adopt(writer.models, model)
        return 0 if usable is None else writer.models.add_vectors(usable, made)


def add_beside(storage: Storage, model: Model, made: Mapping[int, Sequence[Window]]) -> int:
    """Add vectors of any known model to chunks that lack them, and count the chunks.

    A store without a model uses this one from now on.
    """
    with storage.writing() as writer:
        if writer.models.read().in_use() is None:
            adopt(writer.models, model)
        return writer.models.add_vectors(model, made)


def switch(storage: Storage, model: Model, most_lacking: int | None) -> int | None:
    """Search by another model from now on, unless too many chunks lack vectors of that model.

    Return how many chunks wait for vectors now, or `None` if the model was not switched.
    """
    with storage.writing() as writer:
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
    while True:
        with storage.writing() as writer:
            # Look up the models each time: another process may have switched meanwhile.
            before = writer.models.read()
            unused = generations.unused(before, next_too=next_too)
            _write(writer.models, before, generations.drop_unused(before, next_too=next_too))
            chunk_nos = writer.models.drop_vectors(unused, last_chunk, _DROPPED_AT_A_TIME)
        if not chunk_nos:
            return dropped
        dropped, last_chunk = dropped + len(chunk_nos), chunk_nos[-1]


def _write(rows: ModelRows, before: Models, after: Models) -> None:
    if after != before:
        rows.write(after)
