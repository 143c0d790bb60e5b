"""Open a store with its embedder, as the settings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from byheart.contracts import EmbedderSpec, Reranker, Storage
from byheart.embedding import LazyEmbedder, Progress, SimpleEmbedder, check_embedder, open_embedder
from byheart.errors import Do, Hint, InvalidInput, SettingsError, StoreUnreachable
from byheart.model import Copied, CopyProgress
from byheart.model.address_secrets import hide_secrets
from byheart.model.checks import check_callback
from byheart.settings import Settings, data_folder, load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.storage.sqlite import files as store_files
from byheart.store import MemoryStore
from byheart.system.private_files import close_to_others

if TYPE_CHECKING:
    from byheart.storage.postgres.address import Address

_POSTGRES = ("postgresql://", "postgres://")


def open(  # noqa: A001 - callers write `byheart.open`
    path_or_url: str | Path | None = None,
    *,
    space: str | None = None,
    settings: Settings | None = None,
    embedder: SimpleEmbedder | None = None,
    reranker: Reranker | None = None,
    create: bool = True,
    **overrides: object,
) -> MemoryStore:
    """Open a store, and create it if needed; the default is in the platform's data folder.

    With `create=False`, a missing store is refused: its path or address may be mistyped.
    Other keywords are settings (docs/settings.md). They override the environment and the config
    file. An `embedder` or `reranker` of your own takes the place of the one that the settings name.
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
    if reranker is not None and not isinstance(reranker, Reranker):
        raise InvalidInput(
            f"a reranker needs a method score, and {type(reranker).__name__} has none",
            "give it score(question, passages), which returns a number for each passage",
        )
    own = None if embedder is None else check_embedder(embedder)
    storage = _open_storage(chosen, create=create)
    return MemoryStore(
        storage,
        own or embedder_for(chosen),
        chosen,
        partial(_reopen, chosen),
        reranker or reranker_for(chosen),
    )


def copy_store(
    source: str | Path,
    target: str | Path,
    *,
    settings: Settings | None = None,
    on_progress: Callable[[CopyProgress], None] | None = None,
) -> Copied:
    """Copy a whole store to an empty one, a file or a PostgreSQL database, and compare the two.

    The source is only read. A copy that was interrupted goes on when it is called again.
    """
    # Imported here, because saving and searching do not need it.
    from byheart.transfer.copying import Copier

    chosen = load_settings({}) if settings is None else settings
    check_callback("on_progress", on_progress)
    first, second = (replace(chosen, db_path=str(each)) for each in (source, target))
    reading = _open_storage(first, create=False, read_only=True)
    try:
        open_target = partial(_open_storage, second, create=True, for_copy=True)
        return Copier(reading, open_target, on_progress).run()
    finally:
        reading.close()


def _open_storage(
    settings: Settings, *, create: bool, read_only: bool = False, for_copy: bool = False
) -> Storage:
    """Open the database that the settings name: a PostgreSQL server, or a SQLite file.

    An unfinished copy can be written `for_copy` alone.
    """
    address, wait = settings.db_path, settings.busy_timeout_seconds
    if address.startswith(_POSTGRES):
        return _open_postgres(
            address, settings, create=create, read_only=read_only, for_copy=for_copy
        )
    path = _file_path(address)
    if not create and not store_files.holds_store(path):
        raise StoreUnreachable(
            f"there is no store at {hide_secrets(address)}",
            Hint("check the path, or make one with: ", Do("save", "TEXT")),
        )
    if path.parent == data_folder():
        close_to_others(path.parent)
    return SqliteStorage(path, busy_timeout_seconds=wait, read_only=read_only, for_copy=for_copy)


def store_exists(settings: Settings) -> bool:
    """Tell whether the store that the settings name exists; nothing is created."""
    if settings.db_path.startswith(_POSTGRES):
        from byheart.storage.postgres.migrations import holds_store

        return holds_store(_parse(settings.db_path), settings.busy_timeout_seconds)
    return store_files.holds_store(_file_path(settings.db_path))


def _open_postgres(
    address: str, settings: Settings, *, create: bool, read_only: bool, for_copy: bool
) -> Storage:
    parsed = _parse(address)
    from byheart.storage.postgres.backend import PostgresStorage

    return PostgresStorage(
        parsed,
        settings.cache_dir,
        busy_timeout_seconds=settings.busy_timeout_seconds,
        index_memory_bytes=settings.index_memory_mb << 20,
        local_chunks=settings.postgres_local_chunks,
        create=create,
        read_only=read_only,
        for_copy=for_copy,
    )


def _parse(address: str) -> Address:
    try:
        # Imported here, because the driver is an extra that most users do not need.
        from byheart.storage.postgres.address import parse_address
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        # Without libpq, psycopg raises an error that lists its attempts.
        reason = f"installed: {error.name}" if missing else f"usable: {str(error).splitlines()[0]}"
        raise StoreUnreachable(
            f"the driver for PostgreSQL is not {reason}",
            'install it with: pip install "byheart[postgres]"',
        ) from error
    return parse_address(address)


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
        voyage_api_key=settings.voyage_api_key,
        parallel_requests=settings.embedding_requests,
        timeout_seconds=settings.embedding_timeout_seconds,
        progress=progress,
    )


def reranker_for(settings: Settings) -> Reranker | None:
    """Return the reranker that the settings name; its model is loaded on first use."""
    if not settings.reranker_model:
        return None
    # Imported here, because few users have a reranker.
    from byheart.embedding.cross_encoder import CrossEncoder
    from byheart.embedding.model_sources import ModelSources

    return CrossEncoder(
        settings.reranker_model,
        cache_dir=settings.cache_dir,
        sources=ModelSources(settings.model_sources, offline=settings.offline),
        threads=settings.embedding_threads or None,
    )


def _file_path(address: str) -> Path:
    if address == ":memory:":
        raise StoreUnreachable(
            "a store lives in a file, so that other processes can share it",
            "give a path, for example one in a temporary folder",
        )
    if address.startswith(tuple(each.removesuffix("//") for each in _POSTGRES)):
        raise StoreUnreachable(
            "an address of a database has // after its first colon",
            "for example postgresql://user@host/database",
        )
    if "://" in address or address.startswith("file:"):
        raise StoreUnreachable(
            f"there is no backend for {address.split(':')[0]}:// addresses",
            "give the path of a file, or an address that begins with postgresql://",
        )
    return Path(address).absolute()
