"""Searches do not wait for saves, and a long import does not hold them up."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2

from tests.interfaces.rest.conftest import Serve, Server

WORDS = ("river", "stone", "cloud", "forest", "engine", "signal", "copper", "winter")


def fill(server: Server, memories: int) -> None:
    server.store.save_many(
        {"content": f"Memory {each} about {WORDS[each % 8]} and {WORDS[each // 8 % 8]}."}
        for each in range(memories)
    )


def count_found(client: httpx2.Client, number: int) -> int:
    answer = client.post("/search", json={"query": f"{WORDS[number % 8]} {number}"})
    assert answer.status_code == 200
    return int(answer.json()["count"])


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
        while 'under_way{lane="write"} 8' not in client.get("/metrics").text:
            assert not any(save.done() for save in saves)
        counts = list(pool.map(lambda each: count_found(client, each), range(32)))
        assert not any(save.done() for save in saves)
        other.execute("ROLLBACK")
        assert {save.result().status_code for save in saves} == {201}
    other.close()
    assert counts == [10] * 32


def test_a_long_import_does_not_block_a_search(serve: Serve) -> None:
    server = serve()
    fill(server, 500)
    client = server.client()
    items = [{"content": f"# Imported {each}\n\n" + " ".join(WORDS * 20)} for each in range(200)]
    answered: list[int] = []

    def load() -> None:
        answer = client.post("/memories", json={"items": items})
        answered.append(answer.status_code)

    thread = threading.Thread(target=load)
    thread.start()
    counts = []
    while thread.is_alive():
        counts.append(count_found(client, len(counts)))
    thread.join()
    assert answered == [200]
    assert len(counts) > 5, "many were answered while it ran"
    assert set(counts) == {10}


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
