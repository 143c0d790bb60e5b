"""Derive texts in helper processes, so that a long run uses more than one core.

Python runs one thread at a time, and much of an index run or an import is Python code that needs no
store. A helper is a new Python process, not a fork, because a store that is open cannot be used in
a child. It gets requests through a pipe and ends with the pipe, also if this process is killed.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Lock

from byheart.contracts import SharesCounter, TokenCounter
from byheart.memory.deriving import Derived, Redacted
from byheart.memory.save_requests import SaveRequest
from byheart.settings import Settings
from byheart.system.cores import count_cores

MODULE = "byheart.memory.helper_process"
_END_SECONDS = 5.0
# Held by the run of this process that has helpers: two runs would have more helpers than cores.
_having_helpers = Lock()


class _Helper:
    """Represent one helper process."""

    def __init__(self) -> None:
        import subprocess  # a process that saves little needs no helpers

        # -P: the folder that the user is in must not take the place of any module.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the process that writes, which ends the helpers
        )

    def prepare(self, settings: Settings, tokens: TokenCounter) -> None:
        """Send what all texts are derived with."""
        self._send(pickle.dumps((settings, tokens), pickle.HIGHEST_PROTOCOL))

    def derive(self, message: bytes) -> Sequence[Derived | None]:
        """Derive the texts of a message; give `None` for each that raised an error."""
        self._send(message)
        assert self._process.stdout is not None
        derived: Sequence[Derived | None] = pickle.load(self._process.stdout)
        return derived

    def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(message)
        self._process.stdin.flush()

    def end(self) -> None:
        """Let the process end, and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        from subprocess import TimeoutExpired

        try:
            self._process.wait(_END_SECONDS)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()


class HelperPool:
    """Hand texts to helpers that are idle; any number of threads may ask at once."""

    def __init__(self, settings: Settings, tokens: TokenCounter, helpers: int) -> None:
        self._helpers: list[_Helper] = []
        self._idle: SimpleQueue[_Helper] = SimpleQueue()
        with contextlib.suppress(OSError):  # no more processes or pipes can be made
            for _ in range(helpers):
                helper = _Helper()
                self._helpers.append(helper)
                helper.prepare(settings, tokens)
                self._idle.put(helper)

    def derive(self, request: SaveRequest, redacted: Redacted) -> Derived | None:
        """Derive a text in an idle helper; return `None` if the caller has to derive it."""
        derived = self.derive_all([request], redacted)
        return None if derived is None else derived[0]

    def derive_all(
        self, requests: Sequence[SaveRequest], redacted: Redacted = ()
    ) -> Sequence[Derived | None] | None:
        """Derive texts in one idle helper; return `None` if the caller has to derive them.

        A helper does not send its errors: the caller derives such a text too, and meets the same
        error. A helper that has ended gets no further texts.
        """
        try:
            message = pickle.dumps((requests, redacted), pickle.HIGHEST_PROTOCOL)
        except Exception:  # noqa: BLE001  # a class of the caller's own raises what it likes
            return None
        try:
            helper = self._idle.get_nowait()
            derived = helper.derive(message)
        except (Empty, OSError, EOFError, pickle.UnpicklingError):
            return None
        self._idle.put(helper)
        return derived

    @property
    def size(self) -> int:
        """Count the helpers that were started."""
        return len(self._helpers)

    def end(self) -> None:
        """End all helpers."""
        for each in self._helpers:
            each.end()


def start_pool(settings: Settings, tokens: TokenCounter) -> HelperPool | None:
    """Start helpers for the cores that are free; give `None` if no helper can be started.

    One core is left to the process that writes. An embedder of the caller's own may count tokens in
    a way that no other process knows.
    """
    helpers = min(count_cores() - 1, settings.helper_processes)
    if helpers < 1 or not sys.executable:
        return None
    counter = tokens.counter_to_send() if isinstance(tokens, SharesCounter) else None
    if counter is None or not _having_helpers.acquire(blocking=False):
        return None
    pool = None
    try:
        pool = HelperPool(settings, counter, helpers)
    finally:
        if pool is None or not pool.size:
            _having_helpers.release()
    return pool if pool.size else None


@contextlib.contextmanager
def open_pool(settings: Settings, tokens: TokenCounter) -> Iterator[HelperPool | None]:
    """Start helpers as `start_pool` does, and end them afterwards."""
    pool = start_pool(settings, tokens)
    try:
        yield pool
    finally:
        if pool is not None:
            end_pool(pool)


def end_pool(pool: HelperPool) -> None:
    """End the helpers of a pool, so that another run may have some."""
    try:
        pool.end()
    finally:
        _having_helpers.release()
