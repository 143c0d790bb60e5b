"""Only their owner can read the files that hold memories and keys, from the moment they exist."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import byheart
from byheart.model import Finding
from byheart.settings import data_folder, default_config_path, set_setting
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from byheart.system.private_files import make_private_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such permissions")
OpenStore = Callable[..., MemoryStore]


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """Let everything be readable that is not made private."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def finding(store: MemoryStore, check: str, **how: bool) -> Finding:
    [found] = [each for each in store.admin.doctor(**how) if each.check == check]
    return found


def test_every_file_of_a_new_store_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "memory.db"
    with byheart.open(path, embedding_provider="hash") as store:
        store.save_many({"content": f"text {n}"} for n in range(500))
        store.search("text")
        store.admin.stats()
        assert path.with_name("memory.db-wal").exists()
        store.admin.backup(tmp_path / "copy.db")
        store.save("more")
        seen = {each.name: mode(each) for each in path.parent.iterdir()}
    seen |= {each.name: mode(each) for each in path.parent.iterdir()}
    assert {"memory.db", "memory.db-wal", "memory.db-shm", "memory.db-index"} <= set(seen)
    assert set(seen.values()) == {0o600}
    assert mode(tmp_path / "copy.db") == 0o600
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


def test_the_database_is_never_readable_to_others_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    real = os.open

    def spy(path, flags, mode=0o777, **rest):  # type: ignore[no-untyped-def]
        if flags & os.O_CREAT:
            made.append((Path(path).name, mode))
        return real(path, flags, mode, **rest)

    monkeypatch.setattr(os, "open", spy)
    SqliteStorage(tmp_path / "memory.db").close()
    assert ("memory.db", 0o600) in made


def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o755)
    byheart.open(tmp_path / "mine" / "memory.db", embedding_provider="hash").close()
    assert mode(tmp_path / "mine") == 0o755


def test_folders_of_several_levels_are_made_private_and_may_exist(tmp_path: Path) -> None:
    for _ in range(2):
        make_private_folder(tmp_path / "a" / "b" / "c")
    assert {mode(tmp_path / each) for each in ("a", "a/b", "a/b/c")} == {0o700}


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_private_folder(tmp_path / "file" / "below")
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


def test_the_platforms_data_folder_is_closed_when_it_is_as_earlier_versions_left_it() -> None:
    folder = data_folder()
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    byheart.open(embedding_provider="hash").close()
    assert mode(folder) == 0o700
    folder.chmod(0o750)  # somebody decided so
    byheart.open(embedding_provider="hash").close()
    assert mode(folder) == 0o750


def test_exports_and_vaults_are_private(store: MemoryStore, tmp_path: Path) -> None:
    saved = store.save("private words", title="A note")
    store.export(tmp_path / "all.jsonl")
    store.export(tmp_path / "vault", format="markdown")
    store.write_to_file(saved.memory_id, tmp_path / "text.md")
    assert mode(tmp_path / "all.jsonl") == mode(tmp_path / "text.md") == 0o600
    within = list((tmp_path / "vault").rglob("*"))
    assert [each for each in within if each.is_file()]
    assert mode(tmp_path / "vault") == 0o700
    assert {mode(each) for each in within if each.is_dir()} <= {0o700}
    assert {mode(each) for each in within if each.is_file()} == {0o600}


def test_a_file_that_others_may_read_stays_so_when_it_is_overwritten(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.save("words")
    target = tmp_path / "all.jsonl"
    target.touch()
    target.chmod(0o644)
    store.export(target, overwrite=True)
    assert mode(target) == 0o644


def test_doctor_names_files_that_everybody_can_read_and_closes_them(
    open_store: OpenStore, path: Path
) -> None:
    path.parent.chmod(0o755)
    store = open_store()
    store.save("private words")
    assert finding(store, "file permissions").ok
    path.chmod(0o644)
    path.with_name("memory.db-wal").chmod(0o644)
    found = finding(store, "file permissions")
    assert not found.ok
    assert "memory.db, memory.db-wal" in found.message
    assert "fix=True" in found.hint
    assert finding(store, "file permissions", fix=True).fixed
    assert mode(path) == mode(path.with_name("memory.db-wal")) == 0o600
    assert finding(store, "file permissions").ok


def test_files_in_a_folder_that_nobody_else_can_enter_are_in_order(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    path.chmod(0o644)
    path.parent.chmod(0o700)
    assert finding(store, "file permissions").ok


def test_a_group_may_share_a_store_on_purpose(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    path.parent.chmod(0o755)
    path.chmod(0o660)
    assert finding(store, "file permissions").ok


def test_a_config_file_that_gets_a_key_becomes_private(store: MemoryStore) -> None:
    path = default_config_path()
    path.write_text("space = 'work'\n")
    path.chmod(0o644)
    path.parent.chmod(0o755)
    set_setting("openai_api_key", "sk-secret")
    assert mode(path) == 0o600
    path.chmod(0o644)  # by hand, or by an earlier version
    found = finding(store, "config file")
    assert not found.ok
    assert "API key" in found.message
    assert "sk-secret" not in found.message
    assert finding(store, "config file", fix=True).fixed
    assert mode(path) == 0o600
    assert finding(store, "config file").ok


def test_a_config_file_without_keys_may_be_read_by_everybody(store: MemoryStore) -> None:
    path = default_config_path()
    path.write_text("space = 'work'\n")
    path.chmod(0o644)
    assert finding(store, "config file").ok
