"""Stop the wall clock that Byheart reads, in any version of it.

Import this module before `byheart`. Every module that is imported afterwards and asks for
`datetime.datetime` gets `StoppedClock`. While the clock is stopped, random numbers depend on the
moment alone, so the ids of memories are the same in every run.
"""

from __future__ import annotations

import datetime
import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

_Real, _real_nanos, _real_bits = datetime.datetime, time.time_ns, secrets.randbits
_MINUTE = datetime.timedelta(minutes=1)


class _AnyDatetime(type):
    """Accept every real datetime as an instance of the class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Real)


class StoppedClock(datetime.datetime, metaclass=_AnyDatetime):
    """Return the same moment whenever the time is asked for; without one, return the real time."""

    moment: ClassVar[datetime.datetime | None] = None

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        """Return the moment at which the clock was stopped."""
        return _Real.now(tz) if cls.moment is None else cls.moment.astimezone(tz)

    @classmethod
    def advance(cls) -> None:
        """Let a minute pass."""
        assert cls.moment is not None, "the clock is not stopped"
        cls.moment += _MINUTE


@contextmanager
def stop_at(moment: datetime.datetime | None) -> Iterator[None]:
    """Stop the clock at a moment, and let it go on afterwards; without a moment, do nothing."""
    StoppedClock.moment = moment
    try:
        yield
    finally:
        StoppedClock.moment = None


def _nanos() -> int:
    moment = StoppedClock.moment
    return _real_nanos() if moment is None else int(moment.timestamp()) * 10**9


def _bits(bits: int) -> int:
    moment = StoppedClock.moment
    return _real_bits(bits) if moment is None else random.Random(str(moment)).getrandbits(bits)


datetime.datetime = StoppedClock  # type: ignore[misc]
time.time_ns, secrets.randbits = _nanos, _bits
