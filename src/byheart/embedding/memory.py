"""Giving memory back to the machine."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back_memory() -> None:
    """Return freed memory to the system at once, where the C library otherwise keeps it."""
    gc.collect()
    if sys.platform == "linux":
        # Only glibc has it; elsewhere freed memory of this size goes back by itself.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
