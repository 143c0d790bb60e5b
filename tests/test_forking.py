"""A fork waits for our own threads that work, but not for ever."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from byheart import forking
from byheart.memory_store import MemoryStore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")

Pick = Callable[[MemoryStore], threading.Lock]


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
