"""Wait for a condition, with one limit for all tests that is generous on a loaded machine."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def wait_until(condition: Callable[[], object], about: object = "") -> None:
    """Wait until a condition is true, and fail with a word about it if it never becomes true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, about or condition
        time.sleep(0.02)
