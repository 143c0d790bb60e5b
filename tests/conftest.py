"""What the tests share: a place of their own, stores on real files, and embedders made by hand."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import math
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

from byheart.contracts import Embedder, Storage, Vectors
from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import EmbedderUnavailable
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.empty_store import make_empty

OpenStore = Callable[..., MemoryStore]

# How long an example takes says more about the machine's other work than about the code.
hypothesis_settings.register_profile("untimed", deadline=None)
hypothesis_settings.load_profile("untimed")

# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of processes are started here: let each load what the first of them compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Nor does each need threads to multiply with, which take as long to start as all of numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Every save waits until the disk has it. What the tests save is gone when they end: where memory
# can be written to like a disk, and has room for what they need at a time, nobody waits.
_MEMORY, _ROOM_BYTES = Path("/dev/shm"), 1 << 30
if (
    "TMPDIR" not in os.environ
    and os.access(_MEMORY, os.W_OK | os.X_OK)
    and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


_HIDDEN_LOOP = pytest.StashKey[asyncio.AbstractEventLoop]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hide the event loop of Playwright from tests that use no browser.

    Playwright keeps its loop running in this thread as long as the browser is open, and a second
    one cannot be started beside it.
    """
    loop = asyncio._get_running_loop()
    if loop is None or "browser" in getattr(item, "fixturenames", ()):
        return (yield)
    item.stash[_HIDDEN_LOOP] = loop
    asyncio._set_running_loop(None)
    try:
        return (yield)
    finally:
        asyncio._set_running_loop(loop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Show the loop again when the last test ends: the browser is closed then."""
    if nextitem is None and _HIDDEN_LOOP in item.stash:
        asyncio._set_running_loop(item.stash[_HIDDEN_LOOP])
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let the garbage collector pass over the modules and tests, which stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_homes = itertools.count()


@pytest.fixture(autouse=True)
def _own_place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test away from the user's own configuration and data."""
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    home.mkdir(parents=True)
    monkeypatch.setenv("BYHEART_CONFIG", str(home / "config.toml"))
    for name in ("DATA", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))


@pytest.fixture
def postgres_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the address of an empty PostgreSQL database, or skip where no server can run."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    pytest.importorskip("fcntl", reason="the PostgreSQL server of the tests needs Unix sockets")
    from tests.postgres_server import database_url

    with database_url() as url:
        yield url


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def database() -> str:
    """Name the database of `open_store`; `tests/databases.py` has a fixture that gives each.

    With `BYHEART_TEST_DATABASE=postgres` in the environment, it is PostgreSQL.
    """
    return os.environ.get("BYHEART_TEST_DATABASE", "sqlite")


@pytest.fixture
def open_store(path: Path, database: str) -> Iterator[OpenStore]:
    """Open stores, by default on the same file or database, and close them at the end."""
    opened: list[MemoryStore] = []
    stack, addresses = contextlib.ExitStack(), dict[Path, Any]()

    def open_storage(at: Path, wait: float) -> Storage:
        if database == "sqlite":
            make_empty(at)
            return SqliteStorage(at, busy_timeout_seconds=wait)
        from byheart.storage.postgres.backend import PostgresStorage
        from tests.postgres_stores import postgres_store

        if at not in addresses:  # a file stands for a database
            addresses[at] = stack.enter_context(postgres_store())
        return PostgresStorage(addresses[at], at.parent / "cache", busy_timeout_seconds=wait)

    def open_one(
        at: Path | None = None, embedder: Embedder | None = None, **settings: Any
    ) -> MemoryStore:
        # Otherwise every `doctor` reads the files of the model, which nothing here asks.
        chosen = load_settings({"embedding_provider": "hash", **settings})
        storage = open_storage(at or path, chosen.busy_timeout_seconds)
        opened.append(MemoryStore(storage, embedder or HashEmbedder(), chosen))
        return opened[-1]

    with stack:
        yield open_one
        for each in opened:
            each.close()


@pytest.fixture
def store(open_store: OpenStore) -> MemoryStore:
    return open_store()


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """Give a store for the tests of a module that only read what was put into it once."""
    folder = tmp_path_factory.mktemp("shared")
    settings = load_settings(
        {"embedding_provider": "hash"}, environ={}, config_path=folder / "none"
    )
    with MemoryStore(SqliteStorage(folder / "memory.db"), HashEmbedder(), settings) as store:
        yield store


class ArrowEmbedder(EstimatedTokens):
    """Point where a text says: `east`, `west`, `north`, or `at 30` degrees; anything else is up.

    Vectors have four dimensions: the plane of the directions, up, and one that is never used.
    """

    name = "arrow"
    dimensions = 4
    window_tokens = 10_000
    directions: ClassVar = {"east": 0.0, "north": 90.0, "west": 180.0, "south": 270.0}

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.array([self._arrow(text.split()) for text in texts], np.float32)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed([text])[0]
        return vector

    def _arrow(self, words: list[str]) -> list[float]:
        for at, word in enumerate(words):
            degrees = self.directions.get(word)
            if word == "at":
                degrees = float(words[at + 1])
            if degrees is not None:
                angle = math.radians(degrees)
                return [math.cos(angle), math.sin(angle), 0.0, 0.0]
        return [0.0, 0.0, 1.0, 0.0]


class WatchedEmbedder(HashEmbedder):
    """Count what is embedded, and be away while `down`."""

    def __init__(self, dimensions: int = 64, name: str | None = None) -> None:
        super().__init__(dimensions)
        self.name = name or self.name
        self.down = False
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.down:
            raise EmbedderUnavailable("the provider is on holiday", "wait until it is back")
        self.embedded.extend(texts)
        return super().embed(texts)

    def embed_query(self, text: str) -> Vectors:
        if self.down:
            raise EmbedderUnavailable("the provider is on holiday", "wait until it is back")
        vector: Vectors = super().embed([text])[0]
        return vector


@pytest.fixture
def make_watched() -> type[WatchedEmbedder]:
    return WatchedEmbedder


@pytest.fixture
def watched() -> WatchedEmbedder:
    return WatchedEmbedder()


@pytest.fixture
def arrows(open_store: OpenStore) -> MemoryStore:
    """Give a store whose vectors are made by hand."""
    return open_store(embedder=ArrowEmbedder())
