"""Exports over HTTP: whole, confined to the key's space, and the same file as `byheart export`."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import httpx2
import pytest

from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.interfaces.rest.conftest import Server


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
    def refuse() -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    answer = client.get("/export")
    assert answer.status_code == 507
    assert "No space left" in answer.json()["detail"]
