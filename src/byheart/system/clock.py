"""The clocks of the machine: every other module reads the time here.

The wall clock can be set to any time, by a person or by the network. The running time cannot: it
counts how long the machine has been up.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def now() -> datetime:
    """Read the wall clock."""
    return datetime.now(UTC)


def running_micros() -> int:
    """Give how long the machine has been up, in microseconds, sleep included where it tells."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)  # Linux alone has it
    if boottime is None:
        return time.monotonic_ns() // 1000
    return time.clock_gettime_ns(boottime) // 1000


@cache
def boot_id() -> str:
    """Name this run of the machine, from start to shutdown; empty where it has no name."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
