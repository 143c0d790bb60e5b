"""The index is written in parts: only new rows are, mostly, and a crash leaves a usable index."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.index import file, parts
from byheart.index.contents import Contents
from byheart.memory.erasing import erase
from byheart.store import MemoryStore
from byheart.system.file_locks import file_lock
from tests.index.test_index_file import answers, await_publishing, items, rebuilt

OpenStore = Callable[..., MemoryStore]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a part for every twenty chunks."""
    monkeypatch.setattr(parts, "_MOST_IN_HEAD", 10_000)
    monkeypatch.setattr("byheart.index.file_coverage._LEAST_UNPUBLISHED", 20)


ACTS = (
    *("save", "save", "turn", "change", "retitle", "hide", "erase"),
    *("publish", "compact", "open"),
)


def head_of(path: Path) -> parts.Head:
    found = parts.read_head(path.with_name(path.name + "-index"))
    assert found is not None
    return found


def named(path: Path) -> list[str]:
    """Name the parts of a store's index."""
    return list(head_of(path).named)


def publish(store: MemoryStore) -> bool:
    store.search("anything")
    await_publishing()
    return store._storage._index(None).publish()  # type: ignore[attr-defined, no-any-return]


def test_a_part_stays_as_it_is_while_small_ones_are_added_and_merged(
    open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    store = open_store()
    store.save_many(items(0, 400))
    [large] = named(path)
    index = path.with_name(path.name + "-index")
    written = parts.part_path(index, large).stat()
    seen = []
    for first in range(400, 560, 20):
        store.save_many(items(first, first + 20))
        assert publish(store)
        assert named(path)[0] == large
        seen.append(named(path)[1:])
    assert parts.part_path(index, large).stat() == written
    assert max(map(len, seen)) >= 2
    assert len({each for names in seen for each in names}) > len(seen[-1]), "some were merged"
    assert {each.name for each in parts.part_files(index)} == {
        f"{index.name}-{name}" for name in named(path)
    }
    assert parts.read(index, verify=True) is not None
    assert answers(open_store()) == answers(store) == rebuilt(path, open_store, tmp_path)


def test_bytes_written_stay_under_ten_times_the_index(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, write = [], file.write

    def count(own: Path, *given: Any) -> None:
        write(own, *given)
        written.append(own.stat().st_size)

    monkeypatch.setattr(file, "write", count)
    store = open_store()
    for first in range(0, 2000, 20):
        store.save_many(items(first, first + 20))
        publish(store)
    assert len(written) > 100
    size = store.status().index_bytes
    assert size > 2000 * 384 * 2
    assert sum(written) < 8 * size


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_any_life_gives_the_answers_of_a_fresh_build(
    open_store: OpenStore, path: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    stores = [open_store(), open_store()]
    number = 0

    def some(store: MemoryStore) -> str:
        listed = store.list(limit=1, offset=chance.randrange(store.list(limit=1).total))
        return listed.memories[0].memory_id

    for step in range(40):
        store = chance.choice(stores)
        act = chance.choice(ACTS)
        if act == "save" or number == 0:
            count = chance.randrange(1, 60)
            store.save_many(items(number, number + count))
            number += count
        elif act == "turn":
            for _ in range(chance.randrange(1, 20)):
                at = f"2026-0{chance.randrange(1, 9)}-01"
                store.log(
                    f"chat {chance.randrange(3)}", "user", f"pear said {number}", created_at=at
                )
                number += 1
        elif act == "change":
            number += 1
            store.update(some(store), content=f"plum number {number} anew")
        elif act == "retitle":
            store.update(some(store), title=f"apple title {number}", importance=chance.randrange(9))
        elif act == "hide":
            gone = some(store)
            store.forget(gone)
            if chance.random() < 0.5:
                store.restore(gone)
        elif act == "erase":
            erase(store._storage, [some(store)], "default", tombstones=False)
        elif act == "publish":
            publish(store)
        elif act == "compact":
            store.admin.doctor(optimize=True)
        else:
            store.close()
            stores[stores.index(store)] = open_store()
        if step % 4 == 0:
            expected = rebuilt(path, open_store, tmp_path)
            assert [answers(each) for each in stores] == [expected] * 2, (seed, step, act)
    again = open_store()
    assert answers(again) == expected or answers(again) == rebuilt(path, open_store, tmp_path)
    assert all(each.ok for each in again.admin.doctor() if each.check == "search index")


def test_a_write_that_fails_at_any_point_leaves_the_earlier_index(
    open_store: OpenStore, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    store.save_many(items(0, 300))
    index = path.with_name(path.name + "-index")
    store.save_many(items(300, 315))
    before, replace = head_of(path), Path.replace
    for failing in (1, 2):  # the part, the head
        calls = []

        def fail(own: Path, target: Path, failing: int = failing, calls: Any = calls) -> Path:
            calls.append(own)
            if len(calls) == failing:
                raise OSError("no space left")
            return replace(own, target)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", fail)
            with pytest.raises(OSError, match="no space"):
                publish(store)
        assert head_of(path) == before
        assert parts.read(index, verify=True) is not None
        assert answers(open_store()) == rebuilt(path, open_store, tmp_path)
    assert publish(store)
    assert head_of(path) != before
    assert len(list(parts.part_files(index))) == len(named(path)), "unnamed parts are gone"
    assert answers(open_store()) == answers(store)


_SAVING = """
import sys
from pathlib import Path
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.index import file_coverage, parts
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

parts._MOST_IN_HEAD, file_coverage._LEAST_UNPUBLISHED = 10_000, 20
store = MemoryStore(SqliteStorage(Path(sys.argv[1])), HashEmbedder(), load_settings({}, environ={}))
first = int(sys.argv[2])
for number in range(first, first + 10_000, 25):
    store.save_many({"content": f"apple number {each}"} for each in range(number, number + 25))
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="only POSIX kills like this")
def test_processes_killed_at_any_moment_leave_a_usable_index(
    open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    chance = random.Random(5)
    index = path.with_name(path.name + "-index")
    for round_ in range(3):
        command = [sys.executable, "-c", _SAVING, str(path)]
        savers = [
            subprocess.Popen([*command, str(first)], stdout=subprocess.PIPE)
            for first in (round_ * 100_000, round_ * 100_000 + 50_000)
        ]
        for saver in savers:
            assert saver.stdout is not None
            for _ in range(8):
                saver.stdout.readline()
        time.sleep(chance.random() / 4)
        for saver in savers:
            saver.kill()
            saver.communicate()
        assert parts.read(index, verify=True) is not None
        assert answers(open_store()) == rebuilt(path, open_store, tmp_path)
    store = open_store()
    store.save_many(items(0, 40))
    publish(store)
    assert len(list(parts.part_files(index))) == len(named(path))


def test_one_process_writes_at_a_time_and_searches_do_not_wait(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    store.save_many(items(0, 200))
    before = head_of(path)
    lock = path.with_name(path.name + "-index-lock")
    store.save_many(items(200, 215))
    with file_lock(lock, 0o600, 0) as held:
        assert held
        store.save_many(items(215, 300))
        assert store.search("apple", mode="fts", limit=1000).total_results == 75
        assert not store._storage._index(None).publish()  # type: ignore[attr-defined]
        assert head_of(path) == before
    assert publish(store)
    assert head_of(path) != before


def test_a_search_is_answered_while_this_process_writes_a_part(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    store.save_many(items(0, 210))
    write, writing, go_on = file.write, threading.Event(), threading.Event()

    def wait(*given: Any) -> None:
        writing.set()
        assert go_on.wait(30)
        write(*given)

    monkeypatch.setattr(file, "write", wait)
    store.save_many(items(210, 219))
    index = store._storage._index(None)  # type: ignore[attr-defined]
    store.search("apple")
    publisher = threading.Thread(target=index.publish)
    publisher.start()
    assert writing.wait(30)
    store.save("an apple that was saved meanwhile")
    assert store.search("apple meanwhile", mode="fts").results[0].snippet.endswith("meanwhile")
    go_on.set()
    publisher.join()
    assert head_of(path).state["change_no"] == 219
    assert store.search("apple", mode="fts", limit=1000).total_results == 56


def test_a_process_takes_up_the_parts_that_another_wrote(open_store: OpenStore, path: Path) -> None:
    one, other = open_store(), open_store()
    one.save_many(items(0, 300))
    other.search("apple")
    one.save_many(items(300, 340))
    publish(one)
    written = head_of(path)
    other.search("apple")
    await_publishing()
    assert publish(other)
    assert head_of(path) == written
    other.save_many(items(340, 400))
    publish(other)
    publish(one)
    assert answers(one) == answers(other)


def test_an_index_whose_part_is_missing_is_built_and_written_again(
    open_store: OpenStore, path: Path, tmp_path: Path
) -> None:
    store = open_store()
    store.save_many(items(0, 300))
    store.save_many(items(300, 420))
    store.close()
    index = path.with_name(path.name + "-index")
    parts.part_path(index, named(path)[0]).unlink()
    assert parts.read(index) is None
    again = open_store()
    assert answers(again) == rebuilt(path, open_store, tmp_path)
    assert publish(again)
    assert parts.read(index, verify=True) is not None


def test_columns_of_a_single_part_stay_mapped_while_rows_are_added(
    open_store: OpenStore, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_LEAST_MAPPED", 0)
    with open_store() as first:
        first.save_many(items(0, 400))
    [name] = named(path)
    part = parts.part_path(path.with_name(path.name + "-index"), name)
    before = part.read_bytes()
    store = open_store()
    shown = store._storage._index(None).memory_use  # type: ignore[attr-defined]
    assert shown.mapped == 0
    for number in (400, 405):  # rows for which a column of 400 has room
        store.save_many(items(number, number + 5))
        store.search("anything")
        contents = store._storage._index(None)._contents  # type: ignore[attr-defined]
        columns = {**contents._memories, **contents._chunks}
        private = [each for each, rows in columns.items() if not file.is_mapped(rows.buffer)]
        # The column that says which chunks have vectors is copied when they get them.
        assert private == ["embedded"]
    assert part.read_bytes() == before
    assert answers(store) == rebuilt(path, open_store, tmp_path)
    store.save_many(items(410, 500))
    assert answers(store) == rebuilt(path, open_store, tmp_path)


def test_a_column_of_a_later_version_is_left_out(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_LEAST_MAPPED", 0)
    with open_store() as store:
        store.save_many(items(0, 400))
    loaded = parts.read(path.with_name(path.name + "-index"))
    assert loaded is not None
    [(part, content)] = loaded.parts
    later = {"memory.later": content.arrays["memory.space"]}
    rooms = {**content.rooms, "memory.later": content.rooms["memory.space"]}
    content = replace(content, arrays={**content.arrays, **later}, rooms=rooms)
    contents = Contents.from_files(parts.Loaded(loaded.head, [(part, content)]))
    assert "later" not in contents._memories
    assert contents._memories["space"].buffer is content.rooms["memory.space"]


def test_a_part_older_than_the_first_model_is_kept(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_SHARE_TAKEN_IN", 100.0)
    with byheart.open(path, embedding_provider="none") as without_model:
        without_model.save_many(items(0, 300))
    [older] = named(path)
    for first in (300, 340):
        store = open_store()
        store.save_many(items(first, first + 40))
        assert publish(store)
        again = store.save(f"apple number {first}", kind="note")
        assert again.similar  # compares vectors of all parts
        store.close()
    assert named(path)[0] == older
    assert all(each.ok for each in open_store().admin.doctor() if each.check == "search index")


def test_doctor_notices_a_damaged_part(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    store.save_many(items(0, 300))
    store.close()
    index = path.with_name(path.name + "-index")
    part = parts.part_path(index, named(path)[0])
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 0x5A
    part.unlink()
    part.write_bytes(content)
    again = open_store()
    failed = [each.check for each in again.admin.doctor() if not each.ok]
    assert failed == ["search index"]
    assert all(each.ok for each in again.admin.doctor(fix=True))


def test_an_erased_text_leaves_every_part(open_store: OpenStore, path: Path) -> None:
    store, other = open_store(), open_store()
    erased = store.save("The quokka smiles", session_id="quokka-session").memory_id
    store.save_many(items(0, 300))
    other.search("apple")
    other.save_many(items(300, 360))
    publish(other)
    assert b"quokka" in b"".join(each.read_bytes() for each in path.parent.glob("*-index*"))
    store.forget(erased, hard=True)
    other.save_many(items(360, 420))
    publish(other)
    assert b"quokka" not in b"".join(each.read_bytes() for each in path.parent.glob("*-index*"))


def test_removed_chunks_are_left_out_when_they_are_many(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    store.save_many(items(0, 500))
    ids = [each.memory_id for each in store.list(limit=450).memories]
    for memory_id in ids:
        store.update(memory_id, title="a title changes the words of every chunk")
    publish(store)
    loaded = parts.read(path.with_name(path.name + "-index"))
    assert loaded is not None
    assert len(Contents.from_files(loaded).rows.chunks["alive"]) < 800


def test_an_index_file_in_the_earlier_format_is_read(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_MOST_IN_HEAD", 1 << 30)
    store = open_store()
    store.save_many(items(0, 300))
    store.close()
    index = path.with_name(path.name + "-index")
    written = file.read(index)
    assert written is not None
    state = {**written.header["state"], "published": True}
    header = {"state": state, "codes": written.header["names"]}
    arrays = {name: rows for name, rows in written.arrays.items() if "." in name or name in OLD}
    arrays = {name: rows for name, rows in arrays.items() if not name.startswith("changed")}
    file.write(index, header, arrays, 0o600)
    content = index.read_bytes()
    index.write_bytes(content[:14] + b"A" + content[15:])
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    shutil.copy(index, copy.with_name(copy.name + "-index"))
    again = open_store(copy)
    work: list[str] = []
    again._storage.report_work(lambda name, _seconds: work.append(name))  # type: ignore[attr-defined]
    assert answers(again)
    assert "rebuild" not in work
    again.save_many(items(300, 340))
    publish(again)
    assert copy.with_name(copy.name + "-index").read_bytes()[14:15] == b"B"
    assert again.search("apple", mode="fts", limit=1000).total_results == 85


OLD = ("terms", "starts", "slots", "counts", "vector_slots", "signs", "embeddings", "by_turn")
