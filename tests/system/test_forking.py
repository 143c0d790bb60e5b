"""A fork waits for our own threads that work, but not for ever; no connection crosses it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from byheart.errors import StoreUnreachable
from byheart.store import MemoryStore
from byheart.system import forking
from tests.conftest import OpenStore
from tests.forked_program import start_script

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")

Pick = Callable[[MemoryStore], threading.Lock]

SAVE_BESIDE = """
import sys
import byheart
store = byheart.open(sys.argv[1], embedding_provider="hash")
store.save("another program is there")
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    store.save(f"another program says {number}")
store.close()
"""


def fork_and(work: Callable[[], bool]) -> bool:
    """Fork, and tell what the child found."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "lock_of",
    [lambda store: store._observer._flushing, lambda store: store._storage._index._publishing],
)
def test_it_waits_for_the_thread_that_holds_a_lock(store: MemoryStore, lock_of: Pick) -> None:
    within, done = threading.Event(), threading.Event()

    def work() -> None:
        with lock_of(store):
            within.set()
            asked.wait(0.1)
            done.set()

    asked = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert within.wait(30)
    assert fork_and(done.is_set)
    thread.join()
    assert lock_of(store).acquire(timeout=30), "the parent has let go of it"
    lock_of(store).release()


INTERRUPTED = """
import os, signal, sys, threading, time
import byheart
store = byheart.open(sys.argv[1], embedding_provider="hash")
store.save("hello")
within, go = threading.Event(), threading.Event()

def read():
    with store._storage.reading():
        within.set()
        go.wait(10)

reader = threading.Thread(target=read)
reader.start()
within.wait()

def interrupt(*_):
    go.set()
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.2)
if not (child := os.fork()):
    os._exit(0)
os.waitpid(child, 0)
reader.join(10)
found = []
searching = threading.Thread(target=lambda: found.append(store.search("hello").total_results))
searching.start()
searching.join(10)
print(reader.is_alive(), found, flush=True)
os._exit(0)
"""


def test_a_wait_that_is_interrupted_leaves_nobody_waiting(store: MemoryStore, path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(path)], capture_output=True, text=True, timeout=60
    )
    assert ended.stdout == "False [1]\n", ended.stderr


def test_it_does_not_wait_for_ever(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "LONGEST_WAIT_SECONDS", 0.05)
    store.save("known before the fork")
    within, done = threading.Event(), threading.Event()

    def work() -> None:
        with store._observer._flushing:
            within.set()
            done.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert within.wait(30)
    assert fork_and(lambda: not done.is_set() and bool(store.search("known").results))
    done.set()
    thread.join()
    assert store._observer.flush()


def test_threads_that_open_stores_at_once_are_all_known() -> None:
    class Owner:
        renewed = False

        def renew(self) -> None:
            self.renewed = True

    owners = [Owner() for _ in range(200)]

    def register(part: list[Owner]) -> None:
        for each in part:
            forking.renew_after_fork(each.renew)

    threads = [threading.Thread(target=register, args=(owners[at::4],)) for at in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert fork_and(lambda: all(each.renewed for each in owners))


@contextmanager
def child_that(work: Callable[[], bool]) -> Iterator[Callable[[], None]]:
    """Fork a child that works when it is told to, and see that it ends well."""
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os.read(into, 1)
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    try:
        yield lambda: os.write(out, b"1") and None
    finally:
        os.close(into)
        os.close(out)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_a_child_saves_after_its_parent_closed_the_store_is_kept(
    open_store: OpenStore,
) -> None:
    store = open_store()
    store.save("said before the fork")
    store.search("fork")
    with child_that(
        lambda: all(store.save(f"child {n}").status == "created" for n in range(5))
    ) as go:
        store.save("said by the parent")
        store.close()
        go()
    again = open_store()
    assert again.list().total == 7
    assert all(finding.ok for finding in again.doctor())


def test_a_child_and_another_program_lose_nothing_of_each_other(
    open_store: OpenStore, path: Path
) -> None:
    store = open_store()
    store.save("said before the fork")
    with child_that(lambda: all(store.save(f"child {n}").memory_id for n in range(100))) as go:
        store.close()
        pipe = subprocess.PIPE
        with start_script(SAVE_BESIDE, path, stdin=pipe, stdout=pipe, text=True) as other:
            assert other.stdin
            assert other.stdout
            assert other.stdout.readline() == "ready\n"
            go()
            other.communicate("go\n", timeout=60)
        assert other.returncode == 0
    again = open_store()
    assert again.list().total == 202
    assert all(finding.ok for finding in again.doctor())


def test_a_fork_beside_threads_that_save_and_search_gives_a_child_that_can(
    store: MemoryStore,
) -> None:
    store.save("said before the fork")
    done = threading.Event()
    saved = []

    def save() -> None:
        while not done.is_set():
            saved.append(store.save(f"parent {len(saved)}").memory_id)

    def search() -> None:
        while not done.is_set():
            store.search("parent")

    threads = [threading.Thread(target=each) for each in (save, search)]
    for each in threads:
        each.start()
    try:
        for number in range(10):
            assert fork_and(lambda n=number: store.save(f"child {n}").status == "created")
    finally:
        done.set()
        for each in threads:
            each.join()
    assert store.list(limit=1).total == 1 + len(saved) + 10


def test_a_child_refuses_a_store_that_was_in_use_and_the_parent_goes_on(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "LONGEST_WAIT_SECONDS", 0.05)
    store = open_store()
    store.save("said before the fork")
    within, done = threading.Event(), threading.Event()

    def read() -> None:
        with store._storage.reading():
            within.set()
            done.wait(60)

    def is_refused() -> bool:
        for verb in (lambda: store.save("lost"), lambda: store.search("fork"), open_store):
            with pytest.raises(StoreUnreachable, match="was in use when this process was forked"):
                verb()
        store.close()
        return True

    thread = threading.Thread(target=read)
    thread.start()
    assert within.wait(30)
    assert fork_and(is_refused)
    done.set()
    thread.join()
    assert fork_and(lambda: store.save("said by the child").status == "created")
    assert store.list().total == 2


def test_a_fork_in_the_middle_of_an_export_leaves_the_export_as_it_was(
    store: MemoryStore,
) -> None:
    for number in range(3):
        store.save(f"said before the fork {number}")

    def is_refused() -> bool:
        with pytest.raises(StoreUnreachable, match="forked"):
            store.save("lost")
        return True

    with store._storage.reading() as reader:
        dump = reader.dump(None, vectors=False)
        assert fork_and(is_refused)
        assert len(list(dump.records())) == 3
