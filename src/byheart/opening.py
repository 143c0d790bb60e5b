"""Opening: which store, which embedder, under which settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from byheart.embedding import open_embedder
from byheart.errors import StoreUnreachable
from byheart.memory_store import MemoryStore
from byheart.settings import Settings, load_settings
from byheart.storage.sqlite import SqliteStorage


def open(  # noqa: A001 - `byheart.open` reads like what it does
    path_or_url: str | Path | None = None,
    *,
    space: str | None = None,
    settings: Settings | None = None,
    **overrides: object,
) -> MemoryStore:
    """Open a store, making it if need be; without a path, the one in the platform's data folder.

    Keywords are settings (docs/settings.md) and win over the environment and the config file.
    """
    given: Mapping[str, object] = {
        **overrides,
        **({} if path_or_url is None else {"db_path": str(path_or_url)}),
        **({} if space is None else {"space": space}),
    }
    chosen = load_settings(given) if settings is None or given else settings
    storage = SqliteStorage(
        _file_path(chosen.db_path), busy_timeout_seconds=chosen.busy_timeout_seconds
    )
    return MemoryStore(storage, open_embedder(chosen), chosen)


def _file_path(address: str) -> Path:
    if "://" in address:
        raise StoreUnreachable(
            f"there is no backend for {address.split('://')[0]}:// addresses",
            "give the path of a file",
        )
    return Path(address)
