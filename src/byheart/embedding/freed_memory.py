"""Return freed memory to the operating system."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back_memory() -> None:
    """Return freed memory to the operating system at once, where the C library would keep it."""
    gc.collect()
    if sys.platform == "linux":
        # Only glibc has this function; other C libraries return freed blocks of this size.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
