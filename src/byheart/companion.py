"""A companion: a thread that does one piece of work while whoever asked does another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from byheart.forking import renew_after_fork

Result = TypeVar("Result")


class Companion:
    """Work beside one caller at a time; there is no thread before the first asks."""

    def __init__(self) -> None:
        self._renew()
        renew_after_fork(self._renew)

    def _renew(self) -> None:
        self._free = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None

    def begin(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Begin a piece of work, and give what waits for its result.

        While the thread is busy for another, the work is done here and now: where there are more
        callers than cores, a second thread for each would only be in the way.
        """
        if not self._free.acquire(blocking=False):
            return _done(work)
        try:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "byheart-companion")
            return self._thread.submit(self._do, work).result
        except RuntimeError:  # the interpreter is about to end, or can start no thread
            self._thread = None  # what it was given stays with it
            self._free.release()
            return _done(work)

    def _do(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        finally:
            self._free.release()  # before anybody has the result, and comes with the next


def _done(work: Callable[[], Result]) -> Callable[[], Result]:
    result = work()
    return lambda: result
