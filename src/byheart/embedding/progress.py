"""Define the callback by which a download reports its progress."""

from __future__ import annotations

from collections.abc import Callable

# Called with the bytes done and the bytes in total.
Progress = Callable[[int, int], None]
