"""Which memory a name means: an id, or else the place of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.errors import NotFound
from byheart.memory_store import MemoryStore


def test_a_path_is_seen_from_the_working_folder(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = store.save("The kelp grows.", path=f"{tmp_path}/deep/mem_kelp.md")
    monkeypatch.chdir(tmp_path)
    for name in ("deep/mem_kelp.md", "./deep/../deep/mem_kelp.md:1"):
        assert store.get(name).memory_id == saved.memory_id
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert store.get("mem_kelp.md").memory_id == saved.memory_id


def test_a_file_may_be_called_like_a_line_or_a_chunk(store: MemoryStore) -> None:
    odd = [store.save(f"{path} is odd.", path=path) for path in ("/n/a:12", "/n/b#3", "/n/a")]
    assert store.get("/n/a:12").memory_id == odd[0].memory_id
    assert store.get("/n/b#3").memory_id == odd[1].memory_id
    assert store.get("/n/a:7").memory_id == odd[2].memory_id


def test_the_name_of_a_memory_is_no_path(store: MemoryStore) -> None:
    ours = store.save("Ours.")
    store.save("Others may be called what they like.", path=f"{ours.memory_id}#0")
    store.save("Even so.", path=ours.memory_id)
    assert store.get(ours.memory_id).content == "Ours."
    assert store.expand(f"{ours.memory_id}#0").expanded_content == "Ours."
    assert store.sessions_of([ours.memory_id, "/nowhere"]) == {ours.memory_id: None}


def test_a_working_folder_that_was_deleted_only_hides_what_is_named_from_there(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = store.save("The kelp grows.", path="/sea/kelp.md")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert store.get("/sea/kelp.md").memory_id == saved.memory_id
    with pytest.raises(NotFound):
        store.get("kelp.md")
