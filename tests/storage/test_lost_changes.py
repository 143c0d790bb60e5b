"""Acknowledged saves that a damaged or deleted log takes away are never missing unseen."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from byheart.errors import StoreBusy, StoreDamaged, StoreUnreachable
from byheart.model import Finding
from byheart.storage.sqlite.database import Database
from byheart.store import MemoryStore

OpenStore = Callable[..., MemoryStore]


def look(store: MemoryStore, **how: bool) -> Finding:
    [finding] = [each for each in store.admin.doctor(**how) if each.check == "last changes"]
    return finding


def copy_files(path: Path, to: Path) -> Path:
    """Copy a store with its log as it is in use."""
    to.mkdir()
    for file in path.parent.glob("memory.db*"):
        if not file.name.endswith("-shm"):
            shutil.copyfile(file, to / file.name)
    return to / path.name


@pytest.fixture
def in_use(open_store: OpenStore, path: Path) -> Path:
    """Give a store whose log holds the last of its saves."""
    store = open_store()
    store.save_many({"content": f"memory {n} about topics"} for n in range(20))
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    for n in range(5):
        store.save(f"a late memory {n} about topics")
    return path


def test_a_damaged_log_that_hides_saves_is_told_of(
    in_use: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    path = copy_files(in_use, tmp_path / "damaged")
    log = path.with_name("memory.db-wal")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    store = open_store(path)
    assert store.status().index.memories < 25
    for degraded in (
        store.status().degraded,
        store.search("topics").degraded,
        store.recall("topics").degraded,
        store.context("chat", "topics").degraded,
    ):
        assert degraded is not None
        assert "are not in it" in degraded
    finding = look(store)
    assert not finding.ok
    assert "fix=True" in finding.hint
    # Going on to save does not hide it, in this process or the next.
    for n in range(10):
        store.save(f"something new {n}")
    assert not look(store).ok
    store.close()
    again = open_store(path)
    assert not look(again).ok
    assert look(again, fix=True).fixed
    assert look(again).ok
    assert again.search("topics").degraded is None
    again.save("one more")
    again.close()
    assert open_store(path).status().degraded is None


def test_an_emptied_store_is_refused_and_its_log_kept(
    in_use: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    path = copy_files(in_use, tmp_path / "emptied")
    log = path.with_name("memory.db-wal")
    content = path.read_bytes(), log.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(StoreDamaged, match="is empty, but 25 changes were made to it"):
        open_store(path)
    assert (path.read_bytes(), log.read_bytes()) == (b"", content[1])
    path.write_bytes(content[0])
    assert open_store(path).status().index.memories == 25


def test_a_store_may_begin_anew_in_the_place_of_a_deleted_one(
    in_use: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    path = copy_files(in_use, tmp_path / "deleted")
    for file in (path, path.with_name("memory.db-wal")):
        file.unlink()
    store = open_store(path)
    store.save("The tapir sleeps.")
    assert look(store).ok


def test_an_older_copy_can_be_put_back_on_purpose(
    open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    store = open_store()
    store.save("first")
    store.admin.backup(tmp_path / "copy.db")
    store.save("second")
    store.close()
    shutil.copyfile(tmp_path / "copy.db", path)
    first, second = open_store(), open_store()
    assert "older copy" in str(first.status().degraded)
    assert look(first, fix=True).fixed
    assert first.status().degraded is None
    assert second.status().degraded is None  # another process hears of it
    first.save("third")
    first.close()
    assert open_store().status().degraded is None


def test_another_store_in_the_place_of_the_first_is_no_loss(
    open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    for text in ("first", "second"):
        store = open_store()
        store.save(text)
        store.close()
    other = open_store(tmp_path / "other.db")
    other.save("alone")
    other.close()
    shutil.copyfile(tmp_path / "other.db", path)
    assert open_store().status().degraded is None


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(52)])
def test_the_file_that_knows_may_be_missing_or_damaged(
    open_store: OpenStore, path: Path, content: bytes
) -> None:
    store = open_store()
    store.save("first")
    store.close()
    path.with_name("memory.db-last").write_bytes(content)
    again = open_store()
    assert look(again).ok
    again.save("second")
    again.close()
    assert open_store().status().degraded is None


def test_a_compacted_store_has_lost_nothing(open_store: OpenStore) -> None:
    store = open_store()
    store.save_many({"content": f"memory {n}"} for n in range(50))
    store.admin.doctor(optimize=True)
    store.close()
    assert open_store().status().degraded is None


# --- The log goes away while the store is open ------------------------------------------------


def test_a_deleted_log_is_noticed_and_nothing_is_lost(in_use: Path, open_store: OpenStore) -> None:
    store = open_store()
    store.search("topics")
    store.save("saved before the log was deleted")
    in_use.with_name("memory.db-wal").unlink()
    with pytest.raises(StoreUnreachable, match="everything that was saved is in") as raised:
        store.save("saved after")
    assert "stop all programs" in raised.value.hint
    with pytest.raises(StoreUnreachable):
        store.search("topics")


def test_what_was_saved_is_there_when_everybody_opened_it_again(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    saved = [store.save(f"memory {n}").memory_id for n in range(20)]
    path.with_name("memory.db-wal").unlink()
    with pytest.raises(StoreUnreachable, match="everything that was saved is in"):
        store.search("memory")
    store.close()
    again = open_store()
    assert again.status().degraded is None
    assert {again.get(each).memory_id for each in saved} == set(saved)
    assert all(finding.ok for finding in again.admin.doctor())


def test_a_log_that_is_deleted_while_a_save_is_under_way_is_not_acknowledged(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from byheart.memory import transactions

    store = open_store()
    store.save("first")
    real = transactions.insert

    def insert_and_delete(*given):  # type: ignore[no-untyped-def]
        path.with_name("memory.db-wal").unlink()
        return real(*given)

    monkeypatch.setattr(transactions, "insert", insert_and_delete)
    with pytest.raises(StoreUnreachable):
        store.save("second")


def test_a_replaced_log_is_refused_too(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    store.save("first")
    log = path.with_name("memory.db-wal")
    content = log.read_bytes()
    log.unlink()
    log.write_bytes(content)
    with pytest.raises(StoreUnreachable, match="may be lost"):
        store.save("second")


def test_a_log_that_goes_with_the_last_connection_of_a_thread_is_no_loss(
    store: MemoryStore, path: Path
) -> None:
    store.close()
    database = Database(path, busy_timeout_seconds=30)
    until, lost = time.monotonic() + 1, []

    def read() -> None:
        # A failed statement closes its connection, which may be the last one at the moment.
        while time.monotonic() < until and not lost:
            try:
                with database.reading() as connection:
                    connection.execute("SELECT count(*) FROM changes").fetchall()
                with contextlib.suppress(StoreBusy), database.reading():
                    raise apsw.BusyError
            except StoreUnreachable as error:
                lost.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    database.close()
    assert not lost


def test_a_log_that_comes_and_goes_between_processes_is_no_loss(
    open_store: OpenStore, path: Path
) -> None:
    for n in range(3):
        store = open_store()
        store.save(f"memory {n}")
        store.search("memory")
        store.close()
        assert not path.with_name("memory.db-wal").exists()
    assert open_store().status().index.memories == 3
