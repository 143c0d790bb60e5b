"""The index file is derived: whatever is wrong with it, answers stay right."""

import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from byheart.contracts import Vectors
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import EmbedderUnavailable
from byheart.index import file
from byheart.index.columns import Growing
from byheart.memory.erasing import erase
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

OpenStore = Callable[..., MemoryStore]
QUERIES = ("apple pear", "number 17", "plum")


def items(first: int, last: int) -> list[dict[str, Any]]:
    fruit = ("apple", "pear", "plum", "quince")
    return [
        {"content": f"{fruit[n % 4]} number {n}", "kind": fruit[n % 4]} for n in range(first, last)
    ]


def answers(store: MemoryStore) -> list[Any]:
    return [
        [(hit.memory_id, hit.score) for hit in store.search(query, mode=mode, limit=1000).results]
        for query in QUERIES
        for mode in ("fts", "vector", "hybrid")
    ] + [store.search("apple", kind="pear").total_results, store.search("x").index]


def rebuilt(store_path: Path, open_store: OpenStore, tmp_path: Path) -> list[Any]:
    """Answer from a copy of the store that never had an index file."""
    copy = tmp_path / "copy" / "memory.db"
    copy.parent.mkdir(exist_ok=True)
    for ending in ("", "-wal"):
        source = store_path.with_name(store_path.name + ending)
        if source.exists():
            shutil.copy(source, copy.with_name(copy.name + ending))
    found = answers(open_store(copy))
    shutil.rmtree(copy.parent, ignore_errors=True)
    return found


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of 200 memories once, and give the folder that it was closed in."""
    folder = tmp_path_factory.mktemp("closed")
    with MemoryStore(
        SqliteStorage(folder / "memory.db"), HashEmbedder(), load_settings({}, environ={})
    ) as store:
        store.save_many(items(0, 200))
        store.admin.doctor(optimize=True)
    return folder


@pytest.fixture
def index(closed: Path, path: Path) -> Path:
    """Give the index file of a closed store of 200 memories."""
    shutil.copytree(closed, path.parent, dirs_exist_ok=True)
    found = path.with_name("memory.db-index")
    assert found.is_file()
    return found


@pytest.fixture(scope="module")
def expected(closed: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Answer once from a copy of the closed store without its index file."""
    copy = tmp_path_factory.mktemp("expected") / "memory.db"
    shutil.copy(closed / "memory.db", copy)
    with MemoryStore(SqliteStorage(copy), HashEmbedder(), load_settings({}, environ={})) as store:
        return answers(store)


def test_an_index_file_is_sound_and_gives_the_answers_of_a_fresh_build(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    assert file.read(index, verify=True) is not None
    assert answers(open_store()) == rebuilt(path, open_store, tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_index_file_is_not_used(
    index: Path, open_store: OpenStore, expected: list[Any], share: float
) -> None:
    whole = index.read_bytes()
    index.write_bytes(whole[: int(len(whole) * share)])
    assert answers(open_store()) == expected


@pytest.mark.parametrize("at", [0, 16, 23, 24, 28, 100])
def test_a_flipped_byte_in_the_header_of_the_index_file_is_noticed(
    index: Path, open_store: OpenStore, expected: list[Any], at: int
) -> None:
    content = bytearray(index.read_bytes())
    content[at] ^= 0xFF
    index.write_bytes(bytes(content))
    assert answers(open_store()) == expected


def test_garbage_in_place_of_the_index_file_is_not_used(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    index.write_bytes(random.Random(3).randbytes(100_000))
    assert answers(open_store()) == rebuilt(path, open_store, tmp_path)


def test_an_index_file_that_lacks_an_array_is_not_used(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    written = file.read(index)
    assert written is not None
    arrays = {name: rows for name, rows in written.arrays.items() if name != "memory.origin"}
    file.write(index, written.header, arrays, 0o600)
    assert file.read(index) is not None
    assert answers(open_store()) == rebuilt(path, open_store, tmp_path)


def test_doctor_notices_damage_inside_the_index_file_and_a_rebuild_mends_it(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    content = bytearray(index.read_bytes())
    for at in range(len(content) // 2, len(content) // 2 + 300):
        content[at] ^= 0x5A
    index.write_bytes(bytes(content))
    store = open_store()
    [finding] = [each for each in store.admin.doctor() if not each.ok]
    assert (finding.check, finding.hint) == (
        "search index",
        "run: store.admin.doctor(rebuild=True)",
    )
    assert all(each.ok for each in store.admin.doctor(rebuild=True))
    assert answers(store) == rebuilt(path, open_store, tmp_path)


def test_the_index_file_of_another_store_is_not_used(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    other = open_store(tmp_path / "other.db")
    other.save_many(items(1000, 1200))  # as many changes, other texts
    other.admin.doctor(optimize=True)
    other.close()
    shutil.copy(tmp_path / "other.db-index", index)
    assert answers(open_store()) == rebuilt(path, open_store, tmp_path)


def test_an_outdated_index_file_is_caught_up_with(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    old = index.read_bytes()
    store = open_store()
    saved = store.save_many(items(200, 500))
    storage = SqliteStorage(path)
    erase(storage, [each.memory_id for each in saved[::3]], "default", tombstones=False)
    erase(
        storage,
        [store.list(limit=1, offset=400 - 134).memories[0].memory_id],
        "default",
        tombstones=False,
    )
    storage.close()
    store.close()
    index.write_bytes(old)
    assert answers(open_store()) == rebuilt(path, open_store, tmp_path)


def test_the_index_file_of_an_older_copy_whose_history_then_diverged_is_not_used(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    store = open_store()
    store.save_many(items(200, 360))
    store.admin.doctor(optimize=True)
    store.close()
    ahead = index.read_bytes()
    for behind in (120, 160, 280):  # shorter than, as long as, and longer than the index's history
        shutil.copy(backup, path)
        index.unlink(missing_ok=True)
        restored = open_store()
        restored.save_many(items(2000, 2000 + behind))
        restored.close()
        index.write_bytes(ahead)
        assert answers(open_store()) == rebuilt(path, open_store, tmp_path), behind


def test_an_index_file_is_caught_up_with_after_the_log_of_changes_was_cut(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    old = index.read_bytes()
    store = open_store()
    store.save_many(items(200, 240))
    with store._storage._backend.database.writing() as connection:
        connection.execute(
            "DELETE FROM changes WHERE change_no < (SELECT max(change_no) FROM changes)"
        )
    store.close()
    index.write_bytes(old)
    assert answers(open_store()) == rebuilt(path, open_store, tmp_path)


def test_an_open_store_survives_that_another_one_cut_the_log_of_changes(
    open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    one, other = open_store(), open_store()
    one.save_many(items(0, 50))
    assert other.search("apple").total_results
    one.save_many(items(50, 100))
    with one._storage._backend.database.writing() as connection:
        connection.execute(
            "DELETE FROM changes WHERE change_no < (SELECT max(change_no) FROM changes)"
        )
    assert answers(other) == answers(one) == rebuilt(path, open_store, tmp_path)


def test_a_store_is_searched_without_an_index_file(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    expected = answers(open_store())
    index.unlink()
    assert answers(open_store()) == expected


def test_a_removed_index_file_does_not_trouble_those_who_have_it_open(
    index: Path, open_store: OpenStore
) -> None:
    store = open_store()
    expected = answers(store)
    index.unlink()
    assert answers(store) == expected
    store.admin.doctor(rebuild=True)
    assert answers(store) == expected


def test_removals_leave_the_index_file_at_once(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    before = index.stat().st_size
    gone = [memory.memory_id for memory in store.list(limit=160).memories]
    storage = SqliteStorage(path)
    erase(storage, gone, "default", tombstones=False)
    storage.close()
    assert index.stat().st_size < before / 2
    assert answers(open_store()) == answers(store) == rebuilt(path, open_store, tmp_path)


def test_an_empty_turn_comes_back_as_itself_after_the_index_was_written_without_it(
    index: Path, path: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    turn = store.log("chat", "assistant", "").memory_id
    store.save("quince beside it")
    store.forget(turn)
    store.admin.doctor(optimize=True)
    store.close()
    store = open_store()
    assert answers(store)
    store.restore(turn)
    assert store.search("quince beside").results[0].chunk_content == "quince beside it"
    assert answers(store) == rebuilt(path, open_store, tmp_path)


def test_no_half_written_index_file_is_left_behind(index: Path, path: Path) -> None:
    assert {each.name for each in path.parent.iterdir()} <= {
        *("memory.db", "memory.db-index", "memory.db-index-lock", "memory.db-wal", "memory.db-shm"),
        "memory.db-stats",
        "memory.db-last",
    }


def test_what_a_killed_writer_left_goes_with_the_next_and_nothing_else_does(
    open_store: OpenStore, tmp_path: Path
) -> None:
    path = tmp_path / "my [1] store.db"
    left, young, copy = (
        path.with_name(f"{path.name}-index.{ending}") for ending in ("k2x_9abc", "young_02", "copy")
    )
    for each in (left, young, copy):
        each.write_text("half an index")
    for each in (left, copy):
        os.utime(each, (0, 0))
    open_store(path).save_many(items(0, 500))
    assert [each.exists() for each in (left, young, copy)] == [False, True, True]


def test_writing_over_the_index_file_never_shows_a_part_of_it(
    path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = file.read(index)
    assert contents is not None
    before = index.read_bytes()

    def interrupt(_handle: int) -> None:
        assert index.read_bytes() == before
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        file.write(index, contents.header, {}, 0o600)
    assert index.read_bytes() == before
    assert not list(path.parent.glob("*-index.*"))


def test_a_store_restored_to_an_older_state_under_a_live_process_is_searched_as_it_is(
    open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    open_store().save("the first text")
    copy = tmp_path / "copy.db"
    apsw.Connection(str(path)).execute("VACUUM INTO ?", (str(copy),))
    live = open_store()
    live.save("the second text")
    assert live.search("text", mode="fts").total_results == 2
    source, target = apsw.Connection(str(copy)), apsw.Connection(str(path))
    with target.backup("main", source, "main") as restoring:
        restoring.step()
    assert [hit.chunk_content for hit in live.search("text").results] == ["the first text"]


def test_a_slow_writer_does_not_bring_back_what_another_process_erased_meanwhile(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_store(), open_store()
    erased = store.save("The quokka smiles", session_id="quokka-session").memory_id
    store.save_many(items(0, 5))
    other.search("apple")
    write = file.write

    erasing = threading.Thread(target=lambda: store.forget(erased, hard=True))

    def write_slowly(*given: Any) -> None:
        monkeypatch.setattr(file, "write", write)
        erasing.start()
        erasing.join(0.3)  # it waits for this writer before it writes the file without the text
        write(*given)

    monkeypatch.setattr(file, "write", write_slowly)
    other._storage._index(None).publish()
    erasing.join()
    index = path.with_name(path.name + "-index")
    assert b"quokka-session" not in index.read_bytes()
    assert not list(path.parent.glob("*-index.*"))
    assert answers(other) == answers(store)


def test_one_process_writes_the_index_file_of_a_change_and_the_others_take_it_up(
    open_store: OpenStore, path: Path
) -> None:
    store, *others = stores = [open_store() for _ in range(3)]
    for each in stores:
        each.search("anything")
    store.save_many(items(0, 500))
    index = path.with_name(path.name + "-index")
    written = index.stat()
    for each in others:
        each.search("apple")
        await_publishing()
        assert not each._storage._index(None).unpublished()
    assert index.stat() == written
    assert answers(others[0]) == answers(others[1]) == answers(store)


def test_a_damaged_index_file_of_the_same_change_is_written_again(
    index: Path, path: Path, open_store: OpenStore, expected: list[Any]
) -> None:
    store = open_store()
    store.search("apple")
    header, content = file.read_header(index), bytearray(index.read_bytes())
    assert header is not None
    content[-header["bytes"]] ^= 0x5A  # the first byte of the first array
    index.unlink()  # what the store has mapped stays as it is
    index.write_bytes(content)
    assert file.read_header(index) == header
    assert file.read(index) is None
    store._storage._index(None).publish()
    assert file.read(index, verify=True) is not None
    assert answers(store) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is mapped")
@pytest.mark.parametrize("maps", [True, False])
def test_where_a_mapped_file_cannot_be_replaced_none_is_mapped_and_answers_are_the_same(
    index: Path,
    open_store: OpenStore,
    expected: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    maps: bool,
) -> None:
    monkeypatch.setattr(file, "_MAPS", maps)
    monkeypatch.setattr(file, "_LEAST_MAPPED", 0)
    store = open_store()
    assert answers(store) == expected
    mapped = Path("/proc/self/maps").read_text()
    assert (str(index) in mapped) == maps
    store.save_many(items(200, 700))
    assert str(index) not in Path("/proc/self/maps").read_text() or maps
    assert file.read(index, verify=True) is not None


def await_publishing() -> None:
    """Wait for the threads that write index files."""
    for thread in threading.enumerate():
        if thread.name == "byheart-index":
            thread.join(30)


def test_a_file_that_cannot_be_written_is_not_tried_again_by_every_search(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = path.with_name(path.name + "-index")
    (index / "in the way").mkdir(parents=True)
    store = open_store()
    store.save_many(items(0, 500))  # at the end of which it is tried once
    await_publishing()
    # Every attempt begins with a file of another name beside the one to be replaced.
    before = path.parent.stat().st_mtime_ns
    for _ in range(5):
        assert store.search("apple").results
        await_publishing()
    assert path.parent.stat().st_mtime_ns == before
    shutil.rmtree(index)
    monkeypatch.setattr(store._storage._index(None), "_pause_until", 0.0)
    store.search("apple")
    await_publishing()
    assert file.read(index, verify=True) is not None


def test_an_index_made_from_many_batches_knows_every_memory_and_whose_it_is(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byheart.index.contents._BATCH", 10)
    store = open_store()
    for space in ("ours", "theirs"):
        store.save_many({"content": f"{space} {n}", "space": space} for n in range(35))
    store.close()
    path.with_name(path.name + "-index").unlink(missing_ok=True)
    again = open_store()
    for space in ("ours", "theirs"):
        found = again.search(space, mode="fts", space=space, limit=100).results
        assert sorted(hit.chunk_content for hit in found) == sorted(
            f"{space} {n}" for n in range(35)
        )
        assert again.status(space).index.memories == 35
        other = "theirs" if space == "ours" else "ours"
        assert again.search(other, mode="fts", space=space).total_results == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files")
def test_a_small_index_file_is_read_and_a_large_one_costs_one_open_file(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = opened()
    small = file.read(index)
    assert small is not None
    assert opened() == before
    assert not any(map(file.is_mapped, small.arrays.values()))
    monkeypatch.setattr(file, "_LEAST_MAPPED", 0)
    large = file.read(index)
    assert large is not None
    assert opened() == before + 1
    assert file.is_mapped(large.arrays["slots"][5:])
    assert {name: rows.tobytes() for name, rows in large.arrays.items()} == {
        name: rows.tobytes() for name, rows in small.arrays.items()
    }


def test_rows_behind_a_mapped_array_are_written_in_this_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_LEAST_MAPPED", 0)
    path = tmp_path / "index"
    rows = np.arange(12, dtype=np.int64)
    given = {"first": rows, "pairs": rows.reshape(6, 2).astype(np.int16), "last": rows}
    file.write(path, {}, given, 0o600, {"first": 3, "pairs": 2})
    before = path.read_bytes()
    one, other = file.read(path, verify=True), file.read(path)
    assert one is not None
    assert other is not None
    assert {name: len(each) for name, each in one.rooms.items()} == {"first": 15, "pairs": 8}
    growing = Growing(one.arrays["first"])
    growing.give_room(one.rooms["first"])
    shown = growing.view
    growing.append(np.array([70, 71, 72]))
    assert growing.view.tolist() == [*range(12), 70, 71, 72]
    assert growing.buffer is one.rooms["first"]
    growing.append(np.array([73]))
    assert growing.view.tolist() == [*range(12), 70, 71, 72, 73]
    assert shown.tolist() == list(range(12))
    for name, each in given.items():
        assert one.arrays[name].tolist() == other.arrays[name].tolist() == each.tolist()
        assert not one.arrays[name].flags.writeable
    assert not other.rooms["first"][12:].any()
    assert path.read_bytes() == before


def test_rows_that_stay_the_same_are_not_copied() -> None:
    growing = Growing(np.arange(5))
    before = growing.buffer
    growing.replace(np.array([1, 3]), np.array([1, 3]))
    assert growing.buffer is before
    growing.replace(np.array([1, 3]), np.array([1, 4]))
    assert growing.view.tolist() == [0, 1, 2, 4, 4]
    assert before.tolist() == [0, 1, 2, 3, 4]


class AwayEmbedder(HashEmbedder):
    """Make no vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbedderUnavailable("away")


def test_the_index_file_is_written_again_when_many_vectors_were_made_for_known_chunks(
    path: Path, open_store: OpenStore
) -> None:
    without = open_store(embedder=AwayEmbedder())
    without.save_many(items(0, 500))
    without.admin.doctor(optimize=True)
    without.close()
    beside = path.with_name("memory.db-index")
    written = file.read(beside)
    assert written is not None
    assert not written.arrays["chunk.embedded"].any()
    store = open_store()
    assert store.admin.embed_pending() == 500
    store.search("apple")
    store.close()
    written = file.read(beside)
    assert written is not None
    assert written.arrays["chunk.embedded"].all()
