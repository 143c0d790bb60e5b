"""Count the processor cores that this process may use."""

from __future__ import annotations

import os


def count_cores() -> int:
    """Return the number of cores, as far as the process is bound to some of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
