"""`backup`: a consistent copy of a store that is in use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from byheart.errors import ByheartError, InvalidInput
from byheart.store import MemoryStore

OpenStore = Callable[..., MemoryStore]


def test_a_copy_opens_passes_the_doctor_and_holds_the_same(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    saved = store.save("# Tea\n\nAnna drinks tea.").memory_id
    store.update(saved, content="# Tea\n\nAnna drinks coffee.")
    backup = store.admin.backup(tmp_path / "copy.db")
    assert backup.size_bytes == (tmp_path / "copy.db").stat().st_size
    copy = open_store(tmp_path / "copy.db")
    assert copy.get(saved) == store.get(saved)
    assert copy.search("coffee").results[0].memory_id == saved
    assert all(finding.ok for finding in copy.admin.doctor())


def test_a_copy_taken_while_others_write_is_whole(
    store: MemoryStore, open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    writer, done = open_store(path), threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            writer.save(f"text number {number}")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            store.admin.backup(tmp_path / f"copy-{number}.db")
    finally:
        done.set()
        thread.join()
    for number in range(5):
        copy = open_store(tmp_path / f"copy-{number}.db")
        assert all(finding.ok for finding in copy.admin.doctor())
    assert not list(tmp_path.glob("*.partial"))


def test_a_file_that_is_there_is_replaced_only_when_asked(
    store: MemoryStore, path: Path, tmp_path: Path
) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(InvalidInput, match="exists already"):
        store.admin.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"
    store.admin.backup(tmp_path / "copy.db", overwrite=True)
    with pytest.raises(InvalidInput, match="is the store itself"):
        store.admin.backup(path, overwrite=True)
    with pytest.raises(InvalidInput, match="is a folder"):
        store.admin.backup(tmp_path)


def test_the_store_itself_is_left_alone_by_whatever_name_it_is_called(
    store: MemoryStore, path: Path, tmp_path: Path
) -> None:
    memory_id = store.save("Anna drinks tea.").memory_id
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    file = path.stat().st_ino
    for name in (path, tmp_path / "link" / path.name, tmp_path / "folder" / ".." / path.name):
        with pytest.raises(InvalidInput, match="is the store itself"):
            store.admin.backup(name, overwrite=True)
        with pytest.raises(InvalidInput, match="is the store itself"):
            store.export(name, overwrite=True)
        with pytest.raises(InvalidInput, match="is the store itself"):
            store.import_(name)
    assert path.stat().st_ino == file
    assert store.get(memory_id)


def test_a_place_that_cannot_be_written_to_is_named(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(ByheartError, match=r"cannot write .*missing/copy\.db"):
        store.admin.backup(tmp_path / "missing" / "copy.db")


def test_only_those_may_read_the_copy_who_may_read_the_store(
    store: MemoryStore, path: Path, tmp_path: Path
) -> None:
    path.chmod(0o600)
    store.admin.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
