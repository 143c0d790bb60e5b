"""Open a store with its embedder, as the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from byheart.contracts import EmbedderSpec
from byheart.embedding import LazyEmbedder, Progress, SimpleEmbedder, check_embedder, open_embedder
from byheart.errors import Do, Hint, InvalidInput, SettingsError, StoreUnreachable
from byheart.settings import Settings, data_folder, load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from byheart.system.private_files import close_to_others


def open(  # noqa: A001 - callers write `byheart.open`
    path_or_url: str | Path | None = None,
    *,
    space: str | None = None,
    settings: Settings | None = None,
    embedder: SimpleEmbedder | None = None,
    **overrides: object,
) -> MemoryStore:
    """Open a store, and create it if needed; the default is in the platform's data folder.

    Other keywords are settings (docs/settings.md). They override the environment and the config
    file. An `embedder` of your own takes the place of the one that the settings name.
    """
    if not isinstance(path_or_url, str | Path | None):
        raise InvalidInput(
            f"path_or_url must be a path, not {type(path_or_url).__name__}",
            'give one, for example byheart.open("memory.db")',
        )
    given: Mapping[str, object] = {
        **overrides,
        **({} if path_or_url is None else {"db_path": str(path_or_url)}),
        **({} if space is None else {"space": space}),
    }
    chosen = load_settings(given) if settings is None or given else settings
    if not chosen.enabled:
        raise SettingsError(
            "the memory is switched off",
            Hint("switch it on with: ", Do("config set", "enabled", "true")),
        )
    own = None if embedder is None else check_embedder(embedder)
    path = _file_path(chosen.db_path)
    if path.parent == data_folder():
        close_to_others(path.parent)
    storage = SqliteStorage(path, busy_timeout_seconds=chosen.busy_timeout_seconds)
    return MemoryStore(storage, own or embedder_for(chosen), chosen, partial(_reopen, chosen))


def _reopen(settings: Settings, spec: EmbedderSpec) -> LazyEmbedder:
    """Return an embedder of another model, which follows the settings in all other respects."""
    named = {"embedding_provider": spec.provider, "embedding_model": spec.model}
    return embedder_for(replace(settings, **named, model_path=None))  # type: ignore[arg-type]


def embedder_for(settings: Settings, progress: Progress | None = None) -> LazyEmbedder:
    """Return the embedder that the settings name; its provider is opened on first use."""
    return open_embedder(
        settings.embedding_provider,
        cache_dir=settings.cache_dir,
        model=settings.embedding_model or None,
        model_path=settings.model_path,
        model_sources=settings.model_sources,
        offline=settings.offline,
        threads=settings.embedding_threads or None,
        ollama_url=settings.ollama_url,
        openai_base_url=settings.openai_base_url,
        openai_api_key=settings.openai_api_key,
        timeout_seconds=settings.embedding_timeout_seconds,
        progress=progress,
    )


def _file_path(address: str) -> Path:
    if address == ":memory:":
        raise StoreUnreachable(
            "a store lives in a file, so that other processes can share it",
            "give a path, for example one in a temporary folder",
        )
    if "://" in address or address.startswith("file:"):
        raise StoreUnreachable(
            f"there is no backend for {address.split(':')[0]}:// addresses",
            "give the path of a file",
        )
    return Path(address).absolute()
