"""How long a text takes, compared with a shorter one: in line with its length, or with its square.

Nothing here says how fast anything is; that is for benchmarks/. A measurement that other work on
the machine disturbed is made again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

# Eight times the text takes eight times as long; where it is the square that counts, 64 times.
_TIMES, _ALLOWED = 8, 28
_ATTEMPTS = 4


def grows_in_line(
    prepare: Callable[[int], Callable[[], object]], least_seconds: float = 0.002
) -> bool:
    """Say whether the time grows no faster than the text, of which `prepare` takes a multiple."""
    little, much = prepare(1), prepare(_TIMES)
    for _ in range(_ATTEMPTS):
        seconds = max(min(_seconds_of(little), _seconds_of(little)), least_seconds)
        if _seconds_of(much) < _ALLOWED * seconds:
            return True
    return False


def _seconds_of(work: Callable[[], object]) -> float:
    """Take the time of the processor, which goes on only while it works for us.

    The garbage collector waits: its time grows with all that the tests before have left.
    """
    gc.disable()
    try:
        started = time.process_time()
        work()
        return time.process_time() - started
    finally:
        gc.enable()
