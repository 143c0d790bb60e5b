"""What a served store is looked after by, whatever goes wrong meanwhile."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from byheart.interfaces.caretaking import make_missing_vectors, prepare, unload_when_idle
from byheart.interfaces.mcp.lazy_store import LazyStore, Opened
from byheart.settings import load_settings
from tests.conftest import OpenStore, WatchedEmbedder


class UnloadedEmbedder(WatchedEmbedder):
    """Count how often it was told to let go, and fail the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.unloaded: list[float] = []

    def unload(self, idle_seconds: float = 0.0) -> None:
        self.unloaded.append(idle_seconds)
        if len(self.unloaded) == 1:
            raise OSError("busy")

    def wait(self) -> None:
        """Wait until it was told several times."""
        until = time.monotonic() + 20
        while len(self.unloaded) < 3:
            assert time.monotonic() < until, self.unloaded
            time.sleep(0.01)


def test_what_goes_wrong_does_not_end_unloading(open_store: OpenStore) -> None:
    embedder, ended = UnloadedEmbedder(), threading.Event()
    store = open_store(embedder=embedder)
    embedder.down = True
    prepare(lambda: store)
    looking = threading.Thread(target=unload_when_idle, args=(store, 0.04, ended))
    looking.start()
    embedder.wait()
    ended.set()
    looking.join(10)
    assert not looking.is_alive()
    assert set(embedder.unloaded) == {0.04}


def test_a_store_that_cannot_be_opened_ahead_is_told_to_whoever_asks() -> None:
    asked = threading.Event()

    def give() -> Opened:
        asked.set()
        raise OSError("no such disk")

    lazy = LazyStore(give)
    lazy.prepare_in_background()
    assert asked.wait(20), "it was tried ahead, and nobody was there to be told"
    with pytest.raises(OSError, match="no such disk"):
        lazy.get()


def test_a_store_that_opens_late_is_looked_after(open_store: OpenStore) -> None:
    embedder = UnloadedEmbedder()
    store = open_store(embedder=embedder)
    embedder.down = True
    lazy = LazyStore(lambda: Opened(store, load_settings({"unload_after_seconds": 1})))
    lazy.prepare_in_background()
    embedder.wait()
    lazy.close()
    assert set(embedder.unloaded) == {1}


def test_a_served_store_makes_missing_vectors_when_the_provider_is_back(
    open_store: OpenStore,
) -> None:
    embedder, ended = WatchedEmbedder(), threading.Event()
    store = open_store(embedder=embedder)
    embedder.down = True
    store.save_many({"content": f"written while the provider was away {n}"} for n in range(20))
    looking = threading.Thread(target=make_missing_vectors, args=(store, ended, 0.02))
    looking.start()
    time.sleep(0.2)
    assert (store.count_pending(), embedder.embedded) == (20, [])
    embedder.down = False
    until = time.monotonic() + 20
    while store.count_pending():
        assert time.monotonic() < until
        time.sleep(0.01)
    ended.set()
    looking.join(10)
    assert not looking.is_alive()
    assert store.search("provider", mode="vector", limit=50).total_results == 20


def test_a_served_store_leaves_missing_vectors_to_whoever_makes_them(
    open_store: OpenStore,
) -> None:
    embedder, elsewhere = WatchedEmbedder(), WatchedEmbedder()
    store, other = open_store(embedder=embedder), open_store(embedder=elsewhere)
    embedder.down = True
    store.save_many({"content": f"written while the provider was away {n}"} for n in range(20))
    embedder.down = False

    class Enough(Exception):
        pass

    def stop(_: int) -> None:
        raise Enough

    class WhileOthersWork(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            with contextlib.suppress(Enough):
                other.embed_pending(stop, at_once=1)
            return not other.count_pending()

    make_missing_vectors(store, WhileOthersWork())
    assert len(elsewhere.embedded) == 20
    assert embedder.embedded == []
