"""Damaged model files are noticed at first use, repaired if possible, and worked around if not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.embedding import model_cache
from byheart.embedding.model_cache import find_model, get_model
from byheart.embedding.model_library import model_status
from byheart.embedding.model_sources import ModelSources
from byheart.model import Finding
from byheart.settings import load_settings
from byheart.store import MemoryStore

NOWHERE = ModelSources(order=())
FILES = ("model.onnx", "tokenizer.json", "manifest.json")


def silent(_done: int, _total: int) -> None:
    pass


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x20
    path.write_bytes(content)


def flip_behind_its_back(path: Path) -> None:
    """Change a byte as a failing disk does: size and times stay."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[:200] = bytes(200)
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def swap(path: Path) -> None:
    other = path.with_name("tokenizer.json" if path.name != "tokenizer.json" else "model.onnx")
    aside = path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)


def make_unreadable(path: Path) -> None:
    # A folder in its place is unreadable to every user, root included.
    path.unlink()
    path.mkdir()


DAMAGES = [flip, cut, empty, swap, make_unreadable]


@pytest.fixture
def tiny(tmp_path: Path, write_tiny_model: Callable[..., Path]) -> Path:
    return write_tiny_model(tmp_path / "tiny")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def open_with(tmp_path: Path, tiny: Path, cache: Path) -> Iterator[Callable[..., MemoryStore]]:
    """Open a store that embeds with the tiny model."""
    opened = []

    def open_one(**settings: Any) -> MemoryStore:
        given = {"model_path": str(tiny), "cache_dir": str(cache), "offline": True, **settings}
        given["ollama_url"] = "http://127.0.0.1:9"  # nobody answers there
        given["db_path"] = str(tmp_path / "memory.db")
        store = byheart.open(settings=load_settings(given))
        opened.append(store)
        return store

    yield open_one
    for each in opened:
        each.close()


def take_source_away(tiny: Path) -> Callable[[], object]:
    """Make the folder useless to build from, without changing what the cache compares."""
    away = (tiny / "tokenizer.json").rename(tiny / "away")
    return lambda: away.rename(tiny / "tokenizer.json")


def model_finding(store: MemoryStore, **how: bool) -> Finding:
    [finding] = [each for each in store.admin.doctor(**how) if each.check == "model files"]
    return finding


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed_at_first_use_and_built_again_from_the_source(
    damage: Callable[[Path], None], file: str, tiny: Path, cache: Path
) -> None:
    built = get_model(str(tiny), cache, NOWHERE, silent)
    before = {name: (built.folder / name).read_bytes() for name in FILES}
    damage(built.folder / file)
    assert find_model(str(tiny), cache) is None
    assert not model_status(str(tiny), cache).ready
    assert get_model(str(tiny), cache, NOWHERE, silent) == built
    assert {name: (built.folder / name).read_bytes() for name in FILES} == before


@pytest.mark.parametrize("provider", ["auto", "onnx"])
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_without_a_source_everything_works_on_keywords_and_says_why(
    damage: Callable[[Path], None],
    file: str,
    provider: str,
    open_with: Callable[..., MemoryStore],
    tiny: Path,
    cache: Path,
) -> None:
    folder = get_model(str(tiny), cache, NOWHERE, silent).folder
    damage(folder / file)
    bring_back = take_source_away(tiny)
    store = open_with(embedding_provider=provider)
    saved = store.save("the frozen deploy ends on Monday")
    assert saved.pending_vectors == 1
    store.log("chat", "user", "when does the deploy freeze end?")
    found = store.search("deploy")
    assert [hit.memory_id for hit in found.results]
    assert found.degraded
    assert store.recall("deploy").degraded
    assert store.context("chat", "deploy").degraded
    # The source is back: the doctor repairs, and the vectors are made.
    bring_back()
    fixed = store.admin.doctor(fix=True)
    assert not [each for each in fixed if not each.ok]
    assert store.search("deploy").degraded is None
    assert store.status().index.pending_vectors == 0


def test_the_reason_names_the_damaged_file(
    open_with: Callable[..., MemoryStore], tiny: Path, cache: Path
) -> None:
    folder = get_model(str(tiny), cache, NOWHERE, silent).folder
    flip(folder / "tokenizer.json")
    bring_back = take_source_away(tiny)
    store = open_with(embedding_provider="auto")
    degraded = store.search("deploy").degraded
    assert degraded is not None
    assert "tokenizer.json" in degraded
    assert "damaged" in degraded
    finding = model_finding(store)
    assert not finding.ok
    assert "tokenizer.json" in finding.message
    assert not model_finding(store, fix=True).ok  # there is nothing to repair it from
    bring_back()
    mended = model_finding(store, fix=True)
    assert mended.ok
    assert mended.fixed
    assert model_finding(store).ok


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_bytes_that_a_disk_changed_after_verification_do_not_fail_a_save(
    file: str, open_with: Callable[..., MemoryStore], tiny: Path, cache: Path
) -> None:
    folder = get_model(str(tiny), cache, NOWHERE, silent).folder
    flip_behind_its_back(folder / file)
    bring_back = take_source_away(tiny)
    store = open_with(embedding_provider="auto")
    assert store.save("the frozen deploy ends on Monday").pending_vectors == 1
    assert store.search("deploy").degraded
    store.close()
    bring_back()
    again = open_with(embedding_provider="auto")
    assert again.save("another text").pending_vectors == 0
    assert again.search("deploy").degraded is None or "vectors" in (
        again.search("deploy").degraded or ""
    )


def test_a_verified_model_is_not_hashed_again(
    tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = get_model(str(tiny), cache, NOWHERE, silent)
    hashed: list[Path] = []
    real = model_cache.sha256_of
    monkeypatch.setattr(model_cache, "sha256_of", lambda path: hashed.append(path) or real(path))
    monkeypatch.setattr(model_cache, "_verified_here", {})
    assert find_model(str(tiny), cache)
    assert hashed == []
    os.utime(built.graph)  # copied, or touched
    assert find_model(str(tiny), cache)
    assert hashed == [built.graph]
    monkeypatch.setattr(model_cache, "_verified_here", {})
    assert find_model(str(tiny), cache)
    assert hashed == [built.graph]


def test_a_model_of_an_earlier_version_is_verified_once_and_used(tiny: Path, cache: Path) -> None:
    built = get_model(str(tiny), cache, NOWHERE, silent)
    manifest = json.loads((built.folder / "manifest.json").read_text())
    del manifest["check"]
    (built.folder / "manifest.json").write_text(json.dumps(manifest))
    (built.folder / "verified.json").unlink()
    assert find_model(str(tiny), cache) == built
    assert (built.folder / "verified.json").is_file()


def test_files_of_another_model_are_refused(
    tmp_path: Path, tiny: Path, cache: Path, write_tiny_model: Callable[..., Path]
) -> None:
    other = write_tiny_model(tmp_path / "other")
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    mine = get_model(str(tiny), cache, NOWHERE, silent)
    theirs = get_model(str(other), cache, NOWHERE, silent)
    assert mine.graph.stat().st_size == theirs.graph.stat().st_size
    shutil.copy2(theirs.graph, mine.graph)
    assert find_model(str(tiny), cache) is None
