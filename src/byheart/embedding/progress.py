"""How a download tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

# Called with the bytes done and the bytes in all.
Progress = Callable[[int, int], None]
