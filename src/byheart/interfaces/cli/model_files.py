"""Find the embedding model's files, and download them with a progress bar."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import byheart
from byheart.embedding.model_library import ModelStatus, download_model, model_status
from byheart.embedding.model_sources import ModelSources
from byheart.errors import EmbeddingError
from byheart.interfaces.cli.progress import Bar
from byheart.interfaces.cli.screen import remark, size
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation
from byheart.settings import Settings

if TYPE_CHECKING:
    from byheart.store import MemoryStore

_IN_PROCESS = ("auto", "onnx")


def open_embedding_store(invocation: Invocation, *, create: bool = False) -> MemoryStore:
    """Open the store for a command that needs vectors."""
    settings = settings_of(invocation)
    store = byheart.open(settings=settings, create=create)
    if not store.admin.uses_earlier_model():  # otherwise only reembed needs the configured model
        get_missing_model(invocation, settings)
    return store


def get_missing_model(invocation: Invocation, settings: Settings) -> None:
    """Download a missing model with a progress bar; without a terminal, the first use does."""
    if settings.offline or settings.embedding_provider not in _IN_PROCESS:
        return
    if not look_for_model(settings).ready:
        remark(invocation, "getting the embedding model: this happens once")
        if sys.stderr.isatty():
            # Without the model, keyword search still works, and the answer says why it is degraded.
            with suppress(EmbeddingError):
                fetch_model(settings)


def look_for_model(settings: Settings, *, verify: bool = False) -> ModelStatus:
    """Return whether the model is in the cache."""
    return model_status(model_of(settings), settings.cache_dir, verify=verify)


def fetch_model(settings: Settings, *, force: bool = False) -> ModelStatus:
    """Download the model with a progress bar."""
    with Bar("model") as bar:

        def show(done: int, total: int) -> None:
            rate = size(int(done / bar.seconds))
            bar.show(done, total, f"{size(done)} of {size(total)}, {rate}/s")

        return download_model(
            model_of(settings),
            settings.cache_dir,
            show,
            sources=ModelSources(settings.model_sources, offline=settings.offline),
            force=force,
        )


def model_of(settings: Settings) -> str | None:
    """Return the model that the settings name, or `None` for the default one."""
    if settings.model_path is not None:
        return str(settings.model_path)
    return settings.embedding_model or None
