"""Derive the texts of a long run of saves, and let helper processes take a share once that pays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock, local

from byheart.contracts import TokenCounter
from byheart.memory.deriving import Derived, derive
from byheart.memory.helper_pool import HelperPool, end_pool, start_pool
from byheart.memory.save_requests import SaveRequest
from byheart.settings import Settings

# A run that has spent so much on deriving texts probably goes on as long again. Starting a helper
# takes half a second.
_LEAST_SECONDS = 1.0
# With a model in process, vectors take 20 times as long as the rest, and use all cores already.
_LEAST_SHARE = 0.2
# A helper gets at most so many texts at a time, because the run waits for the last ones.
_MOST_AT_A_TIME = 64


class LongRun:
    """Derive texts batch by batch; start helpers if that is a large part of a long run.

    Both are measured in processor time, so a machine that is busy with other things decides alike.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._began = time.process_time()
        self._deriving_seconds = 0.0
        self._pool: HelperPool | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._tokens: TokenCounter | None = None

    def derive(
        self, requests: Sequence[SaveRequest], give_tokens: Callable[[], TokenCounter]
    ) -> list[Derived]:
        """Derive texts, in their order; the first one that cannot be derived raises its error."""
        if self._pool is None and self._is_worth_helpers:
            self._start(give_tokens())
        share = _Share(requests)
        # After a switch of the model, helpers would count tokens in the earlier way.
        if self._pool is not None and len(requests) > 1 and give_tokens() is self._tokens:
            self._derive_with_helpers(share, self._pool, give_tokens)
        started = time.thread_time()
        derived = [
            known or derive(request, self._settings, give_tokens)
            for request, known in zip(requests, share.derived, strict=True)
        ]
        self._deriving_seconds += time.thread_time() - started
        return derived

    def _derive_with_helpers(
        self, share: _Share, pool: HelperPool, give_tokens: Callable[[], TokenCounter]
    ) -> None:
        assert self._threads is not None, "they are started with the helpers"
        helping = [self._threads.submit(_help, share, pool) for _ in range(pool.size)]
        try:
            while (at := share.take_first()) is not None:
                share.derived[at] = derive(share.requests[at], self._settings, give_tokens)
        finally:
            share.close()
            for each in helping:
                each.result()

    @property
    def _is_worth_helpers(self) -> bool:
        spent, whole = self._deriving_seconds, time.process_time() - self._began
        return spent >= _LEAST_SECONDS and spent >= _LEAST_SHARE * whole

    def _start(self, tokens: TokenCounter) -> None:
        self._pool, self._tokens = start_pool(self._settings, tokens), tokens
        if self._pool is None:
            self._deriving_seconds = float("-inf")  # there are none to start: do not ask again
        else:
            self._threads = ThreadPoolExecutor(self._pool.size, "byheart-derive")

    def end(self) -> None:
        """End the helpers."""
        try:
            if self._threads is not None:
                self._threads.shutdown()
        finally:  # also if the user interrupts the wait
            if self._pool is not None:
                end_pool(self._pool)


class _Share:
    """Divide texts: this process takes them from the beginning, helpers from the end."""

    def __init__(self, requests: Sequence[SaveRequest]) -> None:
        self.requests = requests
        self.derived: list[Derived | None] = [None] * len(requests)
        self._lock = Lock()
        self._first, self._end = 0, len(requests)

    def take_first(self) -> int | None:
        """Give the place of the next text from the beginning."""
        with self._lock:
            if self._first >= self._end:
                return None
            self._first += 1
            return self._first - 1

    def take_last(self, helpers: int) -> slice:
        """Give the places of the last texts: fewer and fewer, so that all end at one time."""
        with self._lock:
            left = self._end - self._first
            count = min(-(-left // (2 * (helpers + 1))), _MOST_AT_A_TIME)
            self._end -= count
            return slice(self._end, self._end + count)

    def close(self) -> None:
        """Leave nothing to take, for example after an error."""
        with self._lock:
            self._end = self._first


def _help(share: _Share, pool: HelperPool) -> None:
    """Have helpers derive texts until none is left."""
    while (places := share.take_last(pool.size)).start < places.stop:
        derived = pool.derive_all(share.requests[places])
        if derived is None:  # the helper has ended, or cannot be sent these texts
            return
        share.derived[places] = derived


class LongRuns:
    """Know which thread is in a long run, so that its saves can share helpers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._of_thread = local()

    @property
    def current(self) -> LongRun | None:
        """Give the run that this thread is in."""
        run: LongRun | None = getattr(self._of_thread, "run", None)
        return run

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Begin a run of this thread, unless it is in one."""
        if self.current is not None:
            yield
            return
        run = self._of_thread.run = LongRun(self._settings)
        try:
            yield
        finally:
            self._of_thread.run = None
            run.end()
