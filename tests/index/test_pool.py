"""A pool keeps the indexes of many scopes under a limit, whatever threads do with them."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from byheart.index import file
from byheart.index.index import Index
from byheart.index.memory_use import UNLOADED, MemoryUse
from byheart.index.pool import IndexPool
from byheart.index.view import View
from byheart.storage.sql.index_source import SqlIndexedDatabase
from byheart.storage.sqlite.backend import SqliteBackend
from byheart.store import MemoryStore

NOW = 1 << 50
NAMES = ("a", "b", "c", "d")
OpenStore = Callable[..., MemoryStore]


class Scopes:
    """Several stores, each of which is one scope of a pool."""

    def __init__(self, folder: Path, open_store: OpenStore) -> None:
        self.stores = {name: open_store(folder / f"{name}.db") for name in NAMES}
        self.folder = folder
        self.backends = {
            name: SqliteBackend(folder / f"{name}.db", busy_timeout_seconds=30) for name in NAMES
        }
        self.databases = {
            name: SqlIndexedDatabase(each, None) for name, each in self.backends.items()
        }
        self.made: list[str] = []

    def make(self, name: str) -> Index:
        self.made.append(name)
        return Index(self.folder / f"{name}.array", self.databases[name])

    def save(self, name: str, first: int, last: int) -> None:
        self.stores[name].save_many(
            [{"content": f"apple {name} number {n}"} for n in range(first, last)]
        )

    def view(self, pool: IndexPool[str], name: str) -> View:
        index = pool.of(name)
        while True:
            with self.databases[name].snapshot() as source:
                view = index.view(source)
                if view is not None:
                    return view

    def count(self, pool: IndexPool[str], name: str) -> int:
        return self.view(pool, name).count_space("default", NOW).memories


@pytest.fixture
def scopes(tmp_path: Path, open_store: OpenStore) -> Iterator[Scopes]:
    found = Scopes(tmp_path, open_store)
    for number, name in enumerate(NAMES):
        found.save(name, 0, 50 + number)
    yield found
    for each in found.backends.values():
        each.close()


def size_of_one(scopes: Scopes) -> int:
    pool = IndexPool(scopes.make, 1 << 30)
    scopes.count(pool, "d")
    scopes.made.clear()
    return pool.charged_bytes


def test_an_index_is_made_when_it_is_asked_for_and_kept(scopes: Scopes) -> None:
    pool = IndexPool(scopes.make, 1 << 30)
    assert scopes.made == []
    assert pool.of("a") is pool.of("a")
    assert [scopes.count(pool, name) for name in NAMES] == [50, 51, 52, 53]
    assert scopes.made == list(NAMES)
    assert pool.charged_bytes == sum(pool.of(name).memory_use.charged for name in NAMES)


def test_the_least_recently_used_indexes_leave_when_all_exceed_the_limit(scopes: Scopes) -> None:
    one = size_of_one(scopes)
    pool = IndexPool(scopes.make, 2 * one + one // 2)
    for name in ("a", "b", "a", "c"):
        scopes.count(pool, name)
    assert pool.keys() == ["a", "c"]
    assert pool.charged_bytes <= 2 * one + one // 2
    assert scopes.count(pool, "b") == 51
    assert pool.keys() == ["c", "b"]
    assert scopes.made == ["a", "b", "c", "b"]


def test_an_index_larger_than_the_limit_is_kept_alone(scopes: Scopes) -> None:
    pool = IndexPool(scopes.make, 1)
    for name in ("a", "b", "b"):
        scopes.count(pool, name)
        assert pool.keys() == [name]
    assert scopes.made == ["a", "b"]


def test_an_index_that_loaded_nothing_is_charged_and_leaves_too(scopes: Scopes) -> None:
    pool = IndexPool(scopes.make, 3 * UNLOADED.charged)
    for name in NAMES:
        pool.of(name)
    assert pool.keys() == ["b", "c", "d"]
    assert pool.charged_bytes == 3 * UNLOADED.charged
    scopes.count(pool, "a")
    assert pool.keys() == ["a"], "a loaded index is larger than the limit"


def test_few_threads_publish_the_indexes_that_leave_the_pool(
    scopes: Scopes, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, under_way = threading.Event(), 0
    real = Index.publish

    def publish(self: Index) -> None:
        nonlocal under_way
        under_way += 1
        go_on.wait(30)
        real(self)

    monkeypatch.setattr(Index, "publish", publish)
    monkeypatch.setattr("byheart.index.index.least_unpublished", lambda _published: 1)
    pool = IndexPool(scopes.make, 1)
    for name in (*NAMES, "a"):  # four leave, one after the other
        scopes.count(pool, name)
    threads = [each for each in threading.enumerate() if each.name == "byheart-index"]
    assert len(threads) == under_way == 2
    go_on.set()
    for each in threads:
        each.join()
    assert (scopes.folder / "a.array").exists()


def test_a_view_stays_valid_after_its_index_left_the_pool(scopes: Scopes) -> None:
    pool = IndexPool(scopes.make, 1)
    pool.of("a")
    scopes.count(pool, "a")
    pool.of("a").publish()
    view = scopes.view(pool, "a")
    scopes.count(pool, "b")
    assert pool.keys() == ["b"]
    (scopes.folder / "a.array").unlink()
    assert view.count_space("default", NOW).memories == 50
    assert sum(len(each.slots) for each in view.segments) > 0
    assert all(np.isfinite(each.embeddings).all() for each in view.segments)


def test_an_index_that_leaves_the_pool_writes_its_file_if_that_is_worth_the_time(
    scopes: Scopes,
) -> None:
    scopes.save("a", 50, 500)
    pool = IndexPool(scopes.make, 1)
    scopes.count(pool, "a")
    assert pool.unpublished()
    assert not (scopes.folder / "a.array").exists()
    scopes.count(pool, "b")
    deadline = time.monotonic() + 30
    while not (scopes.folder / "a.array").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert file.read(scopes.folder / "a.array", verify=True) is not None
    assert not pool.unpublished(), "the other one is small"
    assert not (scopes.folder / "b.array").exists()


def test_publishing_starting_anew_and_discarding_reach_every_index_in_memory(
    scopes: Scopes,
) -> None:
    work: list[str] = []
    pool = IndexPool(scopes.make, 1 << 30)
    scopes.count(pool, "a")
    pool.on_work = lambda name, _seconds: work.append(name)
    scopes.count(pool, "b")
    pool.publish(only_unpublished=True)
    assert not list(scopes.folder.glob("*.array"))
    pool.publish()
    assert sorted(each.name for each in scopes.folder.glob("*.array")) == ["a.array", "b.array"]
    assert pool.charged_bytes > 0
    pool.start_anew()
    assert pool.charged_bytes == 2 * UNLOADED.charged
    assert scopes.count(pool, "a") == 50
    assert work == ["rebuild", "publish", "publish", "catch_up"]
    pool.discard()
    assert not list(scopes.folder.glob("*.array"))
    assert pool.charged_bytes == 2 * UNLOADED.charged


def test_a_failure_to_write_one_file_does_not_keep_the_others_from_being_written(
    scopes: Scopes,
) -> None:
    pool = IndexPool(scopes.make, 1 << 30)
    for name in ("a", "b"):
        scopes.count(pool, name)
    (scopes.folder / "a.array").mkdir()
    with pytest.raises(OSError):
        pool.publish()
    assert file.read(scopes.folder / "b.array") is not None


def test_arrays_of_a_mapped_file_are_measured_apart_and_count_less(
    scopes: Scopes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_LEAST_MAPPED", 0)
    pool = IndexPool(scopes.make, 1 << 30)
    scopes.count(pool, "a")
    before = pool.of("a").memory_use
    assert before.mapped == 0
    pool.of("a").publish()
    after = pool.of("a").memory_use
    written = file.read(scopes.folder / "a.array")
    assert written is not None
    changes = ("buried", "changed")
    kept = [each for name, each in written.arrays.items() if not name.startswith(changes)]
    assert after.mapped == sum(each.nbytes for each in kept)
    assert after.own < before.own
    assert MemoryUse(5, 0).charged == 5
    assert MemoryUse(5, 400).charged == 5 + 100 + (2 << 20)
    assert pool.charged_bytes == after.charged


def test_threads_get_right_answers_while_indexes_come_and_go(scopes: Scopes) -> None:
    one = size_of_one(scopes)
    pool = IndexPool(scopes.make, one + one // 2)
    wrong: list[object] = []

    def search(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            for _ in range(40):
                number = int(random.integers(len(NAMES)))
                found = scopes.count(pool, NAMES[number])
                if found != 50 + number:
                    wrong.append((NAMES[number], found))
        except BaseException as error:
            wrong.append(error)
            raise

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(scopes.made) > len(NAMES), "some left and came again"
    left = pool.keys()
    assert pool.charged_bytes == sum(pool.of(key).memory_use.charged for key in left)
