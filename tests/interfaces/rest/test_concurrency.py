"""Searches do not wait for saves, and a long import does not hold them up."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2

from tests.interfaces.rest.conftest import Serve, Server

WORDS = ("river", "stone", "cloud", "forest", "engine", "signal", "copper", "winter")


def fill(server: Server, memories: int) -> None:
    server.store.save_many(
        {"content": f"Memory {each} about {WORDS[each % 8]} and {WORDS[each // 8 % 8]}."}
        for each in range(memories)
    )


def time_search(client: httpx2.Client, number: int) -> float:
    started = time.perf_counter()
    answer = client.post("/search", json={"query": f"{WORDS[number % 8]} {number}"})
    assert answer.status_code == 200
    assert answer.json()["count"] == 10
    return time.perf_counter() - started


def test_32_searches_do_not_queue_behind_saves_that_wait_for_the_lock(serve: Serve) -> None:
    import apsw

    server = serve(busy_timeout_seconds=30)
    fill(server, 200)
    client = server.client()
    other = apsw.Connection(server.store.status().store)
    other.execute("BEGIN IMMEDIATE")  # as a slow disk or another process would
    with ThreadPoolExecutor(40) as pool:
        saves = [
            pool.submit(client.post, "/memories", json={"content": f"New {each}"})
            for each in range(8)
        ]
        time.sleep(0.3)
        times = list(pool.map(lambda each: time_search(client, each), range(32)))
        assert not any(save.done() for save in saves)
        other.execute("ROLLBACK")
        assert {save.result().status_code for save in saves} == {201}
    other.close()
    assert max(times) < 5


def test_a_long_import_does_not_block_a_search(serve: Serve) -> None:
    server = serve()
    fill(server, 500)
    client = server.client()
    alone = statistics.median(time_search(client, each) for each in range(20))
    items = [{"content": f"# Imported {each}\n\n" + " ".join(WORDS * 20)} for each in range(400)]
    answered: list[int] = []

    def load() -> None:
        answer = client.post("/memories", json={"items": items})
        answered.append(answer.status_code)

    thread = threading.Thread(target=load)
    thread.start()
    time.sleep(0.2)
    during = []
    while thread.is_alive():
        during.append(time_search(client, len(during)))
    thread.join()
    assert answered == [200]
    assert len(during) >= 3  # several were answered while it ran
    assert statistics.median(during) < 0.05 + 20 * alone


def test_saves_and_searches_at_once_lose_nothing_and_see_everything(serve: Serve) -> None:
    server = serve()
    client = server.client()

    def save_and_find(number: int) -> bool:
        text = f"Unique{number} fact"
        saved = client.post("/memories", json={"content": text}).json()["memory_id"]
        found = client.post("/search", json={"query": f"Unique{number}", "mode": "fts"}).json()
        return saved in [each["memory_id"] for each in found["results"]]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(save_and_find, range(100)))
    assert server.store.status().index.memories == 100
