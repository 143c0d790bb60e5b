"""Exports over HTTP: whole, confined to the key's space, and the same file as `byheart export`.

Downloads that are slow or given up keep no more of the disk than two files for each API key.
"""

from __future__ import annotations

import gc
import io
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.interfaces.rest.conftest import Serve, Server
from tests.waiting import PATIENCE_SECONDS


def fill(store: MemoryStore) -> list[str]:
    """Save memories with everything that an export can lose; the last one is forgotten."""
    first = store.save("The deploy key is in the drawer.", kind="fact", entities=["Marie"])
    store.update(first.memory_id, content="The deploy key is in the vault.")
    store.pin(first.memory_id)
    second = store.save("The deploy key is lost.", metadata={"year": 2026}, tags=["old"])
    store.supersede(second.memory_id, by=first.memory_id)
    third = store.save("Forgotten, not erased.", session_id="s1")
    store.forget(third.memory_id)
    erased = store.save("Erased without a trace.")
    store.forget(erased.memory_id, hard=True)
    return [each.memory_id for each in (first, second, third)]


def written(store: MemoryStore, **part: Any) -> bytes:
    """Give the file that the library writes."""
    out = io.BytesIO()
    store.export(out, **part)
    return out.getvalue()


def test_the_file_is_that_of_the_command_line_and_gives_the_same_store_back(
    server: Server, client: httpx2.Client, open_store: OpenStore, tmp_path: Path
) -> None:
    fill(server.store)
    answer = client.get("/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"].startswith('attachment; filename="byheart-default')
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.content == written(server.store)
    with_vectors = client.get("/export?vectors=true").content
    assert with_vectors == written(server.store, vectors=True)
    other = open_store(tmp_path / "other.db")
    other.import_(io.BytesIO(with_vectors))
    assert written(other, vectors=True) == with_vectors


def test_chosen_memories_come_with_their_history_whether_asked_by_get_or_post(
    server: Server, client: httpx2.Client, open_store: OpenStore, tmp_path: Path
) -> None:
    ids = fill(server.store)
    by_get = client.get("/export", params={"memory_id": ids}).content
    assert by_get == client.post("/export", json={"memory_id": ids}).content
    other = open_store(tmp_path / "other.db")
    assert other.import_(io.BytesIO(by_get)).imported == 3
    assert other.get(ids[0]).pinned_at == server.store.get(ids[0]).pinned_at
    assert other.get(ids[1]).superseded_by == ids[0]
    for each in ids:
        assert other.history(each) == server.store.history(each)


def test_memories_of_another_space_and_keys_of_one_session_get_nothing(
    server: Server, client: httpx2.Client
) -> None:
    hidden = server.store.save("Of another space.", space="work").memory_id
    assert client.get("/export", params={"memory_id": hidden}).status_code == 404
    assert client.get("/export?space=work").status_code == 403
    assert b"Of another space" not in client.get("/export").content
    assert server.client("helper", session_id="s1").get("/export").status_code == 403
    reader = server.client("reader", access="read")
    assert reader.get("/export").status_code == 200


@pytest.mark.parametrize("asked", ["vectors=maybe", "nonsense=1", "memory_id="])
def test_a_wrong_parameter_is_refused(client: httpx2.Client, asked: str) -> None:
    assert client.get(f"/export?{asked}").status_code == 422


def test_a_full_disk_is_told_and_not_half_a_file(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    answer = client.get("/export")
    assert answer.status_code == 507
    assert "No space left" in answer.json()["detail"]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note the temporary files that are opened, and leave them to the server to close."""
    files: list[Any] = []
    temporary_file = tempfile.TemporaryFile

    def noting(**given: Any) -> Any:
        files.append(temporary_file(**given))
        return files[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", noting)
    return files


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def fill_long(store: MemoryStore) -> None:
    """Save more than the system sends in advance to a client that reads nothing."""
    for number in range(20):
        store.save(f"Memory {number}.", metadata={"long": "x" * 950_000})


def wait_until_closed(files: list[Any]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not all(each.closed for each in files):
        assert time.monotonic() < end, "a file was left open"
        time.sleep(0.01)


def test_a_download_that_is_given_up_leaves_no_file_open(
    server: Server, client: httpx2.Client, opened: list[Any]
) -> None:
    fill_long(server.store)
    with without_collector():
        for _ in range(3):
            with client.stream("GET", "/export") as answer:
                next(answer.iter_raw(100))
            wait_until_closed(opened)
    assert len(opened) == 3


def test_a_key_may_have_two_exports_under_way_until_their_last_byte(
    server: Server, client: httpx2.Client, opened: list[Any]
) -> None:
    fill_long(server.store)
    with client.stream("GET", "/export") as first:
        with client.stream("GET", "/export") as second:
            refused = client.get("/export")
            assert (first.status_code, second.status_code) == (200, 200)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert "2 exports of this API key are under way" in refused.json()["detail"]
            with server.client("other").stream("GET", "/export") as of_another_key:
                assert of_another_key.status_code == 200
            second.read()
        wait_until_closed(opened[1:])
        assert client.get("/export?memory_id=none").status_code == 404
        assert client.get("/export").status_code == 200  # a failure took no place


def test_exports_delay_neither_searches_nor_saves(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(max_concurrent_reads=1, max_concurrent_writes=1)
    client, going_on = server.client(), threading.Event()
    begun = threading.Semaphore(0)
    temporary_file = tempfile.TemporaryFile

    def wait_then_open(**given: Any) -> Any:
        begun.release()
        going_on.wait(PATIENCE_SECONDS)
        return temporary_file(**given)

    monkeypatch.setattr(tempfile, "TemporaryFile", wait_then_open)
    with ThreadPoolExecutor() as exporting:
        exports = [exporting.submit(client.get, "/export") for _ in range(2)]
        assert begun.acquire(timeout=PATIENCE_SECONDS)
        try:
            assert client.post("/memories", json={"content": "Herons wait."}).status_code == 201
            assert "Herons wait." in client.post("/search", json={"query": "herons"}).text
            assert not any(each.done() for each in exports)
        finally:
            going_on.set()
        assert [each.result().status_code for each in exports] == [200, 200]


def test_an_export_is_written_into_files_dir_and_nowhere_else(
    server: Server, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    folder = server.settings.files_dir
    assert not folder.exists()
    assert client.get("/export").content == written(server.store)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.iterdir()) == []
