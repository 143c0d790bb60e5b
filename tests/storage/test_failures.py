"""What goes wrong is said clearly, with what to do, and the data stays as it was."""

import os
import random
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from byheart.errors import (
    ByheartError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnreachable,
)
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.storage.test_processes import start

OpenStore = Callable[..., MemoryStore]
TEXTS = [f"memory {n} is about topic {n % 5}" for n in range(60)]


@pytest.fixture
def saved(open_store: OpenStore, path: Path) -> Path:
    """Give the file of a closed store that holds sixty memories."""
    store = open_store()
    store.save_many({"content": text} for text in TEXTS)
    store.close()
    assert not path.with_name("memory.db-wal").exists()
    return path


def refuses_with(error: type[ByheartError], path: Path) -> ByheartError:
    with pytest.raises(error) as raised:
        SqliteStorage(path)
    assert str(path) in raised.value.message
    assert raised.value.hint
    return raised.value


# --- Damaged and foreign files ----------------------------------------------------------------


def test_a_truncated_store_is_refused_and_left_as_it_is(saved: Path, open_store: OpenStore) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[: len(whole) // 2 + 100])
    before = saved.read_bytes()

    def use() -> None:
        store = open_store()
        store.search("topic", limit=100)
        store.save("one more")
        store.list(limit=100)

    with pytest.raises(StoreDamaged) as raised:
        use()
    assert "backup" in raised.value.hint
    assert saved.read_bytes() == before


def test_a_store_with_a_garbage_header_is_refused_and_left_as_it_is(saved: Path) -> None:
    before = b"no database at all " * 10 + saved.read_bytes()[190:]
    saved.write_bytes(before)
    refuses_with(StoreDamaged, saved)
    assert saved.read_bytes() == before


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bytes_never_give_wrong_texts_only_errors_of_our_own(
    saved: Path, open_store: OpenStore, seed: int
) -> None:
    chance = random.Random(seed)
    content = bytearray(saved.read_bytes())
    for _ in range(40):
        at = chance.randrange(4096, len(content))
        content[at] ^= 0xFF
    saved.write_bytes(bytes(content))
    saved.with_name("memory.db-index").unlink(missing_ok=True)
    refused: list[StoreError] = []
    try:
        store = open_store()
    except StoreError as error:
        assert error.hint  # noqa: PT017 - refusing to open it is one of two right answers
        return
    for ask in (
        lambda: store.search("topic", limit=100, mode="fts"),
        lambda: store.search("topic", raw=True),
        lambda: store.list(limit=100),
        lambda: store.sessions.list(),
        lambda: store.save("one more"),
    ):
        try:
            ask()
        except StoreError as error:
            refused.append(error)
    assert all(error.hint for error in refused)
    [finding] = [each for each in store.admin.doctor() if each.check == "database file"]
    assert not finding.ok or not refused
    assert finding.ok or finding.hint


def test_doctor_reports_a_damaged_file_as_a_finding_with_what_to_do(
    saved: Path, open_store: OpenStore
) -> None:
    # An index of the file no longer agrees with its table.
    connection = apsw.Connection(str(saved))
    root = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'memories_by_time'"
    ).get
    size = connection.execute("PRAGMA page_size").get
    connection.close()
    content = bytearray(saved.read_bytes())
    start = (root - 1) * size
    content[start + size - 200 : start + size] = os.urandom(200)
    saved.write_bytes(bytes(content))
    findings = open_store().admin.doctor()
    [finding] = [each for each in findings if each.check == "database file"]
    assert not finding.ok
    assert "backup" in finding.hint


def test_the_doctor_does_not_fail_on_a_store_damaged_while_it_is_open(
    saved: Path, open_store: OpenStore
) -> None:
    store = open_store()
    content = bytearray(saved.read_bytes())
    for page in range(0, len(content), 4096):
        content[page : page + 64] = b"\xaa" * 64
    saved.write_bytes(bytes(content))
    [finding] = [each for each in store.admin.doctor() if each.check == "database file"]
    assert not finding.ok
    assert f"sqlite3 {saved} .recover | sqlite3 NEW.db" in finding.hint
    assert "store.admin.doctor" not in finding.hint


def test_an_sqlite_file_of_someone_else_is_refused_and_left_as_it_is(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    connection.close()
    before = path.read_bytes()
    error = refuses_with(StoreDamaged, path)
    assert "not a Byheart store" in error.message
    assert path.read_bytes() == before


def test_a_text_file_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("dear diary\n" * 1000)
    refuses_with(StoreDamaged, path)
    assert path.read_text() == "dear diary\n" * 1000


def test_an_empty_file_becomes_a_store(path: Path, open_store: OpenStore) -> None:
    path.touch()
    assert open_store().save("text").status == "created"


def test_a_folder_is_refused_by_name(tmp_path: Path) -> None:
    assert "is a folder" in refuses_with(StoreUnreachable, tmp_path).message


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnreachable, match="cannot make the folder"):
        SqliteStorage(tmp_path / "file" / "below" / "memory.db")


def test_missing_folders_are_made(tmp_path: Path) -> None:
    SqliteStorage(tmp_path / "a" / "b" / "memory.db").close()
    assert (tmp_path / "a" / "b" / "memory.db").is_file()


@pytest.mark.parametrize(
    "name",
    ["a b.db", "100%25.db", "what?.db", "#1.db", "ünïcode 記憶.db", "a'b\"c.db", "x&mode=ro.db"],
)
def test_a_store_may_have_any_file_name(tmp_path: Path, open_store: OpenStore, name: str) -> None:
    store = open_store(tmp_path / name)
    store.save("text")
    assert store.search("text").total_results == 1
    assert (tmp_path / name).is_file()


def test_a_store_from_a_newer_version_is_refused_by_name_and_left_as_it_is(saved: Path) -> None:
    connection = apsw.Connection(str(saved))
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = saved.read_bytes()
    error = refuses_with(StoreTooNew, saved)
    assert "schema 999" in error.message
    assert "pip install -U byheart" in error.hint
    assert saved.read_bytes() == before


# --- Files that go away -----------------------------------------------------------------------


def put_away(path: Path) -> None:
    away = path.with_name("away")
    away.mkdir()
    for file in path.parent.glob("memory.db*"):
        file.rename(away / file.name)


def delete(path: Path) -> None:
    for file in path.parent.glob("memory.db*"):
        file.unlink()


def replace_by_copy(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    copy.replace(path)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be taken away there")
@pytest.mark.parametrize("take_away", [put_away, delete, replace_by_copy])
def test_a_store_whose_file_is_gone_takes_nothing_that_would_be_lost(
    saved: Path, open_store: OpenStore, take_away: Callable[[Path], None]
) -> None:
    store = open_store()
    store.search("topic")
    take_away(saved)
    for use in (
        lambda: store.save("nobody would ever see this"),
        lambda: store.search("topic"),
        store.list,
        store.admin.doctor,
        lambda: store.admin.backup(saved.with_name("kept.db"), overwrite=True),
    ):
        with pytest.raises(StoreUnreachable, match="deleted, moved or replaced") as raised:
            use()
        assert "again" in raised.value.hint
    assert not saved.exists() or take_away is replace_by_copy, "nor is an empty one made"
    assert not saved.with_name("kept.db").exists()


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be taken away there")
def test_who_lets_go_of_a_store_that_is_gone_leaves_the_next_one_alone(
    saved: Path, open_store: OpenStore
) -> None:
    old = open_store()
    old.save("of the old one")
    put_away(saved)
    script = """
import sys, byheart
store = byheart.open(sys.argv[1], embedding_provider="hash")
print(store.save("of the new one").status, flush=True)
sys.stdin.read()
"""
    new = start(script, saved)
    assert new.stdout is not None
    assert new.stdout.readline() == "created\n"
    old.close()
    assert saved.with_name("memory.db-wal").exists()
    new.kill()
    new.wait()
    again = open_store()
    assert [each.content for each in again.list().memories] == ["of the new one"]
    assert all(finding.ok for finding in again.admin.doctor())


# --- Locked files -----------------------------------------------------------------------------


def test_a_file_locked_for_too_long_is_busy_and_nothing_changes(
    saved: Path, open_store: OpenStore
) -> None:
    store = open_store(busy_timeout_seconds=0.2)
    other = apsw.Connection(str(saved))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy) as raised:
        store.save("one more")
    assert "0.2 seconds" in raised.value.message
    assert "busy_timeout_seconds" in raised.value.hint
    assert store.search("topic", limit=100).total_results == 60  # reading goes on meanwhile
    other.execute("ROLLBACK")
    assert store.list().total == 60
    assert store.save("one more").status == "created"


def test_a_file_locked_for_a_moment_is_waited_for(saved: Path, open_store: OpenStore) -> None:
    store = open_store(busy_timeout_seconds=10)
    other = apsw.Connection(str(saved))
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.4, lambda: other.execute("ROLLBACK"))
    release.start()
    assert store.save("one more").status == "created"
    release.join()
    assert store.list().total == 61


# --- Full disks -------------------------------------------------------------------------------


def mounted(tmp_path: Path, *options: str) -> Path | None:
    place = tmp_path / "mount"
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(place)]
    allowed = shutil.which("mount") and subprocess.run(command, capture_output=True).returncode == 0
    return place if allowed else None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = mounted(tmp_path, "size=2m")
    if place is None:
        pytest.skip("a small disk can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_said_to_be_full_and_nothing_changes(
    small_disk: Path, open_store: OpenStore
) -> None:
    store = open_store(small_disk / "memory.db")
    store.save("before the disk was full")
    (small_disk / "filler").write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 4096))
    with pytest.raises(StoreFull) as raised:
        store.save("too much " * 20_000)
    assert "free some space" in raised.value.hint
    assert store.list().total == 1
    assert store.search("disk").results[0].chunk_content == "before the disk was full"
    (small_disk / "filler").unlink()
    assert store.save("after it was cleared").status == "created"
    assert store.list().total == 2
    wrong = [finding for finding in store.admin.doctor() if not finding.ok]
    assert [finding.check for finding in wrong] in ([], ["disk space"])


def test_a_store_that_is_opened_on_a_full_disk_says_so(
    small_disk: Path, open_store: OpenStore
) -> None:
    open_store(small_disk / "memory.db").close()
    (small_disk / "filler").write_bytes(b"x" * shutil.disk_usage(small_disk).free)
    with pytest.raises(StoreFull, match="is full, so that it cannot be opened"):
        open_store(small_disk / "memory.db")


def test_a_store_that_may_not_grow_is_full_and_nothing_changes(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    store.save("before")
    with store._storage._backend.database.writing() as connection:
        pages = connection.execute("PRAGMA page_count").get
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull):
        store.save("too much " * 5000)
    assert store.list().total == 1
    assert all(finding.ok for finding in store.admin.doctor())


def test_an_index_file_that_cannot_be_written_fails_nothing(
    open_store: OpenStore, path: Path
) -> None:
    path.with_name("memory.db-index").mkdir()  # nothing can be put in its place
    store = open_store()
    store.save_many({"content": f"text {n}"} for n in range(600))
    assert store.search("text", limit=700).total_results == 600
    store.admin.doctor(rebuild=True)
    store.admin.doctor(optimize=True)
    assert store.search("text", limit=700).total_results == 600
    store.close()
    assert open_store().search("text", limit=700).total_results == 600


# --- Read-only --------------------------------------------------------------------------------


@pytest.fixture
def read_only_disk(tmp_path: Path, saved: Path) -> Iterator[Path]:
    place = mounted(tmp_path, "size=20m")
    if place is None:
        pytest.skip("a read-only file system can only be mounted by root")
    shutil.copy(saved, place / "memory.db")
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_store_on_a_read_only_file_system_can_be_searched_and_says_so(
    read_only_disk: Path, open_store: OpenStore
) -> None:
    store = open_store(read_only_disk / "memory.db")
    for mode in ("fts", "vector", "hybrid"):
        assert store.search("topic", mode=mode, limit=100).total_results == 60
    assert store.search("topic", raw=True, limit=100).total_results == 60
    assert store.list().total == 60
    status = store.status()
    assert not status.writable
    for answer in (
        status,
        store.search("topic"),
        store.search("topic", mode="fts"),
        store.recall("topic"),
        store.context("a session", "topic"),
    ):
        assert answer.degraded == "the store can only be read"
    [finding] = [each for each in store.admin.doctor() if each.check == "write access"]
    assert (finding.ok, "give yourself write access" in finding.hint) == (False, True)
    with pytest.raises(StoreReadOnly, match="can be read but not written") as raised:
        store.save("one more")
    assert "write access" in raised.value.hint
    for change in ({"rebuild": True}, {"optimize": True}):
        with pytest.raises(StoreReadOnly):
            store.admin.doctor(**change)
    assert store.list().total == 60


def test_no_store_on_a_read_only_file_system_is_said_to_be_missing(read_only_disk: Path) -> None:
    with pytest.raises(StoreUnreachable, match="there is no store at"):
        SqliteStorage(read_only_disk / "other.db")


AS_NOBODY = """
import os, sys
from pathlib import Path
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import StoreReadOnly
from byheart.store import MemoryStore
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
settings = load_settings({})
warm = MemoryStore(SqliteStorage(Path(sys.argv[2])), HashEmbedder(), settings)
warm.save("loads whatever is loaded late"); warm.search("late"); warm.search("late", raw=True)
warm.close()
os.setgid(65534); os.setuid(65534)
store = MemoryStore(SqliteStorage(Path(sys.argv[1])), HashEmbedder(), settings)
for line in sys.stdin:
    print(store.search("topic", limit=1000).total_results, flush=True)
    try:
        store.save("not allowed")
    except StoreReadOnly:
        print("read-only", flush=True)
"""


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become nobody"
)
@pytest.mark.parametrize("folder_mode", [0o755, 0o777])
def test_a_reader_without_write_access_finds_what_others_save_meanwhile(
    tmp_path: Path, open_store: OpenStore, folder_mode: int
) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    for folder in (place, *place.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o555)
    place.chmod(folder_mode)
    path = place / "memory.db"
    writer = open_store(path)
    writer.save_many({"content": text} for text in TEXTS)
    writer.close()
    path.chmod(0o644)
    reader = start(AS_NOBODY, path, tmp_path / "warm.db")
    assert reader.stdin is not None
    assert reader.stdout is not None

    def asked() -> list[str]:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write("?\n")
        reader.stdin.flush()
        return [reader.stdout.readline().strip() for _ in range(2)]

    assert asked() == ["60", "read-only"], reader.communicate()
    writer = open_store(path)
    writer.save("one more topic")
    assert asked() == ["61", "read-only"]
    writer.save("and another topic")
    assert asked() == ["62", "read-only"]
    writer.close()
    assert asked() == ["62", "read-only"]
    reader.communicate()


def test_the_root_of_the_file_system_is_no_store() -> None:
    assert "/ is a folder, not a store" in refuses_with(StoreUnreachable, Path("/")).message


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs device files")
def test_a_device_is_refused_as_no_database_file_and_not_as_a_failing_disk() -> None:
    error = refuses_with(StoreUnreachable, Path("/dev/null"))
    assert "/dev/null is not a database file" in error.message
    assert "db_path" in error.hint
