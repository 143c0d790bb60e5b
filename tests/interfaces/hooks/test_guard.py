"""The guard: what works may hang, crash or be silent; whoever waits for it goes on in time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

import pytest

from byheart.interfaces.hooks import guard
from byheart.interfaces.hooks.attempts import Deadline
from byheart.interfaces.hooks.guard import Outcome, Say, run_guarded

# Calls through this one keep the interpreter to themselves: no other thread, and no handler of a
# signal, has its turn until they return.
_KEEPING = ctypes.PyDLL(None)
_FOR_EVER_SECONDS = 3600


def block() -> bool:
    _KEEPING.sleep(_FOR_EVER_SECONDS)
    return True


def test_what_was_said_comes_through_whole() -> None:
    text = "grüße\n" * 100_000

    def work(say: Say) -> bool:
        say(text)
        return True

    assert run_guarded(work, Deadline(60)) == Outcome(text, ended=True)


def test_who_says_nothing_and_ends_was_not_killed() -> None:
    assert run_guarded(lambda _: True, Deadline(60)) == Outcome(None, ended=True)


def test_a_call_that_never_lets_go_of_the_interpreter_is_ended() -> None:
    outcome = run_guarded(lambda _: block(), Deadline(0.05))
    assert outcome == Outcome(None, ended=True, was_killed=True)


def test_what_was_said_before_such_a_call_counts_and_nobody_is_left_behind() -> None:
    def work(say: Say) -> bool:
        say(str(os.getpid()))
        return block()

    said, _, was_killed = run_guarded(work, Deadline(0.5))
    assert was_killed
    assert said is not None
    with contextlib.suppress(ChildProcessError):  # on a busy machine, the guard waits no longer
        os.waitpid(int(said), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(said), 0)


def test_a_crash_is_no_more_than_silence() -> None:
    def crash(_: Say) -> bool:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
        return block()

    assert run_guarded(crash, Deadline(60)) == Outcome(None, ended=True, was_killed=True)


def test_what_is_printed_while_working_is_seen_by_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    def work(_: Say) -> bool:
        os.write(1, b"out")
        os.write(2, b"err")
        return True

    run_guarded(work, Deadline(60))
    assert capfd.readouterr() == ("", "")


def test_where_processes_cannot_be_forked_the_work_is_done_right_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "fork")
    worked_in: list[int] = []

    def work(say: Say) -> bool:
        worked_in.append(os.getpid())
        say("here")
        return False

    assert guard.run_guarded(work, Deadline(0)) == Outcome("here", ended=False)
    assert worked_in == [os.getpid()]
