"""The guard: a process that waits for the one that works, and ends it when the time is up.

A thread cannot keep a time limit for others: a call into C that does not let go of the interpreter
stops all of them. Nor can a signal, for the same reason, and one that kills makes a bad exit code.
The one that waits is the one that the agent started: it answers whatever becomes of the other,
which may be killed at any moment, since what it stores is stored whole or not at all.
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
# What the one that works says to the one that waits: an answer, or that it has done all it could.
_ANSWER, _END, _STOP = b"a", b"e", b"\0"

Say = Callable[[str], None]
# Says whether all of it was done in time.
Work = Callable[[Say], bool]


class Outcome(NamedTuple):
    """What was said, if anything; whether all work has ended, and whether it did so by itself."""

    said: str | None
    ended: bool
    was_killed: bool = False


def run_guarded(work: Work, deadline: Deadline) -> Outcome:
    """Do some work in a process of its own, until it ends or the time is up.

    What was said only in part was not said. Where processes cannot be forked, the work is done
    right here, under the time limit that it keeps by itself.
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
    """Kill a process, whatever it does; one that hangs in the system itself is not waited for."""
    os.kill(worker, signal.SIGKILL)
    deadline = Deadline(_LONGEST_END_SECONDS)
    while os.waitpid(worker, os.WNOHANG) == (0, 0) and deadline.left:
        time.sleep(_LOOK_EVERY_SECONDS)


def _run_here(work: Work) -> Outcome:
    said: list[str] = []
    ended = work(said.append)
    return Outcome(said[0] if said else None, ended)


def _be_worker(work: Work, out: int) -> NoReturn:
    """Work, tell what there is to tell, and end at once, whatever threads still do."""
    try:
        # Ctrl-C is for the one that waits. And if that one is killed, nobody waits for this one.
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
        # Behind the end nothing comes; the pipe may stay open in whatever the worker has started.
        if not block or (_STOP + heard).endswith(_STOP + _END + _STOP):
            break
    *told, _ = heard.split(_STOP)
    answers = [each[1:].decode() for each in told if each.startswith(_ANSWER)]
    return Outcome(answers[0] if answers else None, ended=True, was_killed=_END not in told)
