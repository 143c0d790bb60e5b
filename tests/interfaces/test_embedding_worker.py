"""How a worker waits for work, and goes on after trouble."""

import logging
import threading
import time

import pytest

from byheart import MemoryStore
from byheart.errors import EmbedderUnavailable
from byheart.interfaces.embedding_worker import EmbeddingWorker
from byheart.model import EmbeddedShare
from tests.conftest import OpenStore, WatchedEmbedder
from tests.waiting import wait_until


def leave(store: MemoryStore, *texts: str) -> None:
    store.save_many({"content": text} for text in texts)


def test_a_worker_makes_what_comes_until_it_is_told_to_end(open_store: OpenStore) -> None:
    store, ended = open_store(embed_on_save=False), threading.Event()
    seen: list[EmbeddedShare] = []
    leave(store, *(f"text {n}" for n in range(10)))
    worker = EmbeddingWorker(open_store(), 4, on_share=seen.append)
    working = threading.Thread(target=worker.run, args=(ended,), daemon=True)
    working.start()
    wait_until(lambda: store.admin.count_pending() == 0)
    leave(store, "a late text")
    wait_until(lambda: store.admin.count_pending() == 0)
    ended.set()
    working.join(10)
    assert not working.is_alive()
    assert [each.made for each in seen if each.made] == [4, 4, 2, 1]
    assert len(seen) < 20, "it rests while there is nothing to do"


def test_once_ends_with_the_last_chunk_and_tells_trouble(open_store: OpenStore) -> None:
    embedder = WatchedEmbedder()
    store = open_store(embedder=embedder, embed_on_save=False)
    leave(store, "one", "two", "three")
    embedder.down = True
    with pytest.raises(EmbedderUnavailable, match="on holiday"):
        EmbeddingWorker(store, 2).run(threading.Event(), once=True)
    embedder.down = False
    EmbeddingWorker(store, 2).run(threading.Event(), once=True)
    assert store.admin.count_pending() == 0


def test_trouble_is_told_once_and_waited_for(
    open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    embedder, ended = WatchedEmbedder(), threading.Event()
    store = open_store(embedder=embedder, embed_on_save=False)
    leave(store, "one", "two", "three")
    embedder.down = True
    with caplog.at_level(logging.WARNING):
        working = threading.Thread(target=EmbeddingWorker(store, 2).run, args=(ended,), daemon=True)
        working.start()
        time.sleep(0.7)  # it tries three times or so
        embedder.down = False
        wait_until(lambda: store.admin.count_pending() == 0)
        ended.set()
        working.join(10)
    told, over = [each.getMessage() for each in caplog.records]
    assert told.startswith("no vectors are made; trying again: ")
    assert "on holiday" in told
    assert over == "vectors are made again"
