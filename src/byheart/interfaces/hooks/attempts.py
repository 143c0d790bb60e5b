"""Run work in threads, and wait for it no longer than until a deadline."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from byheart.interfaces.hooks.journal import note

# The share of the time that the first attempt has before a quicker one starts beside it.
_HEAD_START = 0.6
_LEAST_READING_SECONDS = 0.1
_STARTED = 19  # the field of /proc/self/stat, after the process's name, with its start time


class Deadline:
    """Hold the time at which waiting ends."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self._at - time.monotonic())


def seconds_since_start() -> float:
    """Return the age of this process: the agent has waited since its start."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        about = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        started = int(about[_STARTED]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    return time.process_time()  # a lower bound


class Answer:
    """Hold the answer to the agent: the first one given counts, and is passed on at once."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._tell = tell
        self._text: str | None = None
        self.given = threading.Event()

    @property
    def text(self) -> str | None:
        """Return the answer, if there is one yet."""
        return self._text

    def say(self, text: str) -> None:
        """Give an answer, if none was given before; an empty text means there is none to show."""
        with self._lock:
            if self.given.is_set():
                return
            self._text = text or None
            if self._tell is not None and text:
                self._tell(text)
            self.given.set()


def read_within(deadline: Deadline, read: Callable[[], bytes]) -> bytes | None:
    """Read from a pipe, which may never end; return `None` if that takes too long."""
    data: list[bytes] = []
    reader = threading.Thread(target=lambda: data.append(read()), daemon=True)
    reader.start()
    # Data that is there already is read even if no time is left: it tells which event is skipped.
    reader.join(max(deadline.left, _LEAST_READING_SECONDS))
    return data[0] if data else None


Work = Callable[[], None]


def attempt(
    event: str,
    deadline: Deadline,
    answer: Answer,
    work: Work,
    otherwise: Work | None = None,
    head_start: float = _HEAD_START,
) -> bool:
    """Run `work`, and start `otherwise` beside it if no answer comes; tell whether all ended.

    `otherwise` starts after the share `head_start` of the time, or as soon as `work` ends without
    an answer. Work that fails counts as work without an answer; its error is logged, once if both
    fail in the same way.
    """
    noted: set[str] = set()
    ended = [_start(event, answer, work, noted, gives_up=otherwise is None)]
    if otherwise is not None:
        waiting = deadline.left * head_start
        _wait_for_either(answer.given, ended[0], waiting)
        if not answer.given.is_set():
            ended.append(_start(event, answer, otherwise, noted, gives_up=True))
            answer.given.wait(deadline.left)
    return all(each.wait(deadline.left) for each in ended)


def _wait_for_either(first: threading.Event, second: threading.Event, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not second.is_set():
        if first.wait(min(0.01, seconds)):
            return


def _start(
    event: str, answer: Answer, work: Work, noted: set[str], *, gives_up: bool
) -> threading.Event:
    ended = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the outermost layer of an agent's hook
            if repr(error) not in noted:
                noted.add(repr(error))
                note(event, error)
        finally:
            if gives_up:
                answer.say("")
            ended.set()

    threading.Thread(target=run, daemon=True).start()
    return ended
