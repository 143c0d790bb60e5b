"""Decide which model a store uses, which comes next, and which vectors are no longer used.

Every function here takes values and gives values. `embedding/stored_vectors.py` reads and writes
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from byheart.contracts import EmbedderSpec, KnownModel, Model, Models
from byheart.errors import Conflict, Do, Hint


def adopt(models: Models, model: Model) -> Models:
    """Use the first model that brings vectors; a store that uses one stays with it.

    Two processes with two models can both find the store without one. Nothing searches the vectors
    of the later one, so its chunks wait for vectors of the model in use.
    """
    if models.active is None:
        models = replace(models, active=model.name)
    return note(models, model, None) if models.active == model.name else models


def note(models: Models, model: Model, spec: EmbedderSpec | None) -> Models:
    """Record a model, and how to open its embedder again; a known name keeps its dimensions."""
    if models.find(model.name) is None:
        return replace(models, known=(*models.known, KnownModel(*model, spec)))
    return replace(
        models,
        known=tuple(
            each._replace(spec=spec) if spec is not None and each.model == model else each
            for each in models.known
        ),
    )


def begin(models: Models, model: Model, *, has_vectors: bool) -> Models:
    """Record which model comes next, so that its vectors do not count as unused.

    `has_vectors` says whether the store holds vectors under the name of the model.
    """
    known = models.find(model.name)
    if known is not None and known != model:
        if has_vectors:
            raise Conflict(
                f"the store holds vectors of {known.dimensions} dimensions under the name "
                f"{model.name}, and this one makes {model.dimensions}: the name must tell them "
                "apart",
                Hint("if they are not in use, drop them with: ", Do("admin.doctor", optimize=True)),
            )
        models = replace(models, known=tuple(_measure_again(models.known, model)))
    models = note(models, model, None)
    return replace(models, next=None if models.in_use() == model else model.name)


def _measure_again(known: Sequence[KnownModel], model: Model) -> Sequence[KnownModel]:
    return [
        each._replace(dimensions=model.dimensions) if each.name == model.name else each
        for each in known
    ]


def may_switch(lacking: int, most_lacking: int | None) -> bool:
    """Say whether few enough chunks lack vectors; `None` allows any number."""
    return most_lacking is None or lacking <= most_lacking


def switch(models: Models, model: Model) -> Models:
    """Use another model from now on, and remember the one before."""
    before = models.in_use()
    if before == model:
        return models
    return replace(models, active=model.name, next=None, previous=before and before.name)


def unused(models: Models, *, next_too: bool) -> frozenset[str]:
    """Name the models whose vectors are not used; with `next_too`, the next one is among them."""
    kept = {models.active} if next_too else {models.active, models.next}
    return frozenset(each.name for each in models.known if each.name not in kept)


def drop_unused(models: Models, *, next_too: bool) -> Models:
    """Forget the model before, whose vectors are dropped; with `next_too`, the next one as well."""
    return replace(models, previous=None, next=None if next_too else models.next)
