"""A machine whose clock can be set: the wall clock, and how long it has been running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from byheart.system import clock

_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Machine:
    """Time passes when it is told to; its wall clock may be wrong by any amount."""

    def __init__(self) -> None:
        self.true_time = _START
        self.wrong_by = timedelta(0)
        self._started = _START - timedelta(hours=5)
        self._starts = 1

    def now(self) -> datetime:
        """Read the wall clock; no two readings are the same."""
        self.true_time += timedelta(microseconds=1)
        return self.true_time + self.wrong_by

    def running_micros(self) -> int:
        """Give how long the machine has been running."""
        return (self.true_time - self._started) // timedelta(microseconds=1)

    def boot_id(self) -> str:
        """Name the current run."""
        return f"run-{self._starts}"

    def wait(self, **time: float) -> None:
        """Let time pass."""
        self.true_time += timedelta(**time)

    def set_clock(self, **wrong_by: float) -> None:
        """Set the wall clock so that it is wrong by some amount; without one, set it right."""
        self.wrong_by = timedelta(**wrong_by)

    def restart(self) -> None:
        """Start the machine anew."""
        self._starts += 1
        self._started = self.true_time


@contextmanager
def on_machine(machine: Machine) -> Iterator[Machine]:
    """Have Byheart read the clocks of a machine instead of those of this one."""
    names = ("now", "running_micros", "boot_id")
    real = {name: getattr(clock, name) for name in names}
    for name in names:
        setattr(clock, name, getattr(machine, name))
    try:
        yield machine
    finally:
        for name, read in real.items():
            setattr(clock, name, read)
