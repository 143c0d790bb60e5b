"""Derive texts in helper processes, so that a long index run uses more than one core.

Python runs one thread at a time, and more than half of such a run is Python code that needs no
store. A helper is a new Python process, not a fork, because a store that is open cannot be used in
a child. It gets requests through a pipe and ends with the pipe, also if this process is killed.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from queue import Empty, SimpleQueue

from byheart.contracts import SharesCounter, TokenCounter
from byheart.memory.deriving import Derived, Redacted
from byheart.memory.save_requests import SaveRequest
from byheart.settings import Settings
from byheart.system.cores import count_cores

MODULE = "byheart.memory.helper_process"
# One core is left to the process that writes. More helpers would wait for it.
_MOST_HELPERS = 3
_END_SECONDS = 5.0


class _Helper:
    """Represent one helper process."""

    def __init__(self) -> None:
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
        self._send((settings, tokens))

    def derive(self, request: SaveRequest, redacted: Redacted) -> Derived | None:
        """Derive a text, or return `None` if that raised an error."""
        self._send((request, redacted))
        assert self._process.stdout is not None
        derived: Derived | None = pickle.load(self._process.stdout)
        return derived

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(message, self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()

    def end(self) -> None:
        """Let the process end, and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
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
        """Derive a text in an idle helper; return `None` if the caller has to derive it.

        A helper does not send its errors: the caller derives the text too, and meets the same
        error. A helper that has ended gets no further texts.
        """
        try:
            helper = self._idle.get_nowait()
            derived = helper.derive(request, redacted)
        except (Empty, OSError, EOFError, pickle.UnpicklingError):
            return None
        self._idle.put(helper)
        return derived

    def end(self) -> None:
        """End all helpers."""
        for each in self._helpers:
            each.end()


@contextlib.contextmanager
def open_pool(settings: Settings, tokens: TokenCounter) -> Iterator[HelperPool | None]:
    """Start helpers for the cores that are free; give `None` if there is none to use.

    An embedder of the caller's own may count tokens in a way that no other process knows.
    """
    counter = tokens.counter_to_send() if isinstance(tokens, SharesCounter) else None
    helpers = min(count_cores() - 1, _MOST_HELPERS)
    if counter is None or helpers < 1 or not sys.executable:
        yield None
        return
    pool = HelperPool(settings, counter, helpers)
    try:
        yield pool
    finally:
        pool.end()
