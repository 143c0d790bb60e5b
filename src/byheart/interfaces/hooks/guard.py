"""Run work in a second process, and kill that process when the time is up.

A thread cannot enforce a time limit on other threads: a call into C that does not release the
interpreter stops them all. A signal handler cannot either, for the same reason, and a signal that
kills the process gives a bad exit code. So the process that the agent started only waits: it
answers whatever happens to the worker. The worker may be killed at any moment, since its writes are
atomic.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from byheart.interfaces.hooks.attempts import Deadline

_BLOCK_BYTES = 65_536
_LONGEST_END_SECONDS, _LOOK_EVERY_SECONDS = 0.25, 0.001
# The worker's messages to the waiting process: an answer, or the end of its work; then a stop byte.
_ANSWER, _END, _STOP = b"a", b"e", b"\0"

Say = Callable[[str], None]
# Returns whether all of the work was done in time.
Work = Callable[[Say], bool]


class Outcome(NamedTuple):
    """Hold the answer, if any, whether the work has ended, and whether it was killed."""

    said: str | None
    ended: bool
    was_killed: bool = False


def run_guarded(work: Work, deadline: Deadline) -> Outcome:
    """Run work in its own process, until it ends or the time is up.

    An incomplete answer is dropped. On systems without fork, the work runs in this process, under
    its own time limit.
    """
    if not hasattr(os, "fork"):
        return _run_here(work)
    into, out = os.pipe()
    worker = os.fork()
    if not worker:
        os.close(into)
        _be_worker(work, out)
    os.close(out)
    try:
        return _wait(into, deadline)
    finally:
        os.close(into)
        _end(worker)


def _end(worker: int) -> None:
    """Kill the worker; do not wait long for it, because it may hang in a system call."""
    os.kill(worker, signal.SIGKILL)
    deadline = Deadline(_LONGEST_END_SECONDS)
    while os.waitpid(worker, os.WNOHANG) == (0, 0) and deadline.left:
        time.sleep(_LOOK_EVERY_SECONDS)


def _run_here(work: Work) -> Outcome:
    said: list[str] = []
    ended = work(said.append)
    return Outcome(said[0] if said else None, ended)


def _be_worker(work: Work, out: int) -> NoReturn:
    """Run the work, send the answer, and exit at once, even if threads are still running."""
    try:
        # Ctrl-C is for the waiting process. The worker lets go of stdout and stderr, so that the
        # agent does not wait for the worker if the waiting process is killed.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        work(lambda text: _tell(out, _ANSWER + text.encode(errors="replace")))
        _tell(out, _END)
    finally:
        os._exit(0)


def _tell(out: int, said: bytes) -> None:
    data = said + _STOP
    while data:
        data = data[os.write(out, data) :]


def _wait(into: int, deadline: Deadline) -> Outcome:
    heard = b""
    while select.select([into], [], [], deadline.left)[0]:
        block = os.read(into, _BLOCK_BYTES)
        heard += block
        # Nothing follows the end message; children of the worker may still keep the pipe open.
        if not block or (_STOP + heard).endswith(_STOP + _END + _STOP):
            break
    *told, _ = heard.split(_STOP)
    answers = [each[1:].decode() for each in told if each.startswith(_ANSWER)]
    return Outcome(answers[0] if answers else None, ended=True, was_killed=_END not in told)
