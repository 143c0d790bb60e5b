"""What a served store is looked after by, whatever goes wrong meanwhile."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from byheart.contracts import Vectors
from byheart.errors import EmbeddingError
from byheart.interfaces.background_work import make_missing_vectors, prepare, unload_when_idle
from byheart.interfaces.mcp.lazy_store import LazyStore, Opened
from byheart.settings import load_settings
from tests.conftest import OpenStore, WatchedEmbedder
from tests.waiting import PATIENCE_SECONDS, wait_until


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
        wait_until(lambda: len(self.unloaded) >= 3, self.unloaded)


def test_what_goes_wrong_does_not_end_unloading(open_store: OpenStore) -> None:
    embedder, ended = UnloadedEmbedder(), threading.Event()
    store = open_store(embedder=embedder)
    embedder.down = True
    prepare(lambda: store)
    looking = threading.Thread(target=unload_when_idle, args=(store, 0.04, ended))
    looking.start()
    embedder.wait()
    ended.set()
    looking.join(PATIENCE_SECONDS)
    assert not looking.is_alive()
    assert set(embedder.unloaded) == {0.04}


def test_a_store_that_cannot_be_opened_ahead_is_told_to_whoever_asks() -> None:
    asked = threading.Event()

    def give() -> Opened:
        asked.set()
        raise OSError("no such disk")

    lazy = LazyStore(give)
    lazy.prepare_in_background()
    assert asked.wait(PATIENCE_SECONDS), "it was tried ahead, and nobody was there to be told"
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
    assert (store.admin.count_pending(), embedder.embedded) == (20, [])
    embedder.down = False
    wait_until(lambda: not store.admin.count_pending())
    ended.set()
    looking.join(PATIENCE_SECONDS)
    assert not looking.is_alive()
    assert store.search("provider", mode="vector", limit=50).total_results == 20


class ChoosyEmbedder(WatchedEmbedder):
    """Refuse every batch with a text that says POISON, and count these."""

    refusals = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        if any("POISON" in text for text in texts):
            self.refusals += 1
            raise EmbeddingError("400: this input is refused")
        return super().embed(texts)


class Looks(threading.Event):
    """Do something before each look, and end after the last."""

    def __init__(self, *before_each: Callable[[], object]) -> None:
        super().__init__()
        self._before_each = iter(before_each)
        self.waited: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout or 0)
        act = next(self._before_each, None)
        if act is not None:
            act()
        return act is None


def test_a_served_store_makes_missing_vectors_though_as_many_were_refused_before(
    open_store: OpenStore,
) -> None:
    choosy, away = ChoosyEmbedder(), WatchedEmbedder()
    store, other = open_store(embedder=choosy), open_store(embedder=away)
    refused = store.save("some POISON").memory_id
    asked = choosy.refusals
    away.down = True

    def take_its_place() -> None:
        store.forget(refused, hard=True)
        other.save("written while the provider was away")

    make_missing_vectors(store, Looks(*[lambda: None] * 3, take_its_place, lambda: None))
    assert store.admin.count_pending() == 0
    assert choosy.refusals == asked, "what was refused is not asked for with every look"


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
                other.admin.embed_pending(stop, at_once=1)
            return not other.admin.count_pending()

    make_missing_vectors(store, WhileOthersWork())
    assert len(elsewhere.embedded) == 20
    assert embedder.embedded == []


def test_a_served_store_looks_more_and_more_rarely_while_vectors_cannot_be_kept(
    open_store: OpenStore,
) -> None:
    embedder = WatchedEmbedder(4096)
    store = open_store(embedder=embedder)
    embedder.down = True
    store.save_many({"content": f"written while the provider was away {n}"} for n in range(20))
    embedder.down = False

    def allow(pages: int) -> None:
        with store._storage._backend.database.writing() as connection:
            connection.execute(f"PRAGMA max_page_count = {pages}")

    looks = Looks(lambda: allow(1), *[lambda: None] * 9, lambda: allow(1_000_000), lambda: None)
    make_missing_vectors(store, looks)
    assert store.admin.count_pending() == 0
    minutes = [seconds / 60 for seconds in looks.waited]
    assert 0.75 <= minutes[1] <= 1.25
    assert 6 <= minutes[4] <= 10
    assert 45 <= minutes[9] <= 75
    assert 0.75 <= minutes[-1] <= 1.25
