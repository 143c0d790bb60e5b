"""Read the clocks of the machine, on behalf of every other module.

A person or the network can set the wall clock to any time. Nobody can set the running time, which
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
    """Return the machine's uptime in microseconds, on Linux including sleep."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)  # only Linux has it
    if boottime is None:
        return time.monotonic_ns() // 1000
    return time.clock_gettime_ns(boottime) // 1000


@cache
def boot_id() -> str:
    """Return the id of this run of the machine since its start, or "" if there is none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
